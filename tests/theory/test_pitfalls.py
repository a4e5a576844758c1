"""Where certification once went wrong, or easily could: one test for each."""

import numpy as np
import pytest
import torch

from lossforge import CE, BinaryReduction, TargetSeparation, base
from lossforge.constructions import Normalised, TargetLoss
from lossforge.noise import pair, symmetric
from lossforge.theory import (
    Table,
    certify,
    certify_instances,
    curvature_interval,
    design,
    frontier,
    ratios,
)


@pytest.fixture
def single_precision():
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def test_an_array_is_not_its_transpose():
    T = np.array([[0.45, 0.4, 0.15], [0.25, 0.6, 0.15], [0.3, 0.0, 0.7]])
    loss = TargetLoss(base.ExponentialDecay(1 / np.log(1.3)))
    assert {certify(loss, noise).status for noise in (T, torch.tensor(T), T.tolist())} == {
        "REFUTED"
    }


def test_a_ratio_that_overflows_is_not_one():
    parts = [TargetLoss(base.Exponential(-8, beta, 0.5)) for beta in (-8.0, 20.0)]
    weights = [0.4, 0.35, 0.25]
    assert certify(parts[0] + parts[1], weights).status == "REFUTED"
    overflown = Table(torch.tensor([1, np.inf]), torch.tensor([1, np.inf]), True, "made up")
    assert ratios(base.Linear(), table=overflown).kappa_A == np.inf
    with pytest.raises(ValueError, match="coefficient"):
        1e307 * (parts[0] + parts[1])


def test_a_table_in_single_precision_is_computed_in_double():
    table = Table(torch.ones(4).float(), torch.ones(4).float(), True, "made up")
    assert table.low.dtype == torch.float64
    assert ratios(base.Linear(), table=table).xi_box == pytest.approx(1)


def test_a_density_that_vanishes_has_other_minima():
    loss = TargetSeparation(base.Truncated(base.Linear(), 0.1), a=1.0)
    verdict = certify(loss, [0.5, 0.25, 0.25], claim="global")
    assert verdict.status != "PROVED"


def test_a_frontier_is_what_certify_proves():
    both = TargetSeparation(base.Exponential(), tau=1.0) + BinaryReduction(base.Linear())
    assert frontier(both, 10, claim="transfers").rate == 0
    assert frontier(TargetSeparation(base.Log(), tau=1.0), 10, claim="global").rate == 0
    loss = TargetSeparation(base.Exponential(-1, -40.0, 0.5), a=0.0)
    direction = torch.tensor([[0, 1, 0], [0.9, 0, 0.1], [0.5, 0.5, 0]])
    found = frontier(loss, 3, direction, claim="global", tolerance=1e-3)
    noise = (1 - 0.99 * found.rate) * torch.eye(3) + 0.99 * found.rate * direction
    assert certify(loss, noise, claim="global").status == "PROVED"


def test_a_normalised_part_may_undo_a_rise_of_the_others():
    steep = TargetLoss(base.ExponentialDecay(0.3))
    loss = 0.01 * steep + 10 * Normalised(base.Linear())
    assert certify(steep, symmetric(5, 0.6), claim="transfers").status == "REFUTED"
    assert certify(loss, symmetric(5, 0.6), claim="transfers").status != "REFUTED"


@pytest.mark.slow
def test_a_design_is_proved_to_its_last_digit():
    found = design(10, symmetric(10, 0.89999))
    low, high = found.a_interval
    assert low < found.a < high
    assert found.verdict.status == "PROVED"


@pytest.mark.slow
def test_single_precision_as_the_default_changes_nothing(single_precision):
    loss = TargetSeparation(base.Quadratic(1.5, -1.0, 0.5), a=0.0)
    low = frontier(loss, 5, "pair").rate
    verdict = certify(loss, pair(5, 0.3).tolist())
    torch.set_default_dtype(torch.float64)
    assert low == frontier(loss, 5, "pair").rate
    again = certify(loss, pair(5, 0.3).tolist())
    assert (verdict.ratio, verdict.allowed, verdict.level) == (
        again.ratio,
        again.allowed,
        again.level,
    )


def test_a_subclass_with_values_of_its_own_is_unknown():
    class Rising(TargetLoss):
        def from_log_p(self, log_p):
            return -super().from_log_p(log_p)

        def expected(self, scores, weights):
            return -super().expected(scores, weights)

    assert certify(Rising(base.Linear()), symmetric(5, 0.2)).status == "REFUTED"


def test_a_witness_lies_beside_a_jump():
    loss = BinaryReduction(base.Truncated(base.Log(), 0.05))
    weights = torch.tensor([0.8523, 0, 0, 0, 0, 0.1477])
    witness = certify(loss, weights).witness
    logits = torch.tensor(witness.probs).log().requires_grad_()
    value = sum(w * loss(logits, torch.tensor(k)) for k, w in enumerate(weights) if w)
    (gradient,) = torch.autograd.grad(value, logits)
    assert float(gradient[0]) == pytest.approx(witness.value, rel=1e-6)


def test_policies_that_change_the_labels_are_refused():
    for policy in ({"label_smoothing": 0.5}, {"weight": torch.tensor([1.0, 9, 1])}):
        with pytest.raises(ValueError, match="no class weights and no label smoothing"):
            certify(BinaryReduction(base.Linear(), **policy), [0.6, 0.3, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
def test_clean_labels_are_proved(claim):
    loss = TargetSeparation(base.Exponential(-1, 3.0, 1.0), tau=1.0)
    for noise in (torch.eye(4), torch.eye(2), [1.0, 0.0, 0.0]):
        assert certify(loss, noise, claim=claim).status == "PROVED"
    assert design(4, torch.eye(4)).verdict.status == "PROVED"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: certify(0 * CE(), [0.6, 0.4]), "a part whose coefficient is not 0"),
        (lambda: certify("BEF", [0.6, 0.4]), "loss must be a Loss, got 'BEF'"),
        (lambda: certify(CE(), "symmetric"), "noise must be numbers"),
        (lambda: certify(CE(), None), "noise must be numbers"),
        (lambda: certify(CE(), torch.ones(2, 2, 2)), "noise must be a matrix or a vector"),
        (lambda: design(10, lam=0.0), "lam must be positive"),
        (lambda: certify_instances(CE(), [[0.6, 0.4]], [0, 1]), "a class for each of the 1 rows"),
        (lambda: certify_instances(CE(), [[0.6, 0.4]], [7]), r"true must lie in 0\.\.1"),
        (lambda: certify_instances(CE(), [[0.6, 0.4]], [0.0]), "a class for each of the 1 rows"),
        (lambda: certify_instances(CE(), [[0.6, 0.4]], cells=0), "cells must be an integer of 8"),
        (lambda: curvature_interval("cubic", 2.0, 0.5), "family must be exponential or quadratic"),
        (lambda: curvature_interval("quadratic", 0.5, 0.5), "ratio must be 1 or more"),
    ],
)
def test_mistakes_are_named(call, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        call()


def test_noise_with_a_gradient_is_noise():
    assert certify(CE(), torch.tensor([0.6, 0.4], requires_grad=True)).status == "REFUTED"


def test_the_default_device_does_not_matter():
    with torch.device("meta"):
        assert certify(CE(), torch.tensor([0.6, 0.4], device="cpu")).status == "REFUTED"
        assert frontier(TargetLoss(base.Linear()), 4).rate == pytest.approx(0.75)

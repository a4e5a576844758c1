"""Verdicts with a known answer: special cases, published ratios, what is left open."""

import json
import math

import pytest
import torch

import lossforge
from lossforge import BEF, BQF, BinaryReduction, TargetSeparation, base
from lossforge.constructions import ByRivals
from lossforge.noise import pair, symmetric
from lossforge.theory import certify, certify_instances, is_symmetric, ratios
from lossforge.theory.forms import take_apart


def row(ratio, classes=3):
    """Weights in which the target has `ratio` times the weight of the one rival."""
    weights = torch.zeros(classes)
    weights[0], weights[1] = ratio / (1 + ratio), 1 / (1 + ratio)
    return weights


# The ratio w_t / w_s from which on the loss is robust: published for the first four.
THRESHOLDS = {
    "AUL": (lossforge.AUL(a=3.0, q=2.0), 3 / 2),
    "AUL steep": (lossforge.AUL(a=1.5, q=3.0), 3.0**2),
    "AGCE": (lossforge.AGCE(a=1.0, q=0.5), math.sqrt(2)),
    "AEL": (lossforge.AEL(a=2.0), math.exp(0.5)),
    "Taylor": (lossforge.TaylorCE(t=4), 4.0),
    "PHuber": (lossforge.PHuberCE(tau=5.0), 5.0),
    "MAE": (lossforge.MAE(), 1.0),
    "RCE": (lossforge.RCE(), 1.0),
}


@pytest.mark.parametrize("name", THRESHOLDS)
@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
def test_losses_of_the_target_alone_have_their_published_ratio(name, claim):
    loss, ratio = THRESHOLDS[name]
    assert certify(loss, row(ratio * 1.001), claim=claim).status == "PROVED"
    if ratio > 1:
        below = certify(loss, row(ratio * 0.99), claim=claim)
        assert below.status == "REFUTED"
        assert below.ratio == pytest.approx(ratio)
        assert below.witness.value > 0


@pytest.mark.parametrize("loss", [lossforge.AUL(a=3.0, q=0.5), lossforge.AGCE(a=1.0, q=2.0)])
def test_convex_ones_are_robust_globally_for_every_ratio_but_not_monotone(loss):
    weights = row(1.01)
    assert certify(loss, weights, claim="global").status == "PROVED"
    assert certify(loss, weights).status == "REFUTED"


@pytest.mark.parametrize("a", [2.0, 5.0, 30.0])
def test_amse_needs_a_gap_of_one_over_a(a):
    gap = 1 / a
    for factor, status in ((1.01, "PROVED"), (0.98, "REFUTED")):
        weights = torch.tensor([(1 + factor * gap) / 2, (1 - factor * gap) / 2, 0.0])
        assert certify(lossforge.AMSE(a=a), weights, claim="transfers").status == status
        assert certify(lossforge.AMSE(a=a), weights, claim="global").status == status


@pytest.mark.parametrize("loss", [lossforge.CE(), lossforge.GCE(), lossforge.make("SCE")])
def test_unbounded_densities_are_refuted(loss):
    verdict = certify(loss, symmetric(10, 0.2))
    assert (verdict.status, verdict.level) == ("REFUTED", "logits")
    assert math.isinf(verdict.ratio)
    assert verdict.margin == -1


def test_any_decreasing_base_function_passes_between_the_votes():
    separated = TargetSeparation(base.Power(0.1), a=0.2)
    verdict = certify(separated, symmetric(10, 0.8))
    assert (verdict.status, verdict.level) == ("PROVED", "any-h")
    assert math.isinf(verdict.allowed)


STEEP = BEF(beta=-8, tau=1)


def test_the_default_losses_under_symmetric_noise_and_pair_flips():
    for loss in (BEF(), BQF()):
        for num_classes in (10, 100):
            assert certify(loss, symmetric(num_classes, 0.8)).status == "PROVED"
            assert certify(loss, pair(num_classes, 0.4)).status == "PROVED"
    assert certify(STEEP, pair(10, 0.4)).status == "REFUTED"
    assert certify(STEEP, pair(10, 0.4), claim="global").status == "PROVED"


def test_a_tilted_reduction_is_bounded_on_both_sides_monotone_on_one_globally():
    # f1 with kappa_t = beta (1 - 2 gamma); the noise allows a ratio of 1.5
    towards, against = base.Exponential(-1, 1.0, 0.2), base.Exponential(-1, 1.0, 0.8)
    for tilted in (towards, against):
        assert certify(BinaryReduction(tilted), pair(5, 0.4)).status == "REFUTED"
    assert certify(BinaryReduction(towards), pair(5, 0.4), claim="global").status == "PROVED"
    assert certify(BinaryReduction(against), pair(5, 0.4), claim="global").status == "REFUTED"
    assert certify(BinaryReduction(towards), pair(5, 0.3)).status == "PROVED"


def test_the_parts_of_a_sum_help_each_other():
    # theory: separation alone allows a ratio of 2.25, a flat reduction rescues a ratio of 3
    steep = base.Exponential(-1 / 3, math.log(3), 1.0)  # density 1 at 0, 1/3 at 1
    separated, flat = TargetSeparation(steep, tau=0.0), BinaryReduction(base.Linear())
    noise = symmetric(10, 0.8)
    assert certify(separated, noise).status == "REFUTED"
    little = certify(0.1 / 9 * separated + flat, noise)
    assert (little.status, little.level) == ("PROVED", "joint")
    assert certify(100 * separated + flat, noise).status == "REFUTED"


def test_a_failing_reduction_is_not_rescued():
    tilted = BinaryReduction(base.Exponential(-1, 4.0, 0.9))
    loss = 100 * TargetSeparation(base.Linear(), tau=1.0) + 0.01 * tilted
    verdict = certify(loss, symmetric(10, 0.8))
    assert verdict.status == "REFUTED"


@pytest.mark.parametrize("name", ["NCE", "NFL", "NNCE", "NCE+RCE", "ANL-CE", "JAL-CE"])
def test_symmetric_losses_are_proved_for_symmetric_noise_only(name):
    loss = lossforge.make(name)
    assert certify(loss, symmetric(10, 0.6)).status == "PROVED"
    assert certify(loss, pair(10, 0.4)).status in ("REFUTED", "UNCERTIFIED")


def test_a_symmetric_loss_alone_has_other_minima():
    verdict = certify(lossforge.NCE(), symmetric(10, 0.6), claim="global")
    assert verdict.status == "UNCERTIFIED"
    assert "whether there is only one is not known" in verdict.reason


def test_what_is_not_known_is_said():
    clipped = lossforge.LogitClip(lossforge.MAE(), delta=1.0)
    verdict = certify(clipped, symmetric(10, 0.6), claim="global")
    assert verdict.status == "UNCERTIFIED"
    assert str(clipped) in verdict.reason


class Bump(base.BaseFunction):
    """A density about which nothing is declared."""

    def density(self, p):
        return 1 + 0.2 * torch.sin(9 * p)

    def value(self, at):
        return at.q + (torch.cos(9 * at.p) - math.cos(9)) * 0.2 / 9

    def cumulative(self, at):
        return at.p + (1 - torch.cos(9 * at.p)) * 0.2 / 9


class Declared(Bump):
    """The same with a Lipschitz constant."""

    lipschitz = 1.8


def test_a_proof_needs_bounds_of_the_density():
    noise = symmetric(10, 0.3)
    verdict = certify(TargetSeparation(Bump(), tau=0.0), noise)
    assert verdict.status == "UNCERTIFIED"
    assert "turning_points" in verdict.reason
    assert certify(TargetSeparation(Declared(), tau=0.0), noise).status == "PROVED"
    known = {(bump := Bump()): lossforge.theory.from_intervals(lambda x: 1 + (9 * x).sin() / 5)}
    assert certify(TargetSeparation(bump, tau=0.0), noise, tables=known).status == "PROVED"


def test_an_undeclared_density_is_refuted_all_the_same():
    loss = TargetSeparation(Bump(), tau=0.0)
    assert certify(loss, row(1.1), claim="transfers").status == "REFUTED"


@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
def test_two_classes_use_the_line_where_they_sum_to_one(claim):
    # the density of f1 is even about 1/2, so its ratio there is 1, though it varies by e^2
    loss = TargetSeparation(base.Exponential(-1, -8.0, 0.5), a=0.0)
    assert ratios(loss.base).xi_tri == pytest.approx(math.exp(2))
    assert certify(loss, torch.tensor([0.55, 0.45]), claim=claim).status == "PROVED"


def test_verdicts_are_plain_numbers_and_plain_words():
    verdict = certify(STEEP, pair(10, 0.4))
    found = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert found["status"] == "REFUTED"
    assert len(found["witness"]["probs"]) == 10
    assert found["margin"] == pytest.approx(verdict.allowed / verdict.ratio - 1)
    text = str(verdict)
    assert text.startswith("REFUTED: there is a prediction")
    assert "witness: u[" in text
    proved = certify(TargetSeparation(base.Log(), a=0.2), symmetric(10, 0.8))
    assert json.loads(json.dumps(proved.to_dict(), allow_nan=False))["allowed"] == "inf"
    assert "allowed any" in str(proved)


def test_instances_agree_with_certify_row_by_row():
    generator = torch.Generator().manual_seed(1)
    rows = torch.distributions.Dirichlet(torch.tensor([4.0, 1, 1, 1])).sample((60,))
    true = torch.randint(4, (60,), generator=generator)
    found = certify_instances(BQF(), rows, true)
    for index in range(60):
        if not found.dominated[index]:
            single = certify(BQF(), rows[index])
            same = single.status == "PROVED" and single.level not in ("joint", "logits")
            assert found.proved[index] <= (single.status == "PROVED")
            assert found.proved[index] >= same
    globally = certify_instances(BQF(), rows, true, claim="global")
    assert bool((globally.proved | ~found.proved).all())


@pytest.mark.parametrize(
    ("loss", "expected", "derived"),
    [
        (BEF(tau=1), True, True),
        (BEF(tau=2), False, False),
        (BQF(br_gamma=0.3), False, False),
        (lossforge.MAE(), True, True),
        (TargetSeparation(base.Linear(2.0), tau=5.0), True, True),
        (lossforge.NCE(), True, True),
        (lossforge.make("NCE+RCE"), True, True),
        (lossforge.CE(), False, False),
        (lossforge.MSE(), False, False),
        (TargetSeparation(base.Exponential(), a=0.25), True, True),
    ],
)
def test_symmetry(loss, expected, derived):
    found = is_symmetric(loss, 5)
    assert (found.symmetric, found.derived) == (expected, derived)
    assert (found.deviation < 1e-9) == expected


def test_the_sum_over_rivals_is_proved_where_a_single_transfer_hurts():
    # counterexample 10 of docs/theory.md
    loss = TargetSeparation(base.Quadratic(1.5, -1.0, 0.5), a=0.0)
    weights = torch.tensor([0.6, 0.4, 0.0])
    assert certify(loss, weights, claim="transfers").status == "REFUTED"
    verdict = certify(loss, weights)
    assert (verdict.status, verdict.level) == ("PROVED", "logits")


@pytest.mark.parametrize("name", ["BEF", "BQF"])
def test_a_default_balance_is_judged_as_what_it_stands_for(name):
    few, given = (take_apart(loss, 150) for loss in (lossforge.make(name), make_at(name, 0.1)))
    assert few == given
    many = take_apart(lossforge.make(name), 1000)
    assert many.reduction is None
    assert many.cosine == pytest.approx(2.4 * math.sqrt(999 / 149))
    assert many.separation == take_apart(make_at(name, 0.1), 1000).separation


@pytest.mark.parametrize("name", ["BEF", "BQF"])
@pytest.mark.parametrize("classes", [151, pytest.param(1000, marks=pytest.mark.slow)])
def test_certificates_of_the_defaults_with_many_classes(name, classes):
    loss, flips = lossforge.make(name), pair(classes, 0.4)
    assert certify(loss, symmetric(classes, 0.4)).status == "PROVED"
    found = certify(loss, flips)
    assert found.status == "REFUTED"
    # the witness, by the expected loss itself
    weights = torch.tensor(found.witness.weights, dtype=torch.float64)
    z = torch.tensor(found.witness.probs, dtype=torch.float64).log().requires_grad_()
    (slope,) = torch.autograd.grad(loss(z[None], weights[None]), z)
    assert slope[found.witness.target] > 0
    assert certify(loss, flips, claim="global").status == "PROVED"
    assert certify(make_at(name, 0.1), flips).status == "PROVED"


def make_at(name, mu):
    return lossforge.make(name, mu=mu)


def test_members_of_a_loss_by_rivals_are_judged_themselves():
    class Own(BinaryReduction):
        def from_scores(self, scores, target):
            return super().from_scores(scores, target)

    h = base.Exponential(-8, -1, 0.5)
    loss = ByRivals(BinaryReduction(h), Own(h), most=3)
    assert take_apart(loss, 4).understood
    assert take_apart(loss, 5).doubts == (f"{Own(h)}: Own overrides from_scores",)

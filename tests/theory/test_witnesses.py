"""Counterexamples: found where they exist, shown by what the loss depends on, never by rounding."""

import json

import precise
import pytest
import torch

import lossforge
from lossforge import BEF, TargetSeparation, base
from lossforge.constructions import LogitClip, PowerDistance, Sharpened, TargetLoss
from lossforge.noise import pair, symmetric
from lossforge.theory import certify
from lossforge.theory.bounds import Bounds
from lossforge.theory.forms import take_apart
from lossforge.theory.strips import heaviest_by_itself

STEEP = BEF(beta=-8, tau=1)


def expected(loss, weights, logits):
    """The expected loss, label by label."""
    labels = torch.arange(len(weights))
    values = loss.with_policy(reduction="none")(logits.expand(len(weights), -1), labels)
    return (torch.tensor(weights) * values).sum()


def test_the_frontier_of_a_steep_loss_is_known_to_half_a_percent():
    assert certify(STEEP, pair(10, 0.298)).status == "PROVED"
    verdict = certify(STEEP, pair(10, 0.301))
    assert verdict.status == "REFUTED"
    witness = verdict.witness
    logits = torch.tensor(witness.probs).log().tolist()
    value, size = precise.gradient(STEEP, witness.weights, logits, witness.target)
    assert value > 1e-6 * size


@pytest.mark.parametrize(
    "loss",
    [
        lossforge.make("CE+LC"),
        lossforge.make("SR"),
        LogitClip(lossforge.MAE(), delta=2.0),
        Sharpened(TargetLoss(base.Log())),
    ],
    ids=str,
)
def test_a_loss_that_sees_the_size_of_logits_is_refuted_by_logits(loss):
    verdict = certify(loss, pair(10, 0.4))
    assert verdict.status == "REFUTED"
    witness = json.loads(json.dumps(verdict.to_dict()))["witness"]
    weights, target = witness["weights"], witness["target"]
    z = torch.tensor(witness["logits"])
    torch.testing.assert_close(torch.softmax(z, 0), torch.tensor(witness["probs"]))
    step = torch.zeros_like(z)
    step[target] = 1e-4
    rise = (expected(loss, weights, z + step) - expected(loss, weights, z - step)) / 2e-4
    assert float(rise) == pytest.approx(witness["value"], rel=1e-3)
    assert f"z[{target}] = " in str(verdict.witness)


def test_a_loss_of_the_probabilities_is_refuted_by_a_prediction():
    for loss in (lossforge.CE(), lossforge.EpsSoftmax(lossforge.CE(), m=10.0)):
        witness = certify(loss, pair(10, 0.4)).witness
        assert witness.logits is None
        assert "u[0] = " in str(witness)


def test_a_gradient_that_is_no_derivative_refutes_nothing_by_itself():
    class Reversed(lossforge.MAE):
        """Computes the mean absolute error with a gradient that points the other way."""

        def from_log_p(self, log_p):
            value = super().from_log_p(log_p)
            return 2 * value.detach() - value

        def expected(self, scores, weights):
            value = super().expected(scores, weights)
            return 2 * value.detach() - value

    assert certify(Reversed(), symmetric(5, 0.2)).status == "UNCERTIFIED"


@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
@pytest.mark.parametrize("gap", [1e-9, 1e-12, 1e-14])
def test_rounding_of_a_small_coefficient_refutes_nothing(claim, gap):
    weights = [0.0, 0.5 + gap / 2, 0.5 - gap / 2]
    loss = PowerDistance(a=5.0, r=1.0)  # the mean absolute error, by two base functions
    assert certify(loss, weights, claim=claim).status != "REFUTED"
    # c_t is positive and c_s negative, by the last digits of the weights
    separated = TargetSeparation(base.Exponential(-1.0, 3.0, 0.4), a=1.0)
    assert certify(separated, weights, claim=claim).status != "REFUTED"


def test_strips_prove_nothing_that_fails_on_a_grid():
    x = (torch.arange(200) + 0.5) / 200
    for beta, rate in ((-8.0, 0.299), (-8.0, 0.302), (-6.0, 0.4), (4.0, 0.3)):
        form = take_apart(BEF(beta=beta, tau=1), 10)
        rivals = torch.zeros(9)
        rivals[0] = rate
        held = heaviest_by_itself(Bounds(form, 4000, {}), 1 - rate, rivals, 1.0)
        total = torch.tensor(1.0)
        own, first = (torch.tensor(weight) for weight in (1 - rate, rate))

        def effect(y, weight, form=form, own=own, total=total):
            p, q = x[:, None] / (x[:, None] + y), y / (x[:, None] + y)
            pull, _ = form.separation.effect(own, total, x[:, None])
            pairs = own * form.reduction.density(p) - weight * form.reduction.density(q)
            push, _ = form.separation.effect(weight, total, y)
            return pull - push + pairs / (9 * (x[:, None] + y) ** 2)

        rest = 1 - x[:, None] - x
        parts = [rest * effect((rest / n).clamp(min=1e-9), 0 * first) for n in range(1, 9)]
        least = x * effect(x, first) + torch.stack(parts).amin(0)
        lowest = float(least[rest > 0].min())
        assert not (held and lowest < 0)


def test_a_weight_of_almost_nothing_is_not_nothing():
    """The density vanishes at 0: a target of probability 0 loses to any rival that has a weight."""
    for weight in (1e-16, 1e-18, 1e-30, 1e-310):
        weights = [1.0, weight, 0.0]
        assert certify(lossforge.BinaryReduction(base.Power(3.0)), weights).status != "PROVED"
        for a in (0.0, weight / 1e10):
            loss = TargetSeparation(base.Power(3.0), a=a)
            assert certify(loss, weights).status != "PROVED"
            assert certify(loss, weights, claim="transfers").status != "PROVED"
    assert certify(TargetSeparation(base.Power(3.0), a=0.0), [1.0, 0.0, 0.0]).status == "PROVED"


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_an_infinite_density_makes_no_witness_of_nan(classes):
    steep = base.JensenShannon(0.3)
    loss = 0.1 * TargetSeparation(steep, a=1.9) + 6 * lossforge.BinaryReduction(steep)
    weights = torch.zeros(classes)
    weights[0], weights[1] = 0.97, 0.03
    verdict = certify(loss, weights, claim="global")
    assert verdict.status != "REFUTED" or verdict.witness.value > 0

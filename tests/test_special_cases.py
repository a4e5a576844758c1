"""Published losses that are target separations or binary reductions, equal including constants."""

import math

import pytest
import torch
from laws import assert_close, value_and_gradient
from torch.nn.functional import one_hot, softplus

from lossforge import RCE, BinaryReduction, TargetSeparation, base
from lossforge.constructions import TargetLoss

N, K = 8, 6


@pytest.fixture
def logits() -> torch.Tensor:
    return 2 * torch.randn(N, K)


@pytest.fixture
def target() -> torch.Tensor:
    return torch.randint(K, (N,))


def mae(u, y):
    return (u - y).abs().sum(1)


def rce(u, y):
    return -(u * torch.log(y.clamp(1e-4, 1))).sum(1)


def gce(u, y):
    return (1 - (u * y).sum(1) ** 0.7) / 0.7


def agce(u, y):
    return (1.6**0.6 - (0.6 + (u * y).sum(1)) ** 0.6) / 0.6


def aul(u, y):
    return ((1.5 - (u * y).sum(1)) ** 0.9 - 0.5**0.9) / 0.9


def ael(u, y):
    return torch.exp(-(u * y).sum(1) / 2.5)


def taylor(u, y):
    p = (u * y).sum(1)
    return sum((1 - p) ** j / j for j in range(1, 7))


def phuber(u, y):
    p = (u * y).sum(1)
    return torch.where(p <= 1 / 10, -10 * p + math.log(10) + 1, -torch.log(p))


def focal(u, y):
    p = (u * y).sum(1)
    return -((1 - p) ** 2) * torch.log(p)


def ce(u, y):
    return -(y * torch.log(u)).sum(1)


PUBLISHED = {
    "MAE": (mae, base.Linear(scale=2.0), 0.0),
    "RCE": (rce, base.Linear(scale=-math.log(1e-4)), 0.0),
    "GCE": (gce, base.Power(0.7), 0.0),
    "AGCE": (agce, base.ShiftedPower(0.6, 0.6), 0.0),
    "AUL": (aul, base.MirroredPower(1.5, 0.9), 0.0),
    "AEL": (ael, base.ExponentialDecay(2.5), math.exp(-1 / 2.5)),
    "Taylor": (taylor, base.Taylor(6), 0.0),
    "PHuber": (phuber, base.HuberLog(10.0), 0.0),
    "focal": (focal, base.Focal(2.0), 0.0),
    "CE": (ce, base.Log(), 0.0),
}


@pytest.mark.parametrize("separation", [False, True], ids=["TargetLoss", "TS-a0"])
@pytest.mark.parametrize(("published", "h", "constant"), PUBLISHED.values(), ids=PUBLISHED.keys())
def test_published_loss_is_a_target_loss(
    published, h, constant, separation, logits, target
) -> None:
    loss = TargetSeparation(h, a=0) if separation else TargetLoss(h)
    loss.reduction = "none"
    y = one_hot(target, K)
    expected = value_and_gradient(lambda z: published(torch.softmax(z, 1), y), logits)
    actual = value_and_gradient(lambda z: loss(z, target), logits)
    assert_close(actual[0] + constant, expected[0])
    assert_close(actual[1], expected[1])


def test_reverse_cross_entropy_is_9_21_times_unhinged(logits, target) -> None:
    p = torch.softmax(logits, 1).gather(1, target[:, None])[:, 0]
    assert_close(RCE(reduction="none")(logits, target), 9.210340371976182 * (1 - p))


LIMITS = {
    "power-1-is-linear": (base.Power(1.0), base.Linear()),
    "taylor-1-is-linear": (base.Taylor(1), base.Linear()),
    "shifted-power-1-is-linear": (base.ShiftedPower(3.0, 1.0), base.Linear()),
    "mirrored-power-1-is-linear": (base.MirroredPower(3.0, 1.0), base.Linear()),
    "focal-0-is-log": (base.Focal(0.0), base.Log()),
    "huber-1-is-linear": (base.HuberLog(1.0), base.Linear()),
    "exponential-0-is-linear": (base.Exponential(alpha=-2.0, beta=0.0), base.Linear(scale=2.0)),
    "quadratic-0-is-linear": (base.Quadratic(alpha=0.0, beta=-2.0), base.Linear(scale=2.0)),
}


@pytest.mark.parametrize(("general", "simple"), LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("construct", [TargetLoss, BinaryReduction])
def test_limit_is_the_simpler_loss(general, simple, construct, logits, target) -> None:
    expected = value_and_gradient(lambda z: construct(simple)(z, target), logits)
    actual = value_and_gradient(lambda z: construct(general)(z, target), logits)
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])


@pytest.mark.parametrize("a", [0.0, 0.1, 1.0, 2.5])
def test_mean_absolute_error_is_separated_with_any_coefficient(a, logits, target) -> None:
    p = torch.softmax(logits, 1).gather(1, target[:, None])[:, 0]
    loss = TargetSeparation(base.Linear(), a=a, reduction="none")
    assert_close(loss(logits, target), (1 + a) * (1 - p))


def test_separated_cross_entropy_is_linear_in_the_logits(logits, target) -> None:
    z_t = logits.gather(1, target[:, None])[:, 0]
    others = (logits.sum(1) - z_t) / (K - 1)
    loss = TargetSeparation(base.Log(), tau=1, reduction="none")
    assert_close(loss(logits, target), others - z_t)


@pytest.mark.parametrize("tau", [0.3, 0.9])
def test_separated_cross_entropy_is_negative_label_smoothing(tau, logits, target) -> None:
    y = one_hot(target, K)
    q = (y - tau / (K - 1) * (1 - y)) / (1 - tau)
    expected = -(1 - tau) * (q * torch.log_softmax(logits, 1)).sum(1)
    loss = TargetSeparation(base.Log(), tau=tau, reduction="none")
    assert_close(loss(logits, target), expected)


def pairwise(f):
    """The mean of f(z_i - z_t) over the other classes."""

    def loss(z, t):
        d = z - z.gather(1, t[:, None])
        return (f(d) * (1 - one_hot(t, K))).sum(1) / (K - 1)

    return loss


PAIRWISE = {
    "logistic": (softplus, base.Log()),
    "sigmoid": (torch.sigmoid, base.Linear()),
    "gce": (lambda d: (1 - torch.sigmoid(-d) ** 0.7) / 0.7, base.Power(0.7)),
}


@pytest.mark.parametrize(("f", "h"), PAIRWISE.values(), ids=PAIRWISE.keys())
def test_pairwise_loss_is_a_binary_reduction(f, h, logits, target) -> None:
    loss = BinaryReduction(h, reduction="none")
    expected = value_and_gradient(lambda z: pairwise(f)(z, target), logits)
    actual = value_and_gradient(lambda z: loss(z, target), logits)
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])


@pytest.mark.parametrize(
    "h",
    [base.Exponential(beta=-8), base.Quadratic(), base.Log(), base.Power(0.7), base.Linear()],
    ids=repr,
)
def test_with_two_classes_reduction_is_the_target_loss(h, logits, target) -> None:
    z, t = logits[:, :2], target % 2
    expected = value_and_gradient(lambda x: TargetSeparation(h, a=0)(x, t), z)
    actual = value_and_gradient(lambda x: BinaryReduction(h)(x, t), z)
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])

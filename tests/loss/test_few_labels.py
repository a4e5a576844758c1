"""Expected losses at the cost of the labels that count: few with weight, or all alike."""

import math
from dataclasses import dataclass
from typing import ClassVar

import naive
import pytest
import torch
from bases import ids
from cases import Case, named
from laws import assert_close, batch, value_and_gradient
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, vmap
from torch.nn.functional import one_hot

from lossforge import BEF, CE, BinaryReduction, base
from lossforge.constructions import (
    BackwardCorrection,
    BoundedCosine,
    ByRivals,
    Emphasised,
    EpsSoftmax,
    LogitClip,
    Negative,
)
from lossforge.loss import Loss, Scores
from lossforge.loss import loss as loss_module
from lossforge.theory import is_symmetric

N, K = 4, 6
F1 = base.Exponential(-8, -8, 0.5)
PAIRS = named("BEF", "BR-f1", "BR-linear", "BR-f1-tilted", "BR-log")
LOSSES = {
    "BEF": BEF(),
    "linear": BinaryReduction(base.Linear(2.0)),
    "xi": BinaryReduction(F1, xi=3.0),
    "by rivals": ByRivals(BoundedCosine(), BinaryReduction(F1), most=3),
    "tilted": BinaryReduction(base.Exponential(-8, -8, 0.3)),
    "log": BinaryReduction(base.Log()),
    "difference": CE() - 0.5 * BinaryReduction(base.Linear()),
    "negative": Negative(),
    "emphasised": Emphasised(),
    "clipped": LogitClip(BEF()),
    "relaxed": EpsSoftmax(BEF(), m=3.0),
    "corrected": BackwardCorrection(BEF(), 0.6 * torch.eye(K) + 0.4 / K),
}
OVER_LOSSES = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def targets(n: int = N) -> dict[str, Tensor]:
    """Class probabilities of which most are 0, or the same."""
    first, second, third = (one_hot(torch.randint(K, (n,)), K).double() for _ in range(3))
    mixed = 0.7 * first + 0.3 * second
    some = mixed.clone()
    some[0] = 0.0
    return {
        "one label": first,
        "two labels": mixed,
        "three labels": 0.5 * first + 0.3 * second + 0.2 * third,
        "two labels and an even rest": 0.9 * mixed + 0.1 / K,
        "an even target": torch.full((n, K), 1 / K),
        "a row without weight": some,
        "no weight": torch.zeros(n, K),
    }


KINDS = list(targets())


def smoothed(target: Tensor, smoothing: float, weight: Tensor | None) -> Tensor:
    """The weights of the labels, by the definition of the policy."""
    target = one_hot(target, K).double() if target.dim() == 1 else target
    spread = (1 - smoothing) * target + smoothing / K
    return spread if weight is None else spread * weight


def every_label(loss: Loss, logits: Tensor, weights: Tensor) -> Tensor:
    """The expected loss from one call for each label."""
    each = loss.with_policy(reduction="none")
    columns = [each(logits, torch.full((len(logits),), c)) for c in range(logits.shape[1])]
    return (weights * torch.stack(columns, 1)).sum(1)


@dataclass(frozen=True)
class Counted(base.Linear):
    """Counts the pairs that it is evaluated at."""

    seen: ClassVar[list[int]] = []

    def value(self, at) -> Tensor:
        value = super().value(at)
        self.seen.append(value.numel())
        return value


class CountedRows(Loss):
    """Counts the rows that it is evaluated at."""

    def __init__(self, **policy) -> None:
        super().__init__(**policy)
        self.rows = 0

    def per_sample(self, logits, target):
        self.rows += len(target)
        return -logits.log_softmax(1).gather(1, target[:, None])[:, 0]


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", KINDS[2:5])
@pytest.mark.parametrize("case", PAIRS, ids=ids(PAIRS))
def test_value_and_gradient_match_the_naive_formula(
    case: Case, kind: str, smoothing: float, weighted: bool
) -> None:
    z, _ = batch(N, K)
    target, weight = targets()[kind], torch.rand(K) if weighted else None
    weights = smoothed(target, smoothing, weight)

    def expected(x: Tensor) -> Tensor:
        pairs = zip(x, weights, strict=True)
        return torch.stack([naive.expected(case.naive, a, b) for a, b in pairs])

    policy = {"label_smoothing": smoothing, "weight": weight, "reduction": "none"}
    loss = case.make().with_policy(**policy)
    actual = value_and_gradient(lambda x: loss(x, target), z)
    for one, other in zip(actual, value_and_gradient(expected, z), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["index", *KINDS])
@OVER_LOSSES
def test_value_and_gradient_are_the_sum_over_labels(
    loss: Loss, kind: str, smoothing: float
) -> None:
    z, t = batch(N, K)
    z[1:3] *= torch.tensor([[1e-3], [30.0]])
    target = t if kind == "index" else targets()[kind]
    whole = loss.with_policy(label_smoothing=smoothing, reduction="none")
    weights = smoothed(target, smoothing, None)
    actual = value_and_gradient(lambda x: whole(x, target), z)
    expected = value_and_gradient(lambda x: every_label(loss, x, weights), z)
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["index", *KINDS])
@pytest.mark.parametrize("name", ["linear", "xi", "by rivals", "tilted", "BEF"])
def test_probabilities_of_zero_follow_the_definition(
    name: str, kind: str, smoothing: float
) -> None:
    loss = LOSSES[name]
    probs = torch.rand(N, K).round(decimals=1)
    probs[0], probs[1] = one_hot(torch.tensor(3), K), one_hot(torch.tensor(0), K)
    probs /= probs.sum(1, keepdim=True)
    target = torch.randint(K, (N,)) if kind == "index" else targets()[kind]
    each = loss.with_policy(reduction="none")
    columns = [each.from_probs(probs, torch.full((N,), c)) for c in range(K)]
    expected = (smoothed(target, smoothing, None) * torch.stack(columns, 1)).sum(1)
    whole = each.with_policy(label_smoothing=smoothing)
    assert_close(whole.from_probs(probs, target), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["index", *KINDS])
@OVER_LOSSES
def test_masks_cost_what_they_cost_where_every_label_is_evaluated(
    loss: Loss, kind: str, smoothing: float
) -> None:
    z, t = batch(5, K)
    z[0, 1:3] = z[1, 1:] = z[2] = -math.inf
    z[3, 4], z[4, 5] = math.nan, math.inf
    target = t if kind == "index" else targets(5)[kind]
    whole = loss.with_policy(label_smoothing=smoothing, reduction="none")
    # of weights with a derivative every one counts
    weight = torch.ones(K, requires_grad=True)
    assert_close(whole(z, target), whole.with_policy(weight=weight)(z, target).detach())


@pytest.mark.parametrize("smoothing", [0.1, 1.0])
def test_smoothing_of_a_symmetric_base_evaluates_no_further_pair(smoothing: float) -> None:
    z, t = batch(N, K)
    loss = BinaryReduction(Counted(), label_smoothing=smoothing)
    Counted.seen.clear()
    loss(z, t)
    assert sum(Counted.seen) <= N * K + 1
    Counted.seen.clear()
    loss.with_policy(weight=torch.rand(K))(z, t)
    assert sum(Counted.seen) >= N * K * K


def test_smoothing_of_a_symmetric_base_has_no_gradient() -> None:
    z, t = batch(N, K)
    plain, whole = BinaryReduction(F1), BinaryReduction(F1, label_smoothing=0.25)
    gradients = (value_and_gradient(lambda x, f=f: f(x, t), z)[1] for f in (plain, whole))
    assert_close(0.75 * next(gradients), next(gradients))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_a_symmetric_base_are_those_of_labels_above_the_rest(kind, smoothing) -> None:
    z, _ = batch(N, K)
    target = targets()[kind]
    above = int((target > target.amin(1, keepdim=True)).sum())
    loss = BinaryReduction(Counted(), label_smoothing=smoothing)
    Counted.seen.clear()
    loss(z, target)
    assert sum(Counted.seen) <= above * K + 1


@pytest.mark.parametrize("kind", KINDS)
def test_only_labels_with_weight_are_evaluated(kind: str) -> None:
    (z, _), target, loss = batch(N, K), targets()[kind], CountedRows()
    loss(z, target)
    assert loss.rows == int((target != 0).sum())


@pytest.mark.parametrize("kind", ["two labels", "a row without weight", "no weight"])
def test_blocks_change_neither_value_nor_gradient(kind: str, monkeypatch) -> None:
    (z, _), target = batch(N, K), targets()[kind]
    loss = BinaryReduction(base.Log(), reduction="none")
    whole = value_and_gradient(lambda x: loss(x, target), z)
    monkeypatch.setattr(loss_module, "_DENSE_BLOCK", 2 * K)
    for cut, one in zip(value_and_gradient(lambda x: loss(x, target), z), whole, strict=True):
        assert_close(cut, one)


@pytest.mark.parametrize("name", ["BEF", "tilted", "negative"])
def test_labels_without_weight_have_a_derivative(name: str) -> None:
    (z, _), loss = batch(N, K), LOSSES[name].with_policy(reduction="sum")
    target = targets()["two labels"].requires_grad_()
    (found,) = torch.autograd.grad(loss(z, target), target)
    each = loss.with_policy(reduction="none")
    values = torch.stack([each(z, torch.full((N,), c)) for c in range(K)], 1)
    assert_close(found, values)
    assert_close(grad(lambda q: loss(z, q))(target.detach()), values)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # torch's own
def test_labels_without_weight_have_a_forward_derivative() -> None:
    (z, _), loss, target = batch(N, K), Negative(reduction="sum"), targets()["two labels"]
    tangent = torch.randn(N, K)
    (gradient,) = torch.autograd.grad(loss(z, target.requires_grad_()), target)
    with forward_ad.dual_level():
        value = loss(z, forward_ad.make_dual(target.detach(), tangent))
        assert_close(forward_ad.unpack_dual(value).tangent, (gradient * tangent).sum())


@pytest.mark.parametrize("kind", ["index", "two labels", "two labels and an even rest"])
@pytest.mark.parametrize("name", ["BEF", "tilted"])
def test_derivatives_are_those_of_the_value(name: str, kind: str) -> None:
    z, t = batch(N, K)
    target = t if kind == "index" else targets()[kind]
    loss = LOSSES[name].with_policy(label_smoothing=0.1 if kind == "index" else 0.0)
    assert gradcheck(lambda x: loss(x, target), z.requires_grad_())
    assert gradgradcheck(lambda x: loss(x, target), z)


@pytest.mark.parametrize("kind", ["index", "two labels"])
def test_transforms_agree(kind: str) -> None:
    z, t = batch(N, K)
    target = t if kind == "index" else targets()[kind]
    loss = BEF(label_smoothing=0.1)
    _, expected = value_and_gradient(lambda x: loss.with_policy(reduction="sum")(x, target), z)
    assert_close(vmap(grad(loss))(z, target), expected)


def test_a_subclass_with_values_of_its_own_has_means_of_its_own() -> None:
    class Doubled(BinaryReduction):
        def from_scores(self, scores, target):
            return scores.log_probs.gather(1, target[:, None])[:, 0] ** 2

    class Negated(type(BEF() * 1.0)):
        def expected(self, scores, weights):
            return -super().expected(scores, weights)

    (z, t), mixed = batch(N, K), targets()["two labels and an even rest"]
    doubled = Doubled(base.Linear(), reduction="none")
    expected = every_label(doubled, z, smoothed(t, 0.5, None))
    assert_close(doubled.with_policy(label_smoothing=0.5)(z, t), expected)
    assert_close(doubled(z, mixed), every_label(doubled, z, mixed))
    even = torch.full((N, K), 1 / K)
    pair = BinaryReduction(base.Linear())
    assert_close(Negated([(1.0, pair)]).label_mean(Scores(z)), -pair.expected(Scores(z), even))


def test_symmetry_is_measured_where_it_is_declared_by_mistake() -> None:
    @dataclass(frozen=True)
    class Mistaken(base.Exponential):
        symmetric = True

    assert not is_symmetric(BinaryReduction(Mistaken(-8, -8, 0.3)), 4)
    assert is_symmetric(BinaryReduction(F1), 4)

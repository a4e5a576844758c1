"""Probabilities instead of logits: agreement with the logits, zeros, the paper's xi, refusals."""

import naive
import pytest
import torch
from bases import ids
from cases import F1, OVER_CASES, OVER_CONSTRUCTIONS, Case, named
from laws import assert_close, batch, law, rows

from lossforge import BEF, CE, BinaryReduction, TargetSeparation, base

SMOOTH_AT_ZERO = named("BEF", "BQF", "TS-f1-tau3", "TS-f2-tau3", "BR-f1", "BR-f2", "BR-linear")
ZEROS = torch.tensor(
    [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.5, 0.5, 0.0, 0.0],
        [0.0, 0.25, 0.75, 0.0],
        [0.1, 0.2, 0.3, 0.4],
    ],
    dtype=torch.float64,
)
LABELS = torch.tensor([0, 0, 1, 0, 3])


@OVER_CASES
@law("from-probs", TypeError)
def test_probabilities_agree_with_logits(case: Case) -> None:
    z, t = batch()
    loss = case.make().with_policy(reduction="none")
    assert_close(loss.from_probs(torch.softmax(z, 1), t), loss(z, t))
    q = torch.rand(6, 5)
    assert_close(loss.from_probs(torch.softmax(z, 1), q), loss(z, q))


@OVER_CONSTRUCTIONS
@law("from-probs", TypeError)
def test_shapes_and_policy_are_those_of_logits(case: Case) -> None:
    z, t = torch.randn(2, 5, 3), torch.randint(5, (2, 3))
    t[0, 1] = 255
    loss = case.make().with_policy(weight=torch.rand(5), ignore_index=255, label_smoothing=0.1)
    assert_close(loss.from_probs(torch.softmax(z, 1), t), loss(z, t))
    assert_close(loss.from_probs(torch.softmax(z[1, :, 0], 0), t[1, 0]), loss(z[1, :, 0], t[1, 0]))


@pytest.mark.parametrize("case", SMOOTH_AT_ZERO, ids=ids(SMOOTH_AT_ZERO))
def test_zeros_follow_the_definition(case: Case) -> None:
    loss = case.make().with_policy(reduction="none")
    assert_close(loss.from_probs(ZEROS, LABELS), rows(case.naive_of_probs, ZEROS, LABELS))


@pytest.mark.parametrize("xi", [None, 0.0, 0.3, 7.0])
def test_pair_of_zeros_is_worth_xi(xi: float | None) -> None:
    f = base.Exponential(**F1)
    loss = BinaryReduction(f, xi=xi, reduction="none")
    worth = float(f.h(torch.tensor(0.5))) if xi is None else xi
    probs = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    expected = (f.h(torch.tensor(0.0)) + 2 * worth) / 3
    assert_close(loss.from_probs(probs, torch.tensor([0])), expected.reshape(1))
    reference = naive.exponential(-8, -8, 0.5)
    assert_close(
        loss.from_probs(ZEROS, LABELS),
        rows(lambda u, t: naive.binary_reduction(reference, u, t, xi), ZEROS, LABELS),
    )


def test_xi_does_not_touch_logits() -> None:
    z, t = batch()
    f = base.Exponential()
    assert torch.equal(BinaryReduction(f, xi=9.0)(z, t), BinaryReduction(f)(z, t))


def test_target_of_probability_zero_costs_the_value_at_zero() -> None:
    probs, t = torch.tensor([[0.0, 0.4, 0.6]]), torch.tensor([0])
    f = base.Exponential(**F1)
    assert_close(BinaryReduction(f).from_probs(probs, t), f.h(torch.tensor(0.0)))
    assert_close(TargetSeparation(f, a=0).from_probs(probs, t), f.h(torch.tensor(0.0)))
    assert CE().from_probs(probs, t) == torch.inf


def test_tiny_probabilities_keep_their_ratio() -> None:
    probs = torch.tensor([[3e-300, 1e-300, 1.0]])
    loss = BinaryReduction(base.Linear()).from_probs(probs, torch.tensor([0]))
    assert_close(loss, torch.tensor((0.25 + 1.0) / 2))


@pytest.mark.parametrize("case", SMOOTH_AT_ZERO, ids=ids(SMOOTH_AT_ZERO))
def test_gradient_is_finite_also_at_zeros(case: Case) -> None:
    probs = ZEROS.clone().requires_grad_()
    case.make().from_probs(probs, LABELS).backward()
    assert torch.isfinite(probs.grad).all()


@OVER_CASES
@law("from-probs", TypeError)
def test_gradient_along_the_simplex_matches_naive_formula(case: Case) -> None:
    u = torch.softmax(torch.randn(5), 0)
    direction = torch.randn(5)
    direction -= direction.mean()
    loss, slopes = case.make(), []
    for f in (lambda p: loss.from_probs(p, torch.tensor(2)), lambda p: case.naive_of_probs(p, 2)):
        x = u.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(f(x), x)
        slopes.append(gradient @ direction)
    assert_close(*slopes)


BAD = {
    "sum-too-large": [[0.5, 0.6, 0.2]],
    "sum-too-small": [[0.5, 0.2, 0.2]],
    "negative": [[1.2, -0.2, 0.0]],
    "nan": [[float("nan"), 0.5, 0.5]],
    "infinite": [[float("inf"), 0.0, 0.0]],
    "zeros": [[0.0, 0.0, 0.0]],
    "logits": [[3.0, -1.0, 2.0]],
}


@pytest.mark.parametrize("rows_", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("make", [CE, BEF], ids=["CE", "BEF"])
def test_rows_that_are_not_probabilities_are_refused(make, rows_) -> None:
    with pytest.raises(ValueError, match="probs"):
        make().from_probs(torch.tensor(rows_), torch.tensor([0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_rounded_probabilities_are_accepted(dtype: torch.dtype) -> None:
    z, t = torch.randn(50, 100), torch.randint(100, (50,))
    loss = BEF(reduction="none")
    value = loss.from_probs(torch.softmax(z.float(), 1).to(dtype), t)
    assert value.dtype == dtype
    assert_close(value, loss(z, t), torch.bfloat16)


def test_class_axis_is_the_second() -> None:
    probs = torch.softmax(torch.randn(2, 5, 5), 2)  # sums to one along the wrong axis
    with pytest.raises(ValueError, match="probs"):
        BEF().from_probs(probs, torch.zeros(2, 5, dtype=torch.long))

"""Extreme logits and low precision: finite everywhere, accurate where the number format allows."""

import math

import pytest
import torch
from bases import ids
from cases import CASES, OVER_CASES, OVER_CONSTRUCTIONS, Case, Separated
from laws import assert_close, batch, rows, ulp, value_and_gradient
from torch import Tensor
from torch.nn.functional import cross_entropy

from lossforge import TargetSeparation, base

REDUCTIONS = [case for case in CASES if case.is_reduction]
SEPARATIONS = [case for case in CASES if case.is_separation]
SCALES = (1.0, 40.0, 90.0, 1e4)
OVER_SCALES = pytest.mark.parametrize("scale", SCALES)
LOW = (torch.float32, torch.bfloat16, torch.float16)
HALF = pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"]
)


def extreme(scale: float, dtype: torch.dtype, n: int = 64) -> tuple[Tensor, Tensor]:
    z, t = batch(n=n, k=10, scale=scale)
    return z.to(dtype), t


def at_all_scales(n: int = 64, most: float = math.inf) -> tuple[Tensor, Tensor, Tensor]:
    """The same logits at every scale up to `most`, their labels, and the scale of every row."""
    z, t = batch(n=n, k=10, scale=1.0)
    scale = torch.tensor([min(scale, most) for scale in SCALES]).repeat_interleave(n)
    return scale[:, None] * z.repeat(len(SCALES), 1), t.repeat(len(SCALES)), scale


def assert_rows(good: Tensor, scale: Tensor, what: object) -> None:
    """Fail with the scales of the rows that are not good."""
    bad = scale[~good.reshape(len(scale), -1).all(1)].unique().tolist()
    assert not bad, f"{what}, logits of scale {bad}"


@OVER_CASES
def test_value_and_gradient_are_finite(case: Case) -> None:
    logits, t, scale = at_all_scales()
    loss = case.make(10).with_policy(reduction="none")
    for dtype in LOW:
        z = logits.to(dtype)
        value, gradient = value_and_gradient(lambda x: loss(x, t), z)
        assert value.dtype == gradient.dtype == dtype
        assert_rows(torch.isfinite(gradient), scale, f"gradient in {dtype}")
        entropy = cross_entropy(z.double(), t, reduction="none")
        # a bounded loss is finite everywhere; none of the others exceeds twice the cross entropy
        representable = torch.full_like(t, case.bounded, dtype=torch.bool)
        representable |= 2 * entropy < torch.finfo(dtype).max
        assert representable.reshape(len(SCALES), -1).any(1).all()
        assert_rows(torch.isfinite(value) | ~representable, scale, f"value in {dtype}")


@OVER_CASES
def test_soft_targets_are_finite(case: Case) -> None:
    logits, _, scale = at_all_scales(n=8, most=1e3)
    probs = torch.softmax(torch.randn(8, 10), 1).repeat(len(SCALES), 1)
    loss = case.make(10).with_policy(reduction="none")
    for dtype in LOW:
        q = probs.to(dtype)
        value, gradient = value_and_gradient(lambda x, q=q: loss(x, q), logits.to(dtype))
        assert_rows(torch.isfinite(value), scale, f"value in {dtype}")
        assert_rows(torch.isfinite(gradient), scale, f"gradient in {dtype}")


@pytest.mark.parametrize("case", REDUCTIONS, ids=ids(REDUCTIONS))
@OVER_SCALES
def test_reduction_in_float32_is_relatively_accurate(case: Case, scale: float) -> None:
    z, t = extreme(scale, torch.float32, n=128)
    (term,) = case.terms
    reference = rows(term.of_margins, z.double(), t)
    actual = case.make().with_policy(reduction="none")(z, t).double()
    counted = reference > 1e-37
    assert counted.any()
    error = ((actual - reference) / reference)[counted].abs()
    assert error.max() <= 1e-5


@pytest.mark.parametrize("case", REDUCTIONS, ids=ids(REDUCTIONS))
@OVER_SCALES
def test_reduction_of_a_confident_row_is_relatively_accurate(case: Case, scale: float) -> None:
    z, t = extreme(0.2 * min(scale, 90), torch.float32)
    z[torch.arange(64), t] = z.max(1).values + min(scale, 60)
    (term,) = case.terms
    reference = rows(term.of_margins, z.double(), t)
    counted = reference > 1e-37
    assert counted.sum() > 8
    actual = case.make().with_policy(reduction="none")(z, t).double()
    assert ((actual - reference) / reference)[counted].abs().max() <= 1e-5


@pytest.mark.parametrize("case", REDUCTIONS, ids=ids(REDUCTIONS))
@OVER_SCALES
@HALF
def test_reduction_in_half_precision_is_within_one_ulp(
    case: Case, scale: float, dtype: torch.dtype
) -> None:
    z, t = extreme(scale, dtype)
    (term,) = case.terms
    reference = rows(term.of_margins, z.double(), t)
    representable = reference < torch.finfo(dtype).max
    actual = case.make().with_policy(reduction="none")(z, t)
    assert actual.dtype == dtype
    error = (actual.double() - reference).abs()
    assert (error <= ulp(reference, dtype))[representable].all()


@OVER_CASES
def test_gradient_in_float32_is_absolutely_accurate(case: Case) -> None:
    logits, t, scale = at_all_scales()
    z = logits.float()
    loss = case.make(10).with_policy(reduction="none")
    _, actual = value_and_gradient(lambda x: loss(x, t), z)
    _, reference = value_and_gradient(lambda x: loss(x, t), z.double())
    assert_rows((actual.double() - reference).abs() <= 1e-6 * case.scale, scale, "gradient")


@pytest.mark.parametrize("case", SEPARATIONS, ids=ids(SEPARATIONS))
def test_float64_gradient_equals_closed_form_at_a_large_scale(case: Case) -> None:
    z, t = extreme(15, torch.float64)
    (term,) = case.terms
    assert isinstance(term, Separated)
    loss = case.make().with_policy(reduction="none")
    _, actual = value_and_gradient(lambda x: loss(x, t), z)
    assert_close(actual, rows(term.gradient, z, t))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_separation_is_relatively_accurate_near_the_correct_one_hot(dtype: torch.dtype) -> None:
    u = torch.exp(-torch.arange(20.0, 60.0, 5.0))  # the two other classes together
    z = torch.stack([-torch.log(u / 2), torch.zeros_like(u), torch.zeros_like(u)], 1).to(dtype)
    u = 2 / (2 + torch.exp(z[:, 0].double()))
    loss = TargetSeparation(base.Exponential(alpha=-8, beta=-8), tau=1, reduction="none")
    phi = 8 * math.exp(-2)  # at 0 and at 1; h(u_t) and the non-target part are linear there
    expected = phi * u * (1 + 0.5)
    torch.testing.assert_close(
        loss(z, torch.zeros(len(z), dtype=torch.long)).double(), expected, rtol=1e-5, atol=0
    )


@OVER_CONSTRUCTIONS
@HALF
def test_autocast_computes_and_returns_float32(case: Case, dtype: torch.dtype) -> None:
    z, t = extreme(2, torch.bfloat16)
    loss = case.make(10)
    with torch.autocast("cpu", dtype=dtype):
        inside = loss(z, t)
        assert loss(z.double(), t).dtype == torch.float64
    assert inside.dtype == torch.float32
    assert_close(inside, loss(z.double(), t), torch.float32)


@OVER_CASES
@HALF
def test_half_precision_rounds_once(case: Case, dtype: torch.dtype) -> None:
    z, t = extreme(2, dtype)
    loss = case.make(10).with_policy(reduction="none")
    assert loss(z, t).dtype == dtype
    reference = loss(z.double(), t)
    scale = reference.abs().clamp_min(1e-2)
    assert ((loss(z, t).double() - reference).abs() <= ulp(scale, dtype)).all()

"""The paper's symmetry theorems over random base functions and 2 to 1,000 classes."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lossforge import BinaryReduction, TargetSeparation, base

RELATIVE = 1e-11
unit = st.floats(0, 1)
classes = st.one_of(st.integers(2, 12), st.integers(13, 100), st.sampled_from([333, 1000]))
seeds = st.integers(0, 2**31 - 1)
scales = st.sampled_from([0.1, 1.0, 5.0, 30.0])


@st.composite
def exponentials(draw: st.DrawFn, gamma: st.SearchStrategy[float] = unit) -> base.Exponential:
    alpha, beta = draw(st.floats(-20, -0.05)), draw(st.floats(-16, 8))
    return base.Exponential(alpha=alpha, beta=beta, gamma=draw(gamma))


@st.composite
def quadratics(draw: st.DrawFn, gamma: st.SearchStrategy[float] = unit) -> base.Quadratic:
    centre, beta = draw(gamma), draw(st.floats(-20, -0.1))
    limit = -beta / max(centre, 1 - centre) ** 2
    return base.Quadratic(alpha=draw(st.floats(-20, 0.9 * limit)), beta=beta, gamma=centre)


def chebyshev(coefficients: list[float], x: Tensor) -> Tensor:
    """1.1 sum |c| + sum c_k T_k(2x - 1) + 0.1, which is positive."""
    theta = torch.arccos((2 * x - 1).clamp(-1, 1))
    series = sum(c * torch.cos(k * theta) for k, c in enumerate(coefficients, start=1))
    return series + 1.1 * sum(map(abs, coefficients)) + 0.1 + 0 * x


@st.composite
def densities(draw: st.DrawFn, *, even: bool = False) -> Any:
    step = 2 if even else 1
    c = draw(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
    spread = [0.0] * (step * len(c))
    spread[step - 1 :: step] = c
    return base.from_derivative(lambda x: -chebyshev(spread, x))


powers = st.builds(base.Power, st.floats(0.2, 4))
shifted = st.builds(base.ShiftedPower, st.floats(0.2, 6), st.floats(0.2, 4))
bounded_bases = st.one_of(exponentials(), quadratics(), powers, shifted, densities())
half = st.just(0.5)
symmetric_bases = st.one_of(
    exponentials(half), quadratics(half), densities(even=True), st.builds(base.Linear)
)
off_centre = st.one_of(st.floats(0, 0.4), st.floats(0.6, 1))


def sum_over_targets(loss: Any, logits: Tensor) -> Tensor:
    k = len(logits)
    return loss.per_sample(logits.expand(k, k), torch.arange(k)).sum()


def logits(k: int, seed: int, scale: float) -> Tensor:
    return scale * torch.randn(k, generator=torch.Generator().manual_seed(seed))


@given(f=bounded_bases, k=classes, seed=seeds, scale=scales)
def test_theorem_1_separation_with_tau_one_is_symmetric(f, k, seed, scale) -> None:
    total = sum_over_targets(TargetSeparation(f, tau=1), logits(k, seed, scale))
    expected = k * f.h(torch.tensor(0.0))  # 0, plus the shift a (K - 1) h(0) for every target
    torch.testing.assert_close(total, expected, rtol=RELATIVE, atol=0)


@given(f=exponentials(off_centre), k=st.integers(3, 200), tau=st.sampled_from([0.0, 0.5, 2.0]))
def test_theorem_1_converse_other_coefficients_are_not_symmetric(f, k, tau) -> None:
    loss = TargetSeparation(f, tau=tau)
    zero, one, mean = (f.h(torch.tensor(x)) for x in (0.0, 1.0, 1 / k))
    one_hot = sum_over_targets(loss, 800.0 * torch.eye(k)[0])
    uniform = sum_over_targets(loss, torch.zeros(k))
    witness = (1 - tau) * (one + (k - 1) * zero - k * mean)
    torch.testing.assert_close(one_hot - uniform, witness, rtol=1e-9, atol=1e-10 * k * float(zero))


@given(f=symmetric_bases, k=classes, seed=seeds, scale=scales)
def test_theorems_3_and_4_reduction_of_an_odd_base_is_symmetric(f, k, seed, scale) -> None:
    total = sum_over_targets(BinaryReduction(f), logits(k, seed, scale))
    expected = k * f.h(torch.tensor(0.5))
    torch.testing.assert_close(total, expected, rtol=RELATIVE, atol=0)


@given(
    f=st.one_of(exponentials(off_centre), quadratics(off_centre), powers, shifted, densities()),
    k=classes,
)
def test_theorems_3_and_4_the_sum_moves_by_the_oddness_of_the_base(f, k) -> None:
    loss = BinaryReduction(f)
    one_hot = sum_over_targets(loss, 800.0 * torch.eye(k)[0])
    uniform = sum_over_targets(loss, torch.zeros(k))
    witness = f.h(torch.tensor(0.0)) - 2 * f.h(torch.tensor(0.5))
    scale = k * float(f.h(torch.tensor(0.0)))
    torch.testing.assert_close(one_hot - uniform, witness, rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize("k", [2, 3, 10, 250])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.45, 0.55, 0.8, 1.0])
@pytest.mark.parametrize("make", [base.Exponential, base.Quadratic])
def test_reduction_is_symmetric_only_at_gamma_one_half(make: Any, gamma: float, k: int) -> None:
    def spread(centre: float) -> float:
        f = make(alpha=-2.0, beta=-2.0, gamma=centre)
        sums = [sum_over_targets(BinaryReduction(f), s * torch.eye(k)[0]) for s in (0, 1, 4, 50)]
        return float(max(sums) - min(sums))

    assert spread(0.5) < 1e-13 * k * k**0.5
    assert spread(gamma) > 1e-2


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0, 2.0])
def test_any_coefficient_keeps_a_linear_base_symmetric(tau: float) -> None:
    loss = TargetSeparation(base.Linear(), tau=tau)
    sums = torch.stack([sum_over_targets(loss, 3 * torch.randn(7)) for _ in range(10)])
    torch.testing.assert_close(sums, (1 + tau / 6) * torch.full_like(sums, 6.0))

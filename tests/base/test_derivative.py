"""from_derivative accepts what it can resolve and says what is wrong with the rest."""

import contextlib
import math
import pickle
import random

import pytest
import torch

from lossforge import base
from lossforge.errors import ApproximationError
from lossforge.numerics import fit

NOT_NEGATIVE = {
    "positive": lambda x: 1 + x,
    "positive-near-one": lambda x: x - 0.9,
    "positive-between": lambda x: 0.01 - 10 * (x - 0.35) ** 2,
    "positive-narrowly": lambda x: 0.02 - (x - 0.73) ** 2,
    "zero": torch.zeros_like,
    "zero-at-one": lambda x: x - 1,
}
NOT_FINITE = {
    "nan": lambda x: torch.full_like(x, float("nan")),
    "nan-somewhere": lambda x: torch.where(x > 0.6, torch.full_like(x, float("nan")), -x - 1),
    "pole-at-zero": lambda x: -1 / x,
    "log-at-zero": lambda x: torch.log(x) - 1,
    "pole-at-one": lambda x: -1 / (1 - x),
}
UNRESOLVED = {
    "kink": lambda x: -1 - torch.abs(x - 0.3),
    "step": lambda x: -2 - torch.sign(x - 0.4),
    "fast": lambda x: -2 - torch.sin(1e5 * x),
    "root-at-zero": lambda x: -1 - torch.sqrt(x),
    "waves": lambda x: -2 - torch.sin(1200 * x),
}


def bump(x, centre: float, width: float):
    return torch.exp(-(((x - centre) / width) ** 2))


def wavy(x):
    return 1.5 + 0.3 * torch.sin(60 * x)


def places(number: int) -> list[float]:
    """Random points, and points halfway between those of a grid of 1/1024."""
    draw = random.Random(11)
    between = [(draw.randrange(1024) + 0.5) / 1024 for _ in range(number // 2)]
    return between + [draw.random() for _ in range(number - len(between))]


@pytest.mark.parametrize("f", NOT_NEGATIVE.values(), ids=NOT_NEGATIVE.keys())
def test_derivative_that_is_not_negative_is_refused(f) -> None:
    with pytest.raises(ValueError, match="negative"):
        base.from_derivative(f)


@pytest.mark.parametrize("f", NOT_FINITE.values(), ids=NOT_FINITE.keys())
def test_derivative_that_is_not_finite_is_refused(f) -> None:
    with pytest.raises(ValueError, match="finite"):
        base.from_derivative(f)


@pytest.mark.parametrize("f", UNRESOLVED.values(), ids=UNRESOLVED.keys())
def test_derivative_that_no_series_resolves_is_refused(f) -> None:
    with pytest.raises(ApproximationError):
        base.from_derivative(f)


def test_approximation_error_is_a_value_error() -> None:
    assert issubclass(ApproximationError, ValueError)


def test_derivative_must_return_one_value_per_point() -> None:
    with pytest.raises((TypeError, ValueError)):
        base.from_derivative(lambda x: -x[:3] - 1)


def test_not_a_function_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        base.from_derivative(-1.0)


def test_function_sees_float64_whatever_the_default() -> None:
    torch.set_default_dtype(torch.float32)
    seen = []

    def f(x):
        seen.append(x.dtype)
        return -torch.exp(-x)

    series = base.from_derivative(f)
    assert set(seen) == {torch.float64}
    x = torch.tensor([0.25, 0.5], dtype=torch.float64)
    exact = torch.exp(-x) - torch.exp(-torch.ones_like(x))
    torch.testing.assert_close(series.h(x), exact, rtol=1e-13, atol=0)


def test_lambda_pickles_as_its_series() -> None:
    series = base.from_derivative(lambda x: -torch.exp(-3 * x))
    twin = pickle.loads(pickle.dumps(series))
    x = torch.linspace(0, 1, 11)
    assert isinstance(series, base.Series)
    assert twin == series
    assert torch.equal(twin.h(x), series.h(x))
    assert torch.equal(twin.phi(x), series.phi(x))


@pytest.mark.parametrize("rate", [10, 100])
def test_steep_but_smooth_derivative_is_resolved(rate: float) -> None:
    series = base.from_derivative(lambda x: -1 - torch.cos(rate * x) / 2)
    x = torch.linspace(0, 1, 101)
    exact = (1 - x) + (torch.sin(torch.tensor(1.0 * rate)) - torch.sin(rate * x)) / (2 * rate)
    torch.testing.assert_close(series.h(x), exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("width", [3e-4, 1e-4, 1e-5, 1e-6])
def test_narrow_dip_of_the_density_below_zero_is_refused(width: float) -> None:
    for centre in places(4):
        with pytest.raises(ValueError, match=r"negative|series|coefficients"):
            base.from_derivative(lambda x, c=centre: -(wavy(x) - 2.6 * bump(x, c, width)))


@pytest.mark.parametrize("width", [1e-5, 1e-6, 1e-7])
def test_narrow_spike_is_refused(width: float) -> None:
    """Wherever it stands: the tails of a Gaussian are seen as far as 9 widths apart."""
    for centre in places(4):
        with pytest.raises(ValueError, match="differs from its series"):
            base.from_derivative(lambda x, c=centre: -(1 + bump(x, c, width)))


def test_any_departure_longer_than_the_distance_of_probes_is_seen() -> None:
    probes = 5000
    for centre in places(40):
        low, high = centre - 0.51 / probes, centre + 0.51 / probes

        def f(x, low=low, high=high):
            return torch.where((x > low) & (x < high), -1.001, -1.0)

        with pytest.raises(ValueError, match="series"):
            base.from_derivative(f, probes=probes)


def test_refusal_names_the_place() -> None:
    with pytest.raises(ApproximationError, match=r"differs from its series by .* at x = 0\.4321"):
        base.from_derivative(lambda x: -(1 + bump(x, 0.4321, 1e-5)))
    with pytest.raises(ValueError, match=r"negative on \[0, 1\], got .* at x = 0\.432"):
        base.from_derivative(lambda x: -(1 - 2 * bump(x, 0.4321, 2e-5)))


def test_number_of_evaluations_is_bounded() -> None:
    for f in (wavy, lambda x: 1 / (0.1 + x), lambda x: 2 + torch.sin(1200 * x), torch.ones_like):
        seen = [0, 0]

        def counted(x, f=f, seen=seen):
            seen[0] += x.numel()
            seen[1] = max(seen[1], x.numel())
            return -f(x)

        with contextlib.suppress(ApproximationError):
            base.from_derivative(counted)
        assert seen[0] < 1.2e6
        assert seen[1] <= 2**16


def test_probes_must_be_a_positive_integer() -> None:
    for probes in (0, -3):
        with pytest.raises(ValueError, match="probes must be an integer of 1 or more"):
            base.from_derivative(lambda x: -1 - x, probes=probes)
    with pytest.raises(TypeError, match="probes"):
        base.from_derivative(lambda x: -1 - x, probes=1e5)


@pytest.mark.parametrize("probes", [1, 100, 2**20])
def test_probes_do_not_change_the_series(probes: int) -> None:
    found = base.from_derivative(lambda x: -torch.exp(-3 * x), probes=probes)
    assert found.coefficients == fit(lambda x: torch.exp(-3 * x))


def test_series_that_is_negative_between_probes_is_refused() -> None:
    """A parabola with its two zeros between neighbours of the grid of 1/1024."""
    centre, half = 300.5 / 1024, 0.3 / 1024

    def coefficients(lift: float) -> tuple[float, ...]:
        # (x - centre)^2 + lift in Chebyshev polynomials of t = 2x - 1
        m = 2 * centre - 1
        return ((0.5 + m * m) / 4 + lift, -m / 2, 1 / 8)

    with pytest.raises(ValueError, match="negative"):
        base.Series(coefficients(-half * half))
    assert base.Series(coefficients(1e-4)).h(0.0) > 0
    with pytest.raises(ValueError, match="rounding hides the sign"):
        base.Series(coefficients(1e-16))


def test_long_series_is_refused_at_once() -> None:
    with pytest.raises(ApproximationError, match=r"at most 512 .* takes 600"):
        base.Series((1.0, *([1e-6] * 599)))
    with pytest.raises(ValueError, match="at least one"):
        base.Series(())


def test_wide_function_keeps_its_logarithmic_series() -> None:
    found = base.from_derivative(lambda x: -torch.exp(-40 * x))
    assert found.logarithmic
    assert math.isclose(found.coefficients[0], -20, rel_tol=1e-12)


def test_short_polynomial_with_a_long_logarithm_is_accepted() -> None:
    """The time to integrate it grows with the degree of the density, which is 1."""
    found = base.from_derivative(lambda x: -(3e-4 + x), probes=4096)
    assert found.logarithmic
    assert len(found.coefficients) > 512
    assert float(found.h(0.0)) == pytest.approx(0.5003, rel=1e-12)

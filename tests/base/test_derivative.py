"""from_derivative accepts what it can resolve and says what is wrong with the rest."""

import pickle

import pytest
import torch

from lossforge import base
from lossforge.errors import ApproximationError

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
}


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

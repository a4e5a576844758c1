"""The oracles agree: quadrature with erf and mpmath, autograd with the closed form."""

import math

import mpmath
import naive
import pytest
import torch
from laws import assert_close, batch, rows, value_and_gradient

BASES = {
    "exponential": naive.exponential(-8, -8, 0.5),
    "growing": naive.exponential(-1, 2, 0),
    "quadratic": naive.quadratic(-12, -1, 0.25),
    "log": naive.log(),
    "power": naive.power(0.7),
    "shifted_power": naive.shifted_power(0.6, 0.6),
    "mirrored_power": naive.mirrored_power(1.5, 0.9),
    "decay": naive.exponential_decay(0.5),
    "taylor": naive.taylor(6),
    "focal": naive.focal(2.0),
    "huber_log": naive.huber_log(10.0),
}
OVER_BASES = pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())


@pytest.mark.parametrize("beta", [-60, -8, -1])
def test_quadrature_equals_error_function(beta: float) -> None:
    x, b = torch.linspace(0, 1, 21), math.sqrt(-beta)
    expected = math.sqrt(math.pi) / 2 / b * (math.erf(b * 0.7) - torch.erf(b * (x - 0.3)))
    assert_close(naive.exponential(-1, beta, 0.3).h(x), expected)


@OVER_BASES
def test_value_is_the_integral_of_the_density(base: naive.Base) -> None:
    for x in (1e-3, 0.3, 0.9):
        exact = mpmath.quad(lambda s: base.phi(s, mpmath), [x, max(x, 0.1), 1])
        assert_close(base.h(torch.tensor(x)), torch.tensor(float(exact)))


@OVER_BASES
def test_margin_form_is_the_value_at_the_sigmoid(base: naive.Base) -> None:
    d = torch.linspace(-8, 8, 33)
    assert_close(base.margin(d), base.h(torch.sigmoid(d)))


@OVER_BASES
@pytest.mark.parametrize("a", [0, 0.1, 0.75])
def test_closed_form_separation_gradient_is_autograds(base: naive.Base, a: float) -> None:
    z, t = batch()
    second = naive.exponential(-2, 1, 0.4)

    def loss(row, label):
        return naive.target_separation(base, naive.softmax(row), label, a, second)

    _, expected = value_and_gradient(lambda x: rows(loss, x, t), z)
    closed = rows(
        lambda row, c: naive.target_separation_gradient(base, naive.softmax(row), c, a, second),
        z,
        t,
    )
    assert_close(closed, expected)


@OVER_BASES
def test_closed_form_reduction_gradient_is_autograds(base: naive.Base) -> None:
    z, t = batch()

    def loss(row, label):
        return naive.binary_reduction(base, naive.softmax(row), label)

    value, expected = value_and_gradient(lambda x: rows(loss, x, t), z)
    closed = rows(lambda row, c: naive.binary_reduction_gradient(base, row, c), z, t)
    assert_close(closed, expected)
    of_logits = rows(lambda row, c: naive.binary_reduction_of_logits(base, row, c), z, t)
    assert_close(of_logits, value)

"""Tables enclose the density: against mpmath, at random points and at the ends of cells."""

import math
import time
from dataclasses import dataclass

import mpmath
import pytest
import torch
from bases import BASES, DERIVATIVES, BaseCase, ids

from lossforge import base
from lossforge.numerics import evaluate
from lossforge.theory.enclosure import Table, enclose, from_intervals

MORE = [
    base.HuberPower(0.7, 10.0),
    base.Truncated(base.Log(), 0.1),
    base.Truncated(base.Exponential(-1.0, 4.0, 0.6), 0.25),
    base.Truncated(base.Truncated(base.Quadratic(1.0, -2.0, 0.3), 0.2), 1 / 3),
    base.ShiftedLog(0.2),
    base.JensenShannon(0.3),
    base.ShiftedPower(1e3, 3.5),
    base.MirroredPower(1 + 1e-4, 7.0),
    base.MirroredPower(1 + 1e-6, 0.3),
    base.Power(300.0),
    base.Taylor(40),
    base.Focal(0.0),
    base.Quadratic(4 * (1 - 1e-13), -1.0, 0.5),
    base.Exponential(-2.0, 22.0, 0.0),
]


@dataclass(frozen=True)
class Unknown(base.BaseFunction):
    """A density of which nothing is declared."""

    def density(self, p):
        return 2 + torch.sin(9 * p)

    def value(self, at):
        raise NotImplementedError

    def cumulative(self, at):
        raise NotImplementedError


class Lipschitz(Unknown):
    lipschitz = 9.0


class Vanishing(Lipschitz):
    def density(self, p):
        return 1 + torch.sin(9 * p)


class Negative(Unknown):
    def density(self, p):
        return p - 0.5


def cell_of(x, n):
    return (x * n).floor().long().clamp(max=n - 1)


@pytest.mark.parametrize("cells", [1, 3, 64, 4000])
@pytest.mark.parametrize("case", BASES, ids=ids(BASES))
def test_the_table_brackets_the_exact_density(case: BaseCase, cells):
    table = enclose(case.make(), cells)
    assert table.certified
    assert table.cells == cells
    # a fitted series is the density; it differs from what it was fitted to by rounding
    slack = mpmath.mpf(1e-12 if case in DERIVATIVES else 0)
    with mpmath.workdps(40):
        for _ in range(25):
            k = int(torch.randint(cells, ()))
            for shift in (mpmath.mpf(0), mpmath.mpf(float(torch.rand(()))), mpmath.mpf(1)):
                x = (k + shift) / cells
                if x == 0 and (math.isinf(float(table.high[0])) or case.id == "huber_log-10"):
                    continue  # the naive formula divides by x
                if case.id.startswith("focal") and x == 1:
                    exact = mpmath.mpf(0)
                else:
                    exact = mpmath.mpf(case.naive.phi(x, mpmath))
                assert (
                    float(table.low[k]) * (1 - slack) <= exact <= float(table.high[k]) * (1 + slack)
                )


@pytest.mark.parametrize("function", MORE, ids=str)
def test_the_table_brackets_the_computed_density(function):
    for cells in (7, 4000):
        table = enclose(function, cells)
        x = torch.cat([torch.rand(20_000), torch.arange(cells + 1) / cells])
        values, k = function.density(x), cell_of(x, cells)
        assert table.certified
        assert (table.low[k] <= values).all()
        assert (values <= table.high[k]).all()


def test_powers_of_a_rounded_base_stay_inside():
    """A large exponent amplifies the rounding of a + x; the slack covers it."""
    table = enclose(base.ShiftedPower(1.1, 60.0), 100)
    with mpmath.workdps(40):
        for k in range(100):
            left, right = ((mpmath.mpf(1.1) + mpmath.mpf(k + e) / 100) ** 59 for e in (0, 1))
            assert float(table.low[k]) <= left <= right <= float(table.high[k])


def test_a_nearly_vanishing_quadratic_is_bracketed():
    alpha = 4 * (1 - 1e-13)
    table = enclose(base.Quadratic(alpha, -1.0, 0.5), 10)
    with mpmath.workdps(40):
        exact = 1 - mpmath.mpf(alpha) / 4
        assert float(table.low[0]) <= exact <= float(table.high[9])
    assert table.low[0] > 0


def test_truncation_keeps_zeros_and_the_jump():
    table = enclose(base.Truncated(base.Log(), 0.1), 10)
    assert table.high[:1].tolist() != [0.0]  # the jump is an end of both cells
    fine = enclose(base.Truncated(base.Log(), 0.1), 1000)
    assert (fine.high[:99] == 0).all()
    assert float(fine.high[100]) == pytest.approx(10, rel=1e-12)
    assert float(fine.low[100]) == 0
    assert float(fine.low[102]) > 9


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_series_is_enclosed_to_first_order(logarithmic):
    series = (1.0, 0.3, -0.2, 0.1, 0.05, -0.02, 0.01)
    function = base.Series(series, logarithmic)
    for cells in (5, 100, 4000):
        table = enclose(function, cells)
        with mpmath.workdps(40):
            for x in torch.rand(60).tolist():
                t = 2 * mpmath.mpf(x) - 1
                exact = mpmath.fsum(c * mpmath.chebyt(k, t) for k, c in enumerate(series))
                exact = mpmath.exp(exact) if logarithmic else exact
                k = int(x * cells)
                assert float(table.low[k]) <= exact <= float(table.high[k])
        # the width is the density's own variation and a term of second order
        x = torch.linspace(0, 1, 20 * cells + 1)
        values = function.density(x)
        own = torch.stack([values[i : len(values) - 1 : 20] for i in range(20)] + [values[20::20]])
        width = own.amax(0) - own.amin(0)
        assert (table.high - table.low <= 1.2 * width + 100 / cells**2).all()


def test_a_series_of_high_degree_is_enclosed():
    function = base.from_derivative(lambda x: -1 / (1e-2 + (x - 0.4) ** 2))
    assert len(function.coefficients) > 100
    table = enclose(function)
    x = torch.rand(50_000)
    values, k = evaluate(function.coefficients, x), cell_of(x, 4000)
    assert not function.logarithmic
    assert (table.low[k] <= values).all()
    assert (values <= table.high[k]).all()
    assert table.excess < 1.5


def test_nothing_known_is_not_certified():
    table = enclose(Unknown())
    assert not table.certified
    assert not enclose(base.Focal(2.0, stop_gradient=True)).certified


def test_a_lipschitz_constant_certifies():
    for function in (Lipschitz(), Vanishing()):
        table = enclose(function, 500)
        x = torch.rand(20_000)
        k = cell_of(x, 500)
        assert table.certified
        assert (table.low >= 0).all()
        assert (table.low[k] <= function.density(x)).all()
        assert (function.density(x) <= table.high[k]).all()
    assert math.isinf(enclose(Vanishing(), 500).excess)


def test_intervals_agree_with_the_pieces():
    function = base.Exponential(-1.0, -8.0, 0.3)
    exact = enclose(function, 1000)
    table = from_intervals(lambda x: (-8 * (x - 0.3) ** 2).exp(), 1000)
    assert table.certified
    assert (table.low <= exact.low * (1 + 1e-12)).all()
    assert (table.high >= exact.high * (1 - 1e-12)).all()
    assert table.excess < exact.excess * 1.1


def test_intervals_enclose_what_nothing_else_can():
    table = from_intervals(lambda x: 2 + (9 * x).sin(), 400)
    x = torch.rand(20_000)
    values, k = 2 + torch.sin(9 * x), cell_of(x, 400)
    assert (table.low[k] <= values).all()
    assert (values <= table.high[k]).all()
    assert table.excess < 1.3


def test_intervals_with_a_pole_are_infinite_there_and_constants_are_plain():
    table = from_intervals(lambda x: 1 / x, 50)
    assert math.isinf(float(table.high[0]))
    assert float(table.low[0]) == 0
    assert torch.isfinite(table.high[1:]).all()
    flat = from_intervals(lambda x: 3, 5)
    assert flat.excess == pytest.approx(1, abs=1e-12)


def test_sums_bound_the_integral():
    function = base.Exponential(-1.0, 3.0, 0.4)
    table = enclose(function, 200)
    grid = torch.arange(201) / 200
    exact = function.H(grid)
    lower, upper = table.lower_integrals(), table.upper_integrals()
    assert lower[0] == upper[0] == 0
    assert (lower[1:] < exact[1:]).all()
    assert (exact[1:] < upper[1:]).all()
    mirrored = table.mirrored()
    assert (mirrored.lower_integrals()[1:] < function.h(1 - grid)[1:]).all()
    assert (function.h(1 - grid)[1:] < mirrored.upper_integrals()[1:]).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="cells must be"):
        enclose(base.Log(), 0)
    with pytest.raises(ValueError, match=r"0 or more on \[0, 1\], got -0.5 at x = 0"):
        enclose(Negative())
    with pytest.raises(ValueError, match="got less near x = 0"):
        from_intervals(lambda x: x - 2, 5)
    with pytest.raises(ValueError, match="same length"):
        Table(torch.ones(3), torch.ones(4), True, "by hand")
    with pytest.raises(ValueError, match="low <= high"):
        Table(torch.ones(3), torch.zeros(3), True, "by hand")


def test_turning_points_are_those_of_the_density():
    assert base.Exponential(-1.0, 2.0, 0.3).turning_points() == (0.3,)
    assert base.Quadratic(1.0, -2.0, 1.0).turning_points() == ()
    assert base.Focal(1.0).turning_points() == ()
    assert base.Focal(1.0, stop_gradient=True).turning_points() is None
    assert Unknown().turning_points() is None
    inner = base.Truncated(base.Exponential(-1.0, 2.0, 0.7), 0.5)
    assert inner.turning_points() == (0.5, math.nextafter(0.5, 1), 0.7)


def test_tables_are_fast():
    function = base.Exponential(-1.0, -8.0, 0.3)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        enclose(function)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1

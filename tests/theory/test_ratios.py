"""Closed forms, tables and brute force give the same ratios."""

import math
import random

import mpmath
import numpy as np
import pytest
import torch

from lossforge import base
from lossforge.base import Exponential, Quadratic
from lossforge.theory.enclosure import Table, enclose, from_intervals
from lossforge.theory.predictions import worst_pair, worst_transfer
from lossforge.theory.ratios import ratios

NAMES = ("xi_box", "xi_tri", "kappa_A", "kappa_B", "rho_M", "R_G", "R_mirror")
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
GRID = 3000
CELLS = 1500


def seven(found):
    return {name: getattr(found, name) for name in NAMES}


def brute(phi, grid=GRID):
    """The seven suprema over grid points, in plain numpy; integrals by Gauss's rule."""
    x = np.arange(grid + 1) / grid
    values = phi(x)
    inner = (np.arange(grid)[:, None] + (NODES + 1) / 2) / grid
    pieces = (phi(inner) * WEIGHTS).sum(1) / (2 * grid)
    with np.errstate(invalid="ignore"):
        left = np.cumsum(pieces) / x[1:]
        right = np.cumsum(pieces[::-1]) / x[1:]
    left, right = np.r_[values[0], left], np.r_[values[-1], right]
    least = np.minimum.accumulate(values)
    return {
        "xi_box": values.max() / values.min(),
        "xi_tri": (values / least[::-1]).max(),
        "kappa_A": (np.maximum.accumulate(left) / right).max(),
        "kappa_B": (right / np.minimum.accumulate(left)).max(),
        "rho_M": (values[::-1] / values).max(),
        "R_G": (left / right).max(),
        "R_mirror": (right / left).max(),
    }


def exponentials():
    draw = random.Random(1)
    gammas = [0.0, 0.5, 1.0, *(draw.random() for _ in range(9))]
    betas = [
        -60.0,
        60.0,
        1e-9,
        0.0,
        *(draw.choice((-1, 1)) * 10 ** draw.uniform(-2, 1.7) for _ in range(20)),
    ]
    return [Exponential(-draw.uniform(0.1, 5), beta, gamma) for beta in betas for gamma in gammas]


def quadratics():
    draw = random.Random(2)
    found = []
    for gamma in [0.0, 0.5, 1.0, *(draw.random() for _ in range(27))]:
        floor = -1 / max(gamma, 1 - gamma) ** 2
        for r in (
            *(10 ** draw.uniform(-2, 3) for _ in range(6)),
            *(floor * draw.uniform(0, 0.99) for _ in range(4)),
            floor * 0.9999,
            0.0,
        ):
            scale = draw.uniform(0.1, 5)
            found.append(Quadratic(-scale * r, -scale, gamma))
    return found


def steepness(function):
    """The largest change of log phi over one step of a grid of unit length."""
    x = torch.linspace(0, 1, 100_001)
    return float(function.density(x).log().diff().abs().max()) * 100_000


FAMILIES = {"exponential": exponentials, "quadratic": quadratics}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_closed_form_table_and_brute_force_agree(family):
    functions = FAMILIES[family]()
    assert len(functions) >= 250
    for function in functions:
        found = ratios(function)
        closed = seven(found)
        table = enclose(function, CELLS)
        bounds = ratios(function, table=table)
        sampled = brute(lambda x, f=function: f.density(torch.from_numpy(x)).numpy())
        reach = math.exp(3 * steepness(function) / GRID)
        assert found.exact
        assert found.certified
        assert bounds.certified
        assert not bounds.exact
        for name, value in closed.items():
            context = (str(function), name, value)
            assert value >= 1, context
            assert getattr(bounds, name) >= value * (1 - 1e-12), context
            assert getattr(bounds, name) <= value * table.excess, context
            assert sampled[name] <= value * (1 + 1e-11), context
            assert sampled[name] * reach >= value, context
        assert closed["R_G"] <= closed["kappa_A"] <= closed["xi_tri"] <= closed["xi_box"]
        assert closed["R_mirror"] <= closed["kappa_B"] <= closed["xi_tri"]
        assert max(closed["R_G"], closed["R_mirror"]) <= closed["rho_M"]
        assert closed["rho_M"] <= closed["xi_tri"]


def test_the_excess_falls_like_one_over_the_cells():
    """At most L/N times 4 to first order, L the Lipschitz constant of log phi."""
    for function in (Exponential(-1.0, -8.0, 0.3), Quadratic(-24.0, -1.0, 0.75)):
        for cells in (1000, 4000):
            table = enclose(function, cells)
            assert table.excess <= math.exp(4 * steepness(function) / cells) * (1 + 1e-9)
    gentle = enclose(Exponential(-1.0, 2.0, 0.5), 4000)
    assert gentle.excess < 1.0025


@pytest.mark.parametrize(
    ("beta", "gamma"),
    [(-60, 0), (-60, 0.3), (60, 0.3), (60, 0.9), (-8, 0.5), (5, 0.6), (0.01, 0.4), (-30, 0.95)],
)
def test_steep_exponentials_against_forty_digits(beta, gamma):
    found = ratios(Exponential(-1.0, beta, gamma))
    with mpmath.workdps(40):
        b, g = mpmath.mpf(beta), mpmath.mpf(gamma)
        root = mpmath.sqrt(b)  # imaginary for a peak: erfi becomes erf

        def area(low, high):
            ends = (mpmath.erfi(root * (e - g)) for e in (high, low))
            return mpmath.re(mpmath.sqrt(mpmath.pi) / (2 * root) * (next(ends) - next(ends)))

        points = [mpmath.mpf(k) / 400 for k in range(1, 401)]
        left = [mpmath.exp(b * g**2), *(area(0, x) / x for x in points)]
        right = [mpmath.exp(b * (1 - g) ** 2), *(area(1 - x, 1) / x for x in points)]
        most, least, case_a, case_b = left[0], left[0], [], []
        for near, far in zip(left, right, strict=True):
            most, least = max(most, near), min(least, near)
            case_a.append(most / far)
            case_b.append(far / least)
        for value, sampled in ((found.kappa_A, max(case_a)), (found.kappa_B, max(case_b))):
            assert sampled <= value * (1 + mpmath.mpf(1e-12))
            assert value <= sampled * mpmath.mpf(1.02)


def test_published_examples():
    narrow = ratios(Quadratic(1.0, -1.0, 0.3))
    assert narrow.xi_box == pytest.approx(1 / 0.51)
    assert narrow.xi_tri == pytest.approx(0.91 / 0.51)
    even = ratios(Exponential(-1.0, -8.0, 0.5))
    assert even.xi_tri == pytest.approx(math.exp(2))
    assert even.rho_M == even.R_G == even.R_mirror == 1
    for falling in (Quadratic(-2.0, -1.0, 1.0), Exponential(-1.0, math.log(3), 1.0)):
        found = ratios(falling)
        assert found.R_G == found.kappa_A == pytest.approx(3)
        assert found.kappa_B == pytest.approx(1)
    rising = ratios(Exponential(-1.0, 2.0, 0.0))
    assert rising.kappa_A == pytest.approx(1)
    assert rising.kappa_B == rising.R_mirror == pytest.approx(math.exp(2))


def test_an_interior_maximum_is_attained_and_an_end_only_approached():
    inside = ratios(Quadratic(-24.0, -1.0, 0.75))
    assert inside.attained
    assert inside.R_G == 7
    assert inside.R_mirror == 1
    a, mirrored = (1 + 24 * 0.75**2), (1 + 24 * 0.25**2)
    assert a / mirrored == pytest.approx(5.8)
    assert not ratios(Quadratic(-24.0, -1.0, 0.25)).attained
    assert not ratios(Quadratic(-2.0, -1.0, 0.75)).attained
    assert not ratios(Exponential(-1.0, 50.0, 0.75)).attained
    # 1 is the value at m = 1 of every density, and no reason for strictness
    assert not ratios(base.Linear()).attained
    assert ratios(Unknown()).attained


def test_a_monotone_density_that_is_flat_at_both_ends_attains_its_ratio():
    class Steps(base.BaseFunction):
        def density(self, p):
            return (2 - 5 * (p - 0.4)).clamp(1, 2)

        def value(self, at):
            raise NotImplementedError

        cumulative = value

        def turning_points(self):
            return ()

    found = ratios(Steps())
    assert found.R_G == 2
    assert found.attained


def test_one_scalar_root_may_be_missing():
    """The running mean of a density that only just turns is monotone: it ends before it turns."""
    for beta in (-3.0, 3.0):
        found = ratios(Exponential(-1.0, beta, 0.97))
        sampled = brute(lambda x, b=beta: np.exp(b * (x - 0.97) ** 2))
        for name in ("kappa_A", "kappa_B"):
            assert sampled[name] <= getattr(found, name) * (1 + 1e-11)
            assert getattr(found, name) == pytest.approx(sampled[name], rel=1e-2)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (base.Linear(9.21), 1),
        (base.MirroredPower(1.5, 3.0), 9),
        (base.MirroredPower(5, 2.0), 1.25),
        (base.MirroredPower(1.5, 0.9), 1),
        (base.ShiftedPower(0.6, 0.6), (1.6 / 0.6) ** 0.4),
        (base.ShiftedPower(6, 1.5), 1),
        (base.ExponentialDecay(2.5), math.exp(1 / 2.5)),
        (base.Taylor(1), 1),
        (base.Taylor(6), 6),
        (base.HuberLog(10.0), 10),
        (base.HuberPower(0.7, 10.0), 10),
        (base.ShiftedLog(0.25), 5),
        (base.Power(2.0), 1),
        (base.Power(0.7), math.inf),
        (base.Log(), math.inf),
        (base.Focal(2.0), math.inf),
        (base.JensenShannon(0.5), math.inf),
    ],
    ids=str,
)
def test_asymmetry_ratios_of_published_losses(function, expected):
    found = ratios(function)
    assert found.exact
    assert found.certified
    assert found.kappa_A == pytest.approx(expected)
    assert found.kappa_A == found.R_G
    assert found.xi_box == found.xi_tri == found.rho_M
    bounds = ratios(function, table=enclose(function))
    for name in NAMES:
        # the first cell of an unbounded density has no upper bound, so its table may know less
        assert getattr(bounds, name) >= getattr(found, name) * (1 - 1e-12)
    if math.isfinite(found.xi_box):
        for name in NAMES:
            assert getattr(bounds, name) <= getattr(found, name) * enclose(function).excess


def test_rising_bases_fail_pointwise_by_the_inverse_ratio():
    found = ratios(base.ShiftedPower(0.5, 3.0))
    assert found.xi_tri == found.rho_M == found.kappa_B == pytest.approx(9)


def test_unbounded_bases_prove_nothing_away_from_the_target():
    """With h(0) infinite every face of the simplex is as good as the target's vertex."""
    for function in (base.Log(), base.Focal(2.0)):
        for found in (ratios(function), ratios(function, table=enclose(function))):
            assert found.kappa_B == found.R_mirror == math.inf


class Unknown(base.BaseFunction):
    def density(self, p):
        return 2 + torch.sin(9 * p)

    def value(self, at):
        raise NotImplementedError

    cumulative = value


def test_nothing_known_is_uncertified_and_intervals_certify_it():
    sampled = ratios(Unknown())
    proved = ratios(Unknown(), table=from_intervals(lambda x: 2 + (9 * x).sin()))
    assert not sampled.certified
    assert not sampled.exact
    assert sampled.cells == 4000
    assert proved.certified
    for name, value in brute(lambda x: 2 + np.sin(9 * x)).items():
        assert value <= getattr(proved, name) * (1 + 1e-12)
        assert getattr(proved, name) == pytest.approx(value, rel=0.02)


def test_a_series_gives_certified_bounds():
    function = base.from_derivative(lambda x: -torch.exp(8 * x * torch.sin(3 * x)))
    found = ratios(function)
    assert found.certified
    for name, value in brute(lambda x: np.exp(8 * x * np.sin(3 * x))).items():
        assert value <= getattr(found, name) * (1 + 1e-12)
        assert getattr(found, name) == pytest.approx(value, rel=0.05)


def test_coarse_tables_of_random_polygons_are_never_below_brute_force():
    """Few cells and large changes inside each: nothing is hidden by a fine grid."""
    draw = np.random.default_rng(3)
    for _ in range(200):
        n = int(draw.integers(1, 9))
        knots = draw.random(n + 1) ** 3 + 0.01
        low, high = (torch.from_numpy(f(knots[:-1], knots[1:])) for f in (np.minimum, np.maximum))
        found = ratios(Unknown(), table=Table(low, high, True, "polygon"))
        ends = np.arange(n + 1) / n
        sampled = brute(lambda x, e=ends, k=knots: np.interp(x, e, k), 840)
        for name in NAMES:
            assert sampled[name] <= getattr(found, name) * (1 + 1e-9), name


def test_truncation_is_handled_without_division_of_zeros():
    found = ratios(base.Truncated(base.Log(), 0.1))
    assert found.certified
    assert found.xi_tri == found.rho_M == found.kappa_B == math.inf
    with np.errstate(divide="ignore"):
        grid = np.arange(1, 100_001) / 100_000
        left = np.log(np.maximum(grid, 0.1) / 0.1) / grid
        right = -np.log(np.maximum(1 - grid, 0.1)) / grid
    assert pytest.approx((left / right).max(), rel=1e-2) == found.R_G
    assert (left / right).max() <= found.R_G


WITNESSED = [
    Exponential(-1.0, -8.0, 0.3),
    Exponential(-1.0, 8.0, 0.2),
    Exponential(-1.0, 60.0, 0.9),
    Quadratic(-24.0, -1.0, 0.75),
    Quadratic(-200.0, -1.0, 0.45),
    Quadratic(0.9, -1.0, 0.2),
    base.Taylor(6),
    base.HuberLog(10.0),
    base.ShiftedPower(0.5, 3.0),
]


@pytest.mark.parametrize("function", WITNESSED, ids=str)
def test_worst_points_attain_the_pointwise_ratios(function):
    found = ratios(function)
    x, y = worst_transfer(function)
    p = worst_pair(function)
    assert x >= 0
    assert y >= 0
    assert x + y <= 1
    assert float(function.phi(y) / function.phi(x)) == pytest.approx(found.xi_tri, rel=1e-7)
    assert float(function.phi(1 - p) / function.phi(p)) == pytest.approx(found.rho_M, rel=1e-7)


@pytest.mark.parametrize("function", [base.Log(), base.Power(0.5), base.Focal(2.0)], ids=str)
def test_worst_points_of_unbounded_densities_are_finite(function):
    x, y = worst_transfer(function)
    p = worst_pair(function)
    assert 0 < y < 1e-9
    assert 0 < x < 1
    assert 1 - 1e-9 < p < 1
    assert math.isfinite(float(function.phi(y)))


def test_worst_points_of_coarse_grids_are_refined():
    function = Unknown()
    x, y = worst_transfer(function, 50)
    exact = ratios(function, table=from_intervals(lambda x: 2 + (9 * x).sin(), 20_000))
    assert float(function.phi(y) / function.phi(x)) == pytest.approx(exact.xi_tri, rel=5e-3)

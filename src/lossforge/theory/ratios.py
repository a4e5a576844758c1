r"""How unequal a density is: the ratios that decide what a loss withstands.

With :math:`H(x) = \int_0^x \varphi` and the running means :math:`q(x) = H(x) / x` from the left end
and :math:`\bar q(m) = (H(1) - H(1 - m)) / m` from the right one, the ratios are suprema of

========  ===============================================  ==================================
xi_box    phi(y) / phi(x)                                  x, y in [0, 1]
xi_tri    phi(y) / phi(x)                                  x + y <= 1
rho_M     phi(1 - p) / phi(p)                              p in [0, 1]
kappa_A   max of q on (0, m], by the right mean at m       m in (0, 1]
kappa_B   the right mean at m, by the min of q on (0, m]   m in (0, 1]
R_G       q(m) by the right mean at m                      m in (0, 1]
R_mirror  the right mean at m by q(m)                      m in (0, 1]
========  ===============================================  ==================================

All are 1 or more, and R_G <= kappa_A <= xi_tri <= xi_box, R_mirror <= kappa_B <= xi_tri,
max(R_G, R_mirror) <= rho_M <= xi_tri.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from ..base import BaseFunction, Exponential, Quadratic
from .enclosure import CELLS, Table, enclose, quotient

_UP = 1 + 2.0**-50  # outward rounding of a quotient or two
_ROUNDS, _PARTS = 9, 64  # of the search for a turn: 54 bits
_NEAR = 2.0**-20  # closer to an end than anything a strictly monotone density calls flat

_Seven = tuple[float, float, float, float, float, float, float]


@dataclass(frozen=True)
class Ratios:
    """The ratios of a density, or upper bounds of them.

    Attributes:
        certified: Whether the numbers are proved to be upper bounds.
        exact: Whether they come from closed forms, accurate to rounding.
        attained: Whether R_G is, or may be, attained at some m in (0, 1) and above 1; a criterion
            R_G <= Q then has to be strict.
        cells: Of the table, if one was used.
        how: Where the numbers come from, in words.
    """

    xi_box: float
    xi_tri: float
    kappa_A: float  # noqa: N815 - the mathematics' own name
    kappa_B: float  # noqa: N815 - the mathematics' own name
    rho_M: float  # noqa: N815 - the mathematics' own name
    R_G: float
    R_mirror: float
    certified: bool
    exact: bool
    attained: bool
    cells: int | None
    how: str


def ratios(base: BaseFunction, cells: int = CELLS, table: Table | None = None) -> Ratios:
    """The ratios of a base function's density.

    Closed forms for `Exponential`, `Quadratic` and every density that is known to be monotone;
    otherwise, or if a `table` is given, upper bounds from a table.

    Example:
        >>> ratios(Quadratic(alpha=-24.0, beta=-1.0, gamma=0.75)).R_G
        7.0
    """
    if table is None:
        if type(base) is Exponential:
            return _exponential(base)
        if type(base) is Quadratic:
            return _quadratic(base)
        if base.turning_points() == ():
            return _monotone(base)
        table = enclose(base, cells)
    found = from_table(table)
    return found if base.bounded else without_bound(found)


def without_bound(found: Ratios) -> Ratios:
    """With h(0) infinite no difference of integrals bounds what happens at the other vertices."""
    return replace(found, kappa_B=math.inf, R_mirror=math.inf)


def from_table(table: Table) -> Ratios:
    """Every ratio from cumulative maxima, minima and sums.

    Between grid points the bounds of H and of its mirror image are linear, so that a quotient of
    two of them, or of one and its argument, is monotone there and largest at a grid point.
    """
    low, high, n = table.low, table.high, table.cells
    behind = table.mirrored()
    upper, lower = table.upper_integrals()[1:], table.lower_integrals()[1:]
    upper_end, lower_end = behind.upper_integrals()[1:], behind.lower_integrals()[1:]
    x = torch.arange(1, n + 1, dtype=low.dtype, device=low.device) / n

    # cells i and j meet the triangle where i + j <= n
    reachable = low.cummin(0).values[(n - torch.arange(n)).clamp(max=n - 1)]
    box = _largest(high.max(), low.min())
    tri = min(box, _largest(high, reachable))
    rho = min(tri, _largest(high.flip(0), low))
    most, least = (upper / x).cummax(0).values, (lower / x).cummin(0).values
    end_least = torch.minimum(lower_end / x, _shifted(lower_end / x))
    end_most = torch.maximum(upper_end / x, _shifted(upper_end / x))
    kappa_a, kappa_b = min(tri, _largest(most, end_least)), min(tri, _largest(end_most, least))
    return Ratios(
        xi_box=box,
        xi_tri=tri,
        kappa_A=kappa_a,
        kappa_B=kappa_b,
        rho_M=rho,
        R_G=min(kappa_a, rho, _largest(upper, lower_end)),
        R_mirror=min(kappa_b, rho, _largest(upper_end, lower)),
        certified=table.certified,
        exact=False,
        attained=True,
        cells=n,
        how=table.how,
    )


def _shifted(values: Tensor) -> Tensor:
    """The values at the left ends of cells; the first cell's own at 0."""
    return torch.cat([values[:1], values[:-1]])


def _largest(upper: Tensor, lower: Tensor) -> float:
    largest = float(quotient(upper, lower).nan_to_num(nan=math.inf).max())
    return max(1.0, largest * _UP)


def _monotone(base: BaseFunction) -> Ratios:
    """A falling density exceeds the mirrored one by its end values, a rising one never in mean."""
    x = torch.tensor([0.0, _NEAR, 1 - _NEAR, 1.0], dtype=torch.float64, device="cpu")
    first, second, third, last = base.density(x).to(torch.float64).tolist()
    falls = first >= last
    steep, even = (_ratio(first, last), 1.0) if falls else (1.0, _ratio(last, first))
    whole = max(steep, even)
    if not base.bounded:
        even = math.inf
    flat = first == second and third == last
    return _closed(
        (whole, whole, steep, even, whole, steep, even),
        attained=steep > 1 and flat,
        how="the end values of a monotone density",
    )


@lru_cache(maxsize=1024)
def _exponential(base: Exponential) -> Ratios:
    beta, gamma = base.beta, base.gamma
    mean, mirrored = base.means
    # q / mirrored q is monotone, for phi(x) / phi(1 - x) = exp(beta (1 - 2 gamma) (2x - 1)) is
    kappas = _kappas(
        beta > 0,
        _of_numbers(mean),
        _of_numbers(mirrored),
        _stationary(base.density, mean, gamma),
        _stationary(lambda y: base.density(1 - y), mirrored, 1 - gamma),
        (),
    )
    box, tri = max(gamma, 1 - gamma) ** 2, max(1 - 2 * gamma, gamma * gamma)
    tilt = beta * (1 - 2 * gamma)
    return _closed(
        (
            _exp(abs(beta) * box),
            _exp(abs(beta) * tri),
            *kappas,
            _exp(abs(tilt)),
            _exp(max(0.0, -tilt)),
            _exp(max(0.0, tilt)),
        ),
        attained=False,
        how="closed form of the exponential density",
    )


def _quadratic(base: Quadratic) -> Ratios:
    r, gamma = base.alpha / base.beta, base.gamma
    delta = 0.5 - gamma

    def density(distance: float) -> float:
        return 1 + r * distance * distance

    def mean_about(centre: float) -> Callable[[float], float]:
        return lambda x: 1 + r * (x * x / 3 - centre * x + centre * centre)

    mean, mirrored = mean_about(gamma), mean_about(1 - gamma)
    # q / mirrored q - 1 is r (2 gamma - 1) (1 - x) / mirrored q, stationary at `turn` and in no
    # other point of [0, 1]
    square = 1 + 3 / r - 3 * gamma * (1 - gamma) if r else -1.0
    turn = 1 - math.sqrt(square) if square >= 0 else -1.0
    turns = (turn,) if 0 < turn < 1 else ()
    stationary = min(1.0, 1.5 * gamma), min(1.0, 1.5 * (1 - gamma))
    kappas = _kappas(r > 0, mean, mirrored, *stationary, turns)

    farthest, centre = density(max(gamma, 1 - gamma)), density(gamma)
    v = min(0.5, math.sqrt(1 / r + delta**2)) if r > 0 else 0.5
    across = _either(_ratio(density(abs(delta) + v), density(abs(delta) - v)))
    tri = max(_either(centre), across if delta > 0 else 1.0)
    towards = [_ratio(mean(x), mirrored(x)) for x in (0.0, *turns)]
    peak = max(1.0, *towards)
    return _closed(
        (
            _either(farthest),
            tri,
            *kappas,
            across,
            peak,
            max(1.0, *(_ratio(1.0, value) for value in towards)),
        ),
        attained=peak > 1 and peak > towards[0],
        how="closed form of the quadratic density",
    )


def _kappas(
    dips: bool,
    mean: Callable[[float], float],
    mirrored: Callable[[float], float],
    stationary: float,
    mirrored_stationary: float,
    turns: tuple[float, ...],
) -> tuple[float, float]:
    """kappa_A and kappa_B of a density that dips (or peaks) once, from its running means.

    The means then dip (or peak) once too, at the stationary points. `turns` are those of their
    quotient.
    """

    def extreme(over: bool, end: float) -> float:
        points = (0.0, *(t for t in turns if t < end), end)
        pairs = ((mean(x), mirrored(x)) for x in points)
        return max(_ratio(a, b) if over else _ratio(b, a) for a, b in pairs)

    start, turn, turned = mean(0.0), mean(stationary), mirrored(mirrored_stationary)
    if dips:
        kappa_a = max(_ratio(start, turned), extreme(True, 1.0))
        kappa_b = max(extreme(False, stationary), _ratio(mirrored(1.0), turn))
    else:
        kappa_a = max(extreme(True, stationary), _ratio(turn, mirrored(1.0)))
        kappa_b = max(_ratio(turned, start), extreme(False, 1.0))
    return max(1.0, kappa_a), max(1.0, kappa_b)


def _of_numbers(function: Callable[[Tensor], Tensor]) -> Callable[[float], float]:
    return lambda x: float(function(torch.tensor([x], dtype=torch.float64, device="cpu")))


def _stationary(
    density: Callable[[Tensor], Tensor], mean: Callable[[Tensor], Tensor], centre: float
) -> float:
    """Where the running mean turns: it meets the density once beyond the centre, or ends first."""
    if centre == 0:
        return 0.0
    low, high = centre, 1.0
    for _ in range(_ROUNDS):
        x = torch.linspace(low, high, _PARTS + 1, dtype=torch.float64, device="cpu")
        above = density(x) > mean(x)
        turned = (above != above[0]).nonzero()
        if not len(turned):
            return high
        place = int(turned[0])
        low, high = float(x[place - 1]), float(x[place])
    return high


def _closed(values: _Seven, *, attained: bool, how: str) -> Ratios:
    box, tri, kappa_a, kappa_b, rho, towards, away = values
    # rounding must not upset the order
    tri = min(tri, box)
    rho = min(rho, tri)
    towards, away = min(towards, rho), min(away, rho)
    kappa_a, kappa_b = max(towards, min(kappa_a, tri)), max(away, min(kappa_b, tri))
    seven = (box, tri, kappa_a, kappa_b, rho, towards, away)
    return Ratios(*seven, certified=True, exact=True, attained=attained, cells=None, how=how)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf


def _either(ratio: float) -> float:
    return max(ratio, _ratio(1.0, ratio))


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf

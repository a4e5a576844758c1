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

A table gives upper bounds, rounded outwards. A closed form is never below the supremum by more than
a relative 2^-41, half of the slack that the ratio tests grant:

* f2 is evaluated in rational arithmetic and rounded once, 2^-52 however small a density gets;
* the pointwise ratios of f1 are exp(c), c a product of three factors, hence within
  (5 |c| + 4) 2^-53, and c < 709;
* running means of f1 and end values of monotone densities are trusted as tables trust a density
  (see `enclosure.relative_error`); where two of them may be off by more, the ratio is raised.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import torch
from torch import Tensor

from ..base import BaseFunction, Exponential, Quadratic
from .enclosure import CELLS, Table, enclose, quotient, relative_error

_UP = 1 + 2.0**-50  # outward rounding of a quotient or two
TRUSTED = 2.0**-41  # relative error that the ratio tests forgive, and more
_ROUNDS, _PARTS = 9, 64  # of the search for a turn: 54 bits
_NEAR = 2.0**-20  # closer to an end than anything a strictly monotone density calls flat

_HALF = Fraction(1, 2)

_Number = Fraction | float
_Seven = tuple[_Number, _Number, _Number, _Number, _Number, _Number, _Number]


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
        # what derives from a quadratic may cancel, which a table allows for
        if base.turning_points() == () and not isinstance(base, Quadratic):
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
    whole = max(first, last) / min(first, last) if 0 < min(first, last) < math.inf else math.inf
    error = relative_error(base, math.log(whole))
    whole = _raised(whole, error)
    steep, even = (whole, 1.0) if falls else (1.0, whole)
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
    kappa_a, kappa_b = _kappas(
        beta > 0,
        _of_numbers(mean),
        _of_numbers(mirrored),
        _stationary(base.density, mean, gamma),
        _stationary(lambda y: base.density(1 - y), mirrored, 1 - gamma),
        (),
    )
    error = relative_error(base, abs(beta))
    box, tri = max(gamma, 1 - gamma) ** 2, max(1 - 2 * gamma, gamma * gamma)
    tilt = beta * (1 - 2 * gamma)
    return _closed(
        (
            _exp(abs(beta) * box),
            _exp(abs(beta) * tri),
            _raised(kappa_a, error),
            _raised(kappa_b, error),
            _exp(abs(tilt)),
            _exp(max(0.0, -tilt)),
            _exp(max(0.0, tilt)),
        ),
        attained=False,
        how="closed form of the exponential density",
    )


def _quadratic(base: Quadratic) -> Ratios:
    """In rational arithmetic: floats are fractions, and no density is too small for it.

    The two square roots are right to 256 bits, and the results are rounded to the nearest float:
    each is within a relative 2^-52 of the supremum.
    """
    r = Fraction(float(base.alpha)) / Fraction(float(base.beta))
    gamma = Fraction(float(base.gamma))

    def density(distance: Fraction) -> Fraction:
        return 1 + r * distance * distance

    def mean_about(centre: Fraction) -> Callable[[_Number], Fraction]:
        return lambda x: 1 + r * (Fraction(x) ** 2 / 3 - centre * Fraction(x) + centre * centre)

    mean, mirrored = mean_about(gamma), mean_about(1 - gamma)
    turns = _turns(r, gamma)
    stationary = min(Fraction(1), gamma * 3 / 2), min(Fraction(1), (1 - gamma) * 3 / 2)
    kappas = _kappas(r > 0, mean, mirrored, *stationary, turns)

    farthest, centre = density(max(gamma, 1 - gamma)), density(gamma)
    away = abs(gamma - _HALF)
    # at most 1/2 from the middle, and nearer where that is a maximum
    square = 1 / r + away * away if r > 0 else _HALF
    if square < _HALF**2:
        across: _Number = r * (_root(square) + away) ** 2 if away else 1
    else:
        across = _ratio(density(away + _HALF), density(away - _HALF))
    tri = max(_either(centre), _either(across) if gamma < _HALF else 1)
    towards = [_ratio(mean(0), mirrored(0)), *(value for _, value in turns)]
    return _closed(
        (
            _either(farthest),
            tri,
            *kappas,
            _either(across),
            max(1, *towards),
            max(1, *(_ratio(1, value) for value in towards)),
        ),
        attained=max(towards) > max(1, towards[0]),
        how="closed form of the quadratic density",
    )


def _turns(r: Fraction, gamma: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    """Where in (0, 1) the quotient of a quadratic's running means is stationary, and its value.

    With y = 1 - x the quotient less 1 is (2 gamma - 1) / (y / 3 + square / (3 y) + 1/3 - gamma),
    stationary at the root of the square and nowhere else. If r < 0 there is no such point: a
    positive density has -1/r > max(gamma, 1 - gamma)^2, and the square is negative.
    """
    square = 1 + 3 / r - 3 * gamma * (1 - gamma) if r > 0 else Fraction(1)
    if square >= 1:
        return ()
    y = _root(square)
    return ((1 - y, 1 + (2 * gamma - 1) / (2 * y / 3 + Fraction(1, 3) - gamma)),)


def _root(square: Fraction) -> Fraction:
    """The square root, rounded down by less than a relative 2^-256; exact where it is rational."""
    n, d = square.as_integer_ratio()
    return Fraction(math.isqrt(n * d << 512), d << 256)


def _kappas(
    dips: bool,
    mean: Callable[[_Number], _Number],
    mirrored: Callable[[_Number], _Number],
    stationary: _Number,
    mirrored_stationary: _Number,
    turns: tuple[tuple[Fraction, Fraction], ...],
) -> tuple[_Number, _Number]:
    """kappa_A and kappa_B of a density that dips (or peaks) once, from its running means.

    The means then dip (or peak) once too, at the stationary points. `turns` are those of their
    quotient, with its values.
    """

    def extreme(over: bool, end: _Number) -> _Number:
        pairs: list[tuple[_Number, _Number]] = [(mean(x), mirrored(x)) for x in (0, end)]
        pairs += [(value, 1) for x, value in turns if x < end]
        return max(_ratio(a, b) if over else _ratio(b, a) for a, b in pairs)

    start, turn, turned = mean(0), mean(stationary), mirrored(mirrored_stationary)
    if dips:
        kappa_a = max(_ratio(start, turned), extreme(True, 1))
        kappa_b = max(extreme(False, stationary), _ratio(mirrored(1), turn))
    else:
        kappa_a = max(extreme(True, stationary), _ratio(turn, mirrored(1)))
        kappa_b = max(_ratio(turned, start), extreme(False, 1))
    return max(1, kappa_a), max(1, kappa_b)


def _of_numbers(function: Callable[[Tensor], Tensor]) -> Callable[[_Number], float]:
    return lambda x: float(function(torch.tensor([float(x)], dtype=torch.float64, device="cpu")))


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
    box, tri, kappa_a, kappa_b, rho, towards, away = map(_rounded, values)
    # rounding must not upset the order
    tri = min(tri, box)
    rho = min(rho, tri)
    towards, away = min(towards, rho), min(away, rho)
    kappa_a, kappa_b = max(towards, min(kappa_a, tri)), max(away, min(kappa_b, tri))
    seven = (box, tri, kappa_a, kappa_b, rho, towards, away)
    return Ratios(*seven, certified=True, exact=True, attained=attained, cells=None, how=how)


def _raised(ratio: _Number, error: float) -> float:
    """A ratio of two values with this relative error, raised by what would not be forgiven."""
    return float(ratio) * (1 + max(0.0, 2 * error - TRUSTED)) if ratio > 1 else 1.0


def _rounded(value: _Number) -> float:
    """The nearest float, but 1 for 1 alone; infinite beyond the largest."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(1.0, 2.0) if nearest == 1 < value else nearest


def _ratio(a: _Number, b: _Number) -> _Number:
    return a / b if b > 0 else math.inf


def _either(ratio: _Number) -> _Number:
    return max(ratio, _ratio(1, ratio))


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf

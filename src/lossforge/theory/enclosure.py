r"""Tables that enclose a density cell by cell, with outward rounding.

What is proved is proved for the density as a real function. The computed one is trusted to a
relative error of 32 eps (1 + L + q), where L is the logarithm of its range and q the exponent of a
power: L covers exponentials, whose error is that of their argument, and q powers of a rounded base.
A `Quadratic` may cancel and gets an absolute error besides; for a `Series` the error of the
recurrence is bounded from the coefficients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..base import BaseFunction, Quadratic, Series, Truncated
from ..errors import check_integer, extra
from ..numerics import evaluate

CELLS = 4000  # of a table: bounds of f1 and f2 within a quarter of a percent
_EPS = 2.0**-52
_SLACK = 32 * _EPS


@dataclass(frozen=True, eq=False)
class Table:
    r"""Bounds of a density on the N cells [i/N, (i + 1)/N].

    Attributes:
        low: Lower bounds, 0 or more.
        high: Upper bounds; infinite where none is known.
        certified: Whether the bounds are proved, or sampled.
        how: Where they come from, in words.
    """

    low: Tensor
    high: Tensor
    certified: bool
    how: str

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape or self.low.dim() != 1 or not len(self.low):
            raise ValueError(
                "low and high must be two vectors of the same length, got shapes "
                f"{tuple(self.low.shape)} and {tuple(self.high.shape)}"
            )
        for name in ("low", "high"):
            object.__setattr__(self, name, getattr(self, name).to("cpu", torch.float64))
        if not ((self.low >= 0) & (self.low <= self.high)).all():
            raise ValueError("low and high must satisfy 0 <= low <= high in every cell")
        # what overflowed is at least the largest number
        object.__setattr__(self, "low", self.low.clamp(max=torch.finfo(torch.float64).max))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.low)

    @property
    def excess(self) -> float:
        """A factor by which no bound of `ratios` exceeds the ratio itself.

        With s the largest high / low of a cell, a sum or a value is off by s and there are two in
        a ratio; where a ratio compares neighbouring cells, points 1/N apart differ by another s^2.
        A density with a Lipschitz constant L and a minimum m gives 1 + O(L / (m N)).
        """
        spread = float(quotient(self.high, self.low).max())
        return float(max(1.0, spread) ** 4 * (1 + 20 * self.cells * _EPS))

    def lower_integrals(self) -> Tensor:
        """Lower bounds of H at 0, 1/N, ..., 1."""
        return _sums(self.low) * (1 - 4 * self.cells * _EPS)

    def upper_integrals(self) -> Tensor:
        """Upper bounds of H at 0, 1/N, ..., 1."""
        return _sums(self.high) * (1 + 4 * self.cells * _EPS)

    def means(self) -> "Table":
        r"""Bounds of the running mean H(x) / x on the same cells, of the density at x = 0.

        Within a cell the bounds of H are linear, and a linear function over x is monotone: its
        extremes are at the ends.
        """
        x = torch.arange(1, self.cells + 1, dtype=self.low.dtype) / self.cells
        least, most = self.lower_integrals()[1:] / x, self.upper_integrals()[1:] / x
        least, most = (
            torch.cat([first[:1], ends]) for first, ends in ((self.low, least), (self.high, most))
        )
        return Table(
            torch.minimum(least[:-1], least[1:]) * (1 - 4 * _EPS),
            torch.maximum(most[:-1], most[1:]) * (1 + 4 * _EPS),
            self.certified,
            self.how,
        )

    def mirrored(self) -> "Table":
        """The table of x -> phi(1 - x)."""
        return Table(self.low.flip(0), self.high.flip(0), self.certified, self.how)


def enclose(base: BaseFunction, cells: int = CELLS) -> Table:
    """Bounds of a base function's density on `cells` equal cells.

    Exact (up to rounding) where the base knows its turning points, from the coefficients of a
    `Series`, from `BaseFunction.lipschitz` if that is set; otherwise sampled and not certified.

    Raises:
        ValueError: if the density is negative, or not a number, where it is evaluated.
    """
    check_integer("cells", cells, 1)
    if type(base) is Series:
        return _from_series(base, cells)
    points = base.turning_points()
    if points is not None:
        return _from_pieces(base, points, cells)
    if base.lipschitz is not None:
        return _from_lipschitz(base, float(base.lipschitz), cells)
    x = torch.arange(2 * cells + 1, dtype=torch.float64, device="cpu") / (2 * cells)
    values = _values(base, x)
    three = torch.stack([values[0:-1:2], values[1::2], values[2::2]])
    return Table(three.amin(0), three.amax(0), False, "sampled at the ends and middles of cells")


def from_intervals(density: Callable[[Any], Any], cells: int = CELLS) -> Table:
    """Bounds of a density from interval arithmetic, proved whatever its shape.

    Args:
        density: The density in terms of ``flint.arb`` balls, e.g. ``lambda x: (-x * x).exp()``.
        cells: The number of cells.

    Example:
        >>> table = from_intervals(lambda x: 2 + (5 * x).sin(), cells=100)
        >>> table.certified, bool((table.low > 0.9).all())
        (True, True)
    """
    check_integer("cells", cells, 1)
    flint = extra("flint", "verify")
    ends = [flint.arb(flint.fmpq(i, cells)) for i in range(cells + 1)]
    low, high = [], []
    for left, right in pairwise(ends):
        ball = flint.arb(density(left.union(right)))
        finite = ball.is_finite()
        low.append(math.nextafter(float(ball.lower()), -math.inf) if finite else 0.0)
        high.append(math.nextafter(float(ball.upper()), math.inf) if finite else math.inf)
    bounds = torch.tensor([low, high], dtype=torch.float64, device="cpu")
    if (bounds[1] < 0).any():
        worst = int((bounds[1] < 0).nonzero()[0])
        raise ValueError(f"density must be 0 or more, got less near x = {worst / cells:g}")
    return Table(bounds[0].clamp(min=0), bounds[1], True, "interval arithmetic")


def _from_pieces(base: BaseFunction, points: tuple[float, ...], cells: int) -> Table:
    # The ends of cells are not floats: one step outwards on either side keeps them inside.
    x = torch.arange(cells + 1, dtype=torch.float64, device="cpu") / cells
    below = torch.nextafter(x, torch.full_like(x, -1)).clamp(min=0)
    above = torch.nextafter(x, torch.full_like(x, 2)).clamp(max=1)
    left, right = _values(base, below[:-1]), _values(base, above[1:])
    low, high = torch.minimum(left, right), torch.maximum(left, right)
    turns = torch.tensor(points, dtype=torch.float64, device="cpu")
    for point, value in zip(points, _values(base, turns).tolist(), strict=True):
        inside = (below[:-1] <= point) & (point <= above[1:])
        low = torch.where(inside, low.clamp(max=value), low)
        high = torch.where(inside, high.clamp(min=value), high)
    return _widened(base, low, high, "monotone between its turning points")


def _from_lipschitz(base: BaseFunction, constant: float, cells: int) -> Table:
    if not 0 <= constant < math.inf:
        raise ValueError(f"lipschitz must be finite and 0 or more, got {constant}")
    x = (torch.arange(cells, dtype=torch.float64, device="cpu") + 0.5) / cells
    values = _values(base, x)
    # the middles are off by a rounding error
    reach = constant * (0.5 / cells + 2 * _EPS)
    return _widened(base, values - reach, values + reach, "a Lipschitz constant")


def _from_series(base: Series, cells: int) -> Table:
    r"""Value and slope at the middle of a cell, and a bound of the second derivative.

    A rounding error in step k of Clenshaw's recurrence acts like a change of c_k, and its terms
    are at most the sum of (j - k + 1) |c_j| over j >= k; summed over k that gives `_rounding`.
    """
    series = base.coefficients
    x = (torch.arange(cells, dtype=torch.float64, device="cpu") + 0.5) / cells
    radius = 0.5 / cells * (1 + 4 * _EPS)
    sizes = [abs(c) for c in series]
    # |T_k''| <= k^2 (k^2 - 1) / 3 on [-1, 1], and the argument is 2x - 1
    curvature = 4 / 3 * math.fsum(c * k**2 * (k**2 - 1) for k, c in enumerate(sizes))
    slope = 2 * evaluate(_differentiated(series), x).abs() + 2 * _rounding(_differentiated(sizes))
    reach = (slope * radius + curvature * radius**2 / 2) * (1 + 16 * _EPS) + _rounding(sizes)
    middle = evaluate(series, x)
    low, high = middle - reach, middle + reach
    if base.logarithmic:
        low, high = torch.exp(low), torch.exp(high)
    low, high = low * (1 - 8 * _EPS), high * (1 + 8 * _EPS)
    return Table(low.clamp(min=0), high.clamp(min=0), True, "a bound from the series' coefficients")


def _differentiated(series: tuple[float, ...] | list[float]) -> list[float]:
    """Coefficients of the derivative by t = 2x - 1, never empty."""
    result = [0.0] * (len(series) + 1)
    for k in range(len(series) - 1, 0, -1):
        result[k - 1] = result[k + 1] + 2 * k * series[k]
    result[0] /= 2
    return result[: max(1, len(series) - 1)]


def _rounding(sizes: list[float]) -> float:
    return 16 * _EPS * math.fsum((k + 1) * (k + 2) * c for k, c in enumerate(sizes))


def _values(base: BaseFunction, x: Tensor) -> Tensor:
    values = base.density(x).to(torch.float64)
    wrong = ~(values >= 0)
    if wrong.any():
        worst = int(wrong.nonzero()[0])
        got = f"{float(values[worst]):g} at x = {float(x[worst]):g}"
        raise ValueError(f"the density must be 0 or more on [0, 1], got {got}")
    return values


def _widened(base: BaseFunction, low: Tensor, high: Tensor, how: str) -> Table:
    """Bounds from computed values, opened by what these may be off."""
    useful = high[(high > 0) & torch.isfinite(high)]
    log_range = float(useful.max().log() - useful.min().log()) if len(useful) else 0.0
    relative = relative_error(base, log_range)
    inner = _untruncated(base)
    # alpha d^2 is within 4 eps / 2 of itself, and d within [-1, 1]
    cancels = isinstance(inner, Quadratic)
    absolute = 4 * _EPS * (abs(inner.alpha) + abs(inner.beta)) if cancels else 0.0  # type: ignore[attr-defined]
    low = (low * (1 - relative) - torch.where(low > 0, absolute, 0.0)).clamp(min=0)
    high = high * (1 + relative) + torch.where(high > 0, absolute, 0.0)
    return Table(low, high, True, how)


def relative_error(base: BaseFunction, log_range: float) -> float:
    """What a computed density of this range is trusted to, unless it cancels."""
    inner = _untruncated(base)
    exponent = max(abs(float(getattr(inner, name, 0.0))) for name in ("q", "t"))
    return _SLACK * (1 + log_range + exponent)


def _untruncated(base: BaseFunction) -> BaseFunction:
    while isinstance(base, Truncated):
        base = base.base
    return base


def _sums(values: Tensor) -> Tensor:
    start = torch.zeros(1, dtype=values.dtype, device=values.device)
    return torch.cat([start, values.cumsum(0)]) / len(values)


def quotient(upper: Tensor, lower: Tensor) -> Tensor:
    """Upper / lower where 0 / 0 is no constraint."""
    return torch.where(upper == 0, 0.0, upper / lower)

r"""Positive functions on [0, 1], evaluated with small *relative* error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from ..errors import ApproximationError
from . import chebyshev
from .chebyshev import Function

_CONDITION = 100.0  # rounding errors of a power form may grow by this factor
_WORST_CONDITION = 1e8  # and by this one where the exponential form is not to be had


@dataclass(frozen=True)
class Positive:
    r"""A smooth positive function P on [0, 1] in a form that keeps relative accuracy.

    A gentle P is a polynomial in :math:`s = 2x - 1`, evaluated by powers: a multiplication and an
    addition for each. Where that would cancel (P spans orders of magnitude, or its powers
    alternate), P is the exponential of a straight line plus a Chebyshev series: an exponential
    more, but positive and accurate however small P gets.

    Attributes:
        double: Coefficients for float64.
        single: The fewer that float32 can tell apart.
        line: Value at 0 and rise of the straight line in the exponent; None for the power form.
    """

    double: tuple[float, ...]
    single: tuple[float, ...]
    line: tuple[float, float] | None = None

    @classmethod
    def fit(cls, function: Function) -> "Positive":
        """Represent `function`, choosing the form by its condition number."""
        samples = function(chebyshev.nodes(256))
        smallest, largest = float(samples.min()), float(samples.max())
        if not 0 < smallest <= largest < math.inf:
            raise ApproximationError(
                f"a positive function on [0, 1] is needed, got {smallest:g} to {largest:g}"
            )
        if smallest * _CONDITION >= largest:
            gentle, condition = cls._in_powers(function, smallest)
            if condition <= _CONDITION:
                return gentle
        try:
            return cls._in_exponent(function)
        except ApproximationError:
            # P all but vanishes at an end; a polynomial is still right to its size elsewhere
            steep, condition = cls._in_powers(function, smallest)
            if condition > _WORST_CONDITION:
                raise
            return steep

    @classmethod
    def _in_powers(cls, function: Function, smallest: float) -> "tuple[Positive, float]":
        """The power form, and its condition number where P is smallest."""
        series = chebyshev.fit(function)
        powers = _powers(series)
        short = _powers(chebyshev.chop(series, 2**-25 * smallest))
        return cls(powers, short), sum(map(abs, powers)) / smallest

    @classmethod
    def _in_exponent(cls, function: Function) -> "Positive":
        ends = torch.tensor([0.0, 1.0], dtype=torch.float64, device="cpu")
        start, end = function(ends).log().tolist()
        rise = end - start
        series = chebyshev.fit(lambda x: function(x).log() - (start + rise * x), floor=1.0)
        return cls(series, chebyshev.chop(series, 2**-25), (start, rise))

    def economised(self, reach: float, error: float) -> tuple[float, ...]:
        """The fewest powers of 2x / reach - 1 that give P on [0, reach] to a relative error.

        Only of the power form. If P is even around reach / 2, to that error, so is the result.
        """
        return _economised(self.double, reach, error)

    def __call__(self, x: Tensor) -> Tensor:
        """P(x), in the dtype of `x`."""
        terms = self.double if x.dtype == torch.float64 else self.single
        if self.line is not None:
            start, rise = self.line
            return torch.exp(chebyshev.evaluate(terms, x) + (start + rise * x))
        return _polynomial(terms, 2 * x - 1)


@lru_cache(maxsize=1024)  # copies of a loss, such as that of every epoch, have the same polynomials
def _economised(powers: tuple[float, ...], reach: float, error: float) -> tuple[float, ...]:
    values = _polynomial(powers, 2 * reach * chebyshev.nodes(len(powers)) - 1)
    least = _polynomial(powers, 2 * reach * chebyshev.nodes(256) - 1).min()
    series, room = chebyshev.coefficients(values).tolist(), error * float(least)
    odd = math.fsum(map(abs, series[1::2]))
    if odd <= room:
        series[1::2] = [0.0] * len(series[1::2])
        room -= odd
    while len(series) > 1 and abs(series[-1]) <= room:
        room -= abs(series.pop())
    return _powers(series)


def running_mean(density: Function, degree: int) -> Function:
    r"""The function :math:`x \mapsto \frac1x \int_0^x \text{density}`, by positive quadrature.

    Args:
        density: A positive function that a polynomial of `degree` reproduces.
        degree: At least the degree of that polynomial.
    """
    points, weights = chebyshev.quadrature(degree + 2)

    def mean(x: Tensor) -> Tensor:
        return (density(x[:, None] * points) * weights).sum(-1)

    return mean


def _powers(series: Sequence[float]) -> tuple[float, ...]:
    """Rewrite sum c_k T_k(s) in powers of s; exact up to rounding, summed with fsum."""
    table: list[list[float]] = [[1.0], [0.0, 1.0]]
    while len(table) < len(series):
        # T_{k+1} = 2 s T_k - T_{k-1}
        last, before = table[-1], table[-2]
        doubled = [0.0] + [2 * t for t in last]
        table.append([d - b for d, b in zip(doubled, [*before, 0.0, 0.0], strict=True)])
    return tuple(
        math.fsum(c * row[power] for c, row in zip(series, table, strict=False) if power < len(row))
        for power in range(len(series))
    )


def _polynomial(powers: Sequence[float], s: Tensor) -> Tensor:
    """Even and odd powers apart: two short dependent chains instead of one long one."""
    square = s * s
    odd = _horner(powers[1::2], square).mul_(s) if len(powers) > 1 else 0.0
    return _horner(powers[0::2], square).add_(odd)


def _horner(powers: Sequence[float], s: Tensor) -> Tensor:
    """In place: a value is never differentiated, and eager mode saves the temporaries."""
    result = torch.full_like(s, powers[-1])
    for coefficient in reversed(powers[:-1]):
        result.mul_(s).add_(coefficient)
    return result

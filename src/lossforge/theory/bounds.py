r"""Proofs by enclosure: inequalities checked on cells that cover all predictions.

With x the target's probability and y a rival's of weight w_s, the derivative of the weighted loss
with respect to the target's logit is :math:`-x \sum_s y_s B_s(x, y_s)`,

.. math::
    B_s(x, y) = \Theta_t(x) - \Theta_s(y) + \frac{w_t f(p) - w_s f(1 - p)}{(K - 1) (x + y)^2},
    \qquad p = \frac{x}{x + y}.

B falls as w_s grows, so what holds for the heaviest rival holds for all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..base import BaseFunction
from .enclosure import Table, enclose
from .forms import Form, Mixture, Separation

Tables = Mapping[BaseFunction, Table]
_SMALL = 4e-15  # relative; rounding of the products and sums below
_PAIR_CELLS, _MOST_CELLS, _ROUNDS = 48, 60_000, 6  # of the search for a joint proof


@dataclass(frozen=True)
class Enclosed:
    """Bounds of a density on intervals: the table of a mixture, and its running extremes."""

    table: Table

    def between(self, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds over the intervals from start to stop, all within [0, 1]."""
        cells = len(self.table.low)
        first = (start * cells).floor().long().clamp(0, cells - 1)
        last = ((stop * cells).ceil().long() - 1).clamp(0, cells - 1).maximum(first)
        # two overlapping blocks of a power of two cover the cells from first to last
        level = torch.log2((last - first + 1).double()).floor().long()
        second = last + 1 - 2**level
        low, high = self._extremes
        return (
            torch.minimum(low[level, first], low[level, second]),
            torch.maximum(high[level, first], high[level, second]),
        )

    @cached_property
    def _extremes(self) -> tuple[Tensor, Tensor]:
        """(levels, cells) extremes over blocks of 1, 2, 4, ... cells from each cell on."""
        lows, highs = [self.table.low], [self.table.high]
        step = 1
        while 2 * step <= len(self.table.low):
            low, high = lows[-1], highs[-1]
            shifted_low = torch.cat([low[step:], low[-1:].expand(step)])
            shifted_high = torch.cat([high[step:], high[-1:].expand(step)])
            lows.append(torch.minimum(low, shifted_low))
            highs.append(torch.maximum(high, shifted_high))
            step *= 2
        return torch.stack(lows), torch.stack(highs)


def mixture_table(mixture: Mixture, cells: int, tables: Tables) -> Table:
    """Bounds of a sum of densities."""
    own = [(scale, tables.get(base) or enclose(base, cells)) for scale, base in mixture.parts]
    sizes = {len(table.low) for _, table in own}
    if len(sizes) != 1:
        raise ValueError(f"all tables must have as many cells, got {sorted(sizes)}")
    return Table(
        sum((scale * table.low for scale, table in own), torch.zeros(())),
        sum((scale * table.high for scale, table in own), torch.zeros(())),
        certified=all(table.certified for _, table in own),
        how=", ".join(sorted({table.how for _, table in own})),
    )


class Bounds:
    """Bounds of what a form does in one row: target weight, rivals' weights, their total."""

    def __init__(self, form: Form, cells: int, tables: Tables) -> None:
        self.num_classes = form.num_classes
        self._separation: Separation | None = form.separation
        self._used: list[Table] = []
        self._own = self._others = self._pairs = None
        if form.separation is not None:
            self._own = self._enclosed(form.separation.own, cells, tables)
            if form.separation.others.parts and form.separation.a is None:
                self._others = self._enclosed(form.separation.others, cells, tables)
        if form.reduction is not None:
            self._pairs = self._enclosed(form.reduction, cells, tables)

    def _enclosed(self, mixture: Mixture, cells: int, tables: Tables) -> Enclosed:
        self._used.append(mixture_table(mixture, cells, tables))
        return Enclosed(self._used[-1])

    @property
    def reduces(self) -> bool:
        """Whether there is a binary reduction."""
        return self._pairs is not None

    @property
    def positive(self) -> bool:
        """Whether the densities of targets and of pairs are positive inside [0, 1]."""
        used = [part.table.low[1:-1] for part in (self._own, self._pairs) if part is not None]
        return all(bool((low > 0).all()) for low in used)

    @property
    def certified(self) -> bool:
        """Whether every table is proved."""
        return all(table.certified for table in self._used)

    @property
    def cells(self) -> int:
        return len(self._used[0].low)

    def transfers(self, own: float, rival: float, total: float) -> bool:
        """Whether the separation's effect on the target is at least that on a rival.

        That is Theta_t(x) >= Theta_s(y) for all x + y <= 1; with two classes, where x + y = 1, all
        parts count and the test is on that line alone.
        """
        start = edges(self.cells)
        stop = start + 1 / self.cells
        low, _ = self.theta(own, total, start, stop)
        _, high = self.theta(rival, total, start, stop)
        if self.num_classes == 2:
            gain, _ = self.pair(own, rival, start, stop)
            return bool((low - high.flip(0) + gain >= 0).all())
        # a cell of x meets the cells of y that reach below the line x + y = 1
        worst = torch.cat([high.cummax(0).values, high.max()[None]]).flip(0)[: self.cells]
        return bool((low - worst >= 0).all())

    def joint(self, own: float, rival: float, total: float) -> bool:
        """Whether B >= 0 for all x + y <= 1, by splitting cells until each is proved.

        In coordinates sigma = x + y and p the inequality reads
        (K-1) sigma^2 [Theta_t - Theta_s] + [w_t f(p) - w_s f(1-p)] >= 0, regular down to sigma = 0.
        """
        edge = edges(_PAIR_CELLS)
        cells = torch.cartesian_prod(edge, edge)
        size = 1 / _PAIR_CELLS
        for _ in range(_ROUNDS):
            low, _ = self._joint(own, rival, total, cells, cells + size)
            open_cells = cells[low.isnan() | (low <= 0)]
            if not len(open_cells):
                return True
            middle = open_cells + size / 2
            _, high = self._joint(own, rival, total, middle, middle)
            if 4 * len(open_cells) > _MOST_CELLS or bool((high < 0).any()):
                return False
            size /= 2
            shifts = torch.cartesian_prod(*[torch.tensor([0.0, size], dtype=torch.float64)] * 2)
            cells = (open_cells[:, None] + shifts).reshape(-1, 2)
        return False

    def _joint(
        self, own: float, rival: float, total: float, start: Tensor, stop: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Bounds of the joint inequality over cells (sigma, p)."""
        (s0, p0), (s1, p1) = start.T, stop.T
        pull = self.theta(own, total, p0 * s0, p1 * s1)
        push = self.theta(rival, total, (1 - p1) * s0, (1 - p0) * s1)
        gain, gain_high = self.pair(own, rival, p0, p1)
        least, most = (self.num_classes - 1) * s0**2, (self.num_classes - 1) * s1**2
        low, high = pull[0] - push[1], pull[1] - push[0]
        low = low * torch.where(low >= 0, least, most)
        high = high * torch.where(high >= 0, most, least)
        return low + gain, high + gain_high

    def theta(
        self, weight: float, total: float, start: Tensor, stop: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Bounds of a class's effect over intervals."""
        if self._own is None or self._separation is None:
            return torch.zeros_like(start), torch.zeros_like(start)
        others = None if self._others is None else self._others.between(start, stop)
        return _theta(self._separation.a, weight, total, self._own.between(start, stop), others)

    def pair(self, own: float, rival: float, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds of w_t f(p) - w_s f(1 - p) over intervals of p."""
        if self._pairs is None:
            return torch.zeros_like(start), torch.zeros_like(start)
        low, high = _widened(*_times(own, *self._pairs.between(start, stop)))
        less, most = _widened(*_times(rival, *self._pairs.between(1 - stop, 1 - start)))
        return low - most, high - less


class Means:
    """Bounds of running means: what `Bounds` is to raising a logit, this is to full confidence.

    Densities of the target are averaged over [1 - m, 1], those of a rival over [0, y], and of a
    pair's two over [1 - r, 1] and [0, r].
    """

    def __init__(self, bounds: Bounds) -> None:
        self.num_classes = bounds.num_classes
        self._a = None if bounds._separation is None else bounds._separation.a
        self._own, self._others, self._pairs = (
            None if part is None else _both_means(part)
            for part in (bounds._own, bounds._others, bounds._pairs)
        )

    def target(self, own: float, total: float, start: Tensor, stop: Tensor) -> Tensor:
        """Lower bounds of the mean of Theta_t over [1 - m, 1], m from start to stop."""
        return self._theta(1, own, total, start, stop)[0]

    def rival(self, weight: float, total: float, start: Tensor, stop: Tensor) -> Tensor:
        """Upper bounds of the mean of Theta_s over [0, y], y from start to stop."""
        return self._theta(0, weight, total, start, stop)[1]

    def pair(self, own: float, rival: float, start: Tensor, stop: Tensor) -> Tensor:
        """Lower bounds of the mean of w_t f(1 - q) - w_s f(q) over [0, r], r from start to stop."""
        if self._pairs is None:
            return torch.zeros_like(start)
        behind, ahead = (part.between(start, stop) for part in self._pairs)
        low, _ = _widened(*_times(own, *ahead))
        _, most = _widened(*_times(rival, *behind))
        return low - most

    def _theta(
        self, side: int, weight: float, total: float, start: Tensor, stop: Tensor
    ) -> tuple[Tensor, Tensor]:
        if self._own is None:
            return torch.zeros_like(start), torch.zeros_like(start)
        others = None if self._others is None else self._others[side].between(start, stop)
        return _theta(self._a, weight, total, self._own[side].between(start, stop), others)


def _both_means(part: Enclosed) -> tuple[Enclosed, Enclosed]:
    """Of the running means from the left end, and from the right one."""
    return Enclosed(part.table.means()), Enclosed(part.table.mirrored().means())


def _theta(
    a: float | None,
    weight: float,
    total: float,
    own: tuple[Tensor, Tensor],
    others: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """Bounds of w A - (S - w) B, given those of A and, where B is not a A, of B."""
    if a is not None:
        # a coefficient is a difference, and off by what its terms were rounded by
        c, off = (1 + a) * weight - a * total, _SMALL * (1 + a)
        return _times(c - off, *own)[0], _times(c + off, *own)[1]
    lows, highs = _widened(*_times(weight, *own))
    if others is None:
        return lows, highs
    less, most = _widened(*_times(total - weight, *others))
    return lows - most, highs - less


def _times(factor: float, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds of a multiple; 0 times infinity is 0."""
    if factor == 0:
        return torch.zeros_like(low), torch.zeros_like(high)
    return (factor * low, factor * high) if factor > 0 else (factor * high, factor * low)


def _widened(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    return low - _SMALL * low.abs(), high + _SMALL * high.abs()


def edges(cells: int) -> Tensor:
    """Where equal cells of [0, 1] start."""
    return torch.arange(cells, dtype=torch.float64) / cells

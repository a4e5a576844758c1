r"""A proof of the claim "global" for target separation, binary reduction and their sums.

With x = 1 - m the target's probability and y_s the rivals', which share m, everything that full
confidence saves but the pairs of two rivals, whose sum is never below its limit, is

.. math::
    G = \Psi_t(1) - \Psi_t(x) - \sum_s \Psi_s(y_s) + \frac{1}{K-1} \sum_s \int_0^{r_s}
        (w_t f(1-q) - w_s f(q)) \, dq, \qquad r_s = \frac{y_s}{x + y_s}.

1. **Means.** :math:`G = \sum_s y_s E_s(x, y_s)` with

   .. math:: E_s(x, y) = M_t(m) - M_s(y) + \frac{\Gamma_s(r)}{(K-1) (x + y)},

   where M_t is the mean of Theta_t over [1 - m, 1], M_s that of Theta_s over [0, y] and Gamma_s
   that of the integrand over [0, r]. These are the means of what `bounds` calls B.
2. **Order.** At fixed x, G is linear in the weights of the rivals, and the factor of w_s falls with
   y_s. So G is smallest where heavier rivals have the larger y (rearrangement), and only the
   predictions with :math:`y_1 \ge y_2 \ge \dots` in the order of weight count. There
   :math:`y_k \le (m - y_1) / (k - 1)`.
3. **Slopes.** For any y_1 and nu,
   :math:`G \ge y_1 E_1 + \nu (m - y_1) + \sum_{k>1} \min_y y (E_k(x, y) - \nu)`.

Cells of x and y_1 cover all predictions; on each, a nu that makes the bound positive is looked for.
Where none is, the cells of x are divided. As m tends to 0 the bound must hold with E_1 > 0, and
every sequence along which G tends to 0 then has m tend to 0.
"""

import torch
from torch import Tensor

from .bounds import Bounds, Means

Groups = list[tuple[int, float]]  # numbers and weights of rivals, heaviest first
Effects = list[tuple[Tensor, Tensor]]  # of each group, see `_Cells.effect`
_LEVELS = ((128, 128), (512, 256), (2048, 1024))  # cells of x and of y, in powers of two
_MOST_OPEN = 48  # cells of x worth dividing
_TRIED = 4  # of these, to see whether to divide them is of use
_SLOPES, _BATCH = 24, 4096
_ROUNDING = 1e-13  # relative to the terms of a sum
_NUDGE = 2.0**-50


def full_confidence_is_best(
    bounds: Bounds, own: float, groups: Groups, total: float, *, thorough: bool = True
) -> bool:
    """Whether full confidence is proved to be the only minimum in a row.

    Args:
        bounds: Of the loss.
        own: The target's weight.
        groups: Of the rivals; their weights may be too large.
        total: The sum of all weights.
        thorough: Whether to divide cells.
    """
    means = Means(bounds)
    levels = _LEVELS if thorough else _LEVELS[:1]
    left = torch.arange(_LEVELS[0][0], dtype=torch.float64) / _LEVELS[0][0]
    for (side, cells), (finer, next_cells) in zip(levels, (*levels[1:], (0, 0)), strict=True):
        left = left[~_held(means, own, groups, total, left, 1 / side, cells)]
        if not len(left) or not finer or len(left) > _MOST_OPEN:
            break
        middles = left[:: -(-len(left) // _TRIED)] + 0.5 / side
        if not bool(_held(means, own, groups, total, middles, 0.0, next_cells).all()):
            break
        parts = torch.arange(finer // side, dtype=torch.float64) / finer
        left = (left[:, None] + parts).flatten()
    return not len(left)


def _held(
    means: Means, own: float, groups: Groups, total: float, left: Tensor, width: float, cells: int
) -> Tensor:
    """(X,) cells [left, left + width] of x in which G is proved positive."""
    cell = _Cells(left, width, cells)
    effects = [cell.effect(means, own, weight, total) for _, weight in groups]
    # E falls as the weight grows: where no prediction makes the heaviest rival's negative, done
    held = ((effects[0][0] > 0) & (effects[0][1] == 0) | ~cell.reachable).all(1)
    places = (~held).nonzero()[:, 0]
    for start in range(0, len(places), _BATCH // cells):
        few = places[start : start + _BATCH // cells]
        part = _Cells(left[few], width, cells)
        held[few] = part.shared(groups, [(slope[few], gap[few]) for slope, gap in effects])
    return held


class _Cells:
    """Cells of x and the cells of y beside them."""

    def __init__(self, left: Tensor, width: float, cells: int) -> None:
        self.step = 1 / cells
        self.x0, self.x1 = left[:, None], left[:, None] + width
        self.y0 = torch.arange(cells, dtype=torch.float64)[None] / cells
        self.y1 = self.y0 + self.step
        self.reachable = self.x0 + self.y0 < 1

    def effect(
        self, means: Means, own: float, weight: float, total: float
    ) -> tuple[Tensor, Tensor]:
        """(X, Y) e and d with y E >= y e + d for all x and y of the cells."""
        kept = means.target(own, total, 1 - self.x1, 1 - self.x0)
        lost = means.rival(weight, total, self.y0, self.y1)
        start = (self.y0 / (self.x1 + self.y0) - _NUDGE).clamp(min=0)
        stop = (self.y1 / (self.x0 + self.y1) + _NUDGE).clamp(max=1)
        gain = means.pair(own, weight, start, stop) / (means.num_classes - 1)
        low, high = self.x0 + self.y0, (self.x1 + self.y1).clamp(max=1)
        # r = y / (x + y) is at most 1 where both may vanish
        corner = low == 0
        per_mass = torch.where(gain >= 0, gain / high, gain / torch.where(corner, 1.0, low))
        slope = kept - lost + torch.where(corner, per_mass.clamp(min=0), per_mass)
        slope = slope - _ROUNDING * (kept.abs() + lost.abs() + per_mass.abs())
        return slope, torch.where(corner, gain.clamp(max=0), 0.0)

    def shared(self, groups: Groups, effects: Effects) -> Tensor:
        """(X,) where, for every y of the heaviest rival, some slope makes the sum positive."""
        m0, m1 = (1 - self.x1).clamp(min=0), 1 - self.x0
        rivals = sum(count for count, _ in groups)
        # y_1 is the largest of those that share m
        within = self.reachable & (self.y1 * rivals >= m0)
        slope, offset = effects[0]
        first = torch.where(slope >= 0, self.y0, self.y1) * slope + offset
        if rivals == 1:
            return ((first > 0) | ~within).all(1)
        nu = self._slopes([effects[0][0], effects[-1][0]])[:, None]
        low, high = (m0 - self.y1).clamp(min=0), (m1 - self.y0).clamp(min=0)
        room = nu * torch.where(nu >= 0, low[..., None], high[..., None])
        others = self._others([(groups[0][0] - 1, 0.0), *groups[1:]], effects, nu, high)
        size = first.abs()[..., None] + nu.abs() * high[..., None] - others
        sure = first[..., None] + room + others > _ROUNDING * size
        return (sure.any(2) | ~within).all(1)

    def _others(self, groups: Groups, effects: Effects, nu: Tensor, high: Tensor) -> Tensor:
        """(X, Y, V) sums of the least y_k (E_k - nu) over all rivals but the heaviest."""
        total, rank = torch.zeros(()), 1
        for (count, _), (slope, offset) in zip(groups, effects, strict=True):
            if count:
                # no y is larger than y_1, nor than an equal share of what that leaves
                cap = torch.minimum(self.y1, high / rank)
                last = (cap / self.step * (1 + _NUDGE)).ceil().long().clamp(1, slope.shape[1])
                reach = int(last.max())
                least = self._least(slope[:, :reach], offset[:, :reach], nu)
                place = (last - 1)[..., None].expand(-1, -1, least.shape[2])
                total = total + count * least.gather(1, place)
            rank += count
        return total

    def _least(self, slope: Tensor, offset: Tensor, nu: Tensor) -> Tensor:
        """(X, Y, V) least values, 0 or less, of y (E - nu) over [0, y1]."""
        excess = slope[..., None] - nu - _NUDGE * nu.abs()
        number = slope.shape[1]
        ends = torch.where(excess >= 0, self.y0[:, :number, None], self.y1[:, :number, None])
        return (ends * excess + offset[..., None]).cummin(1).values.clamp(max=0)

    def _slopes(self, effects: list[Tensor]) -> Tensor:
        """(X, V) slopes worth trying: values of E, and of what y E gains per unit of y."""
        chosen = []
        for effect in effects:
            ends = self.y1 * effect
            gains = torch.diff(ends, dim=1) / self.step
            both = torch.cat([effect, gains], 1).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
            shares = torch.linspace(0, 1, _SLOPES // 2, dtype=torch.float64)
            reach = torch.cat([self.reachable, self.reachable[:, 1:]], 1)
            chosen.append(torch.nanquantile(both.masked_fill(~reach, torch.nan), shares, 1).T)
        return torch.cat([*chosen, torch.zeros_like(chosen[0][:, :1])], 1)

r"""A proof of "monotone" with the heaviest rival as it is and the others at their worst.

In the notation of `bounds`, with x the target's probability, y the heaviest rival's and
:math:`\rho = 1 - x - y` what the others share, the sum over the rivals is at least

.. math:: y B_s(x, y) + \rho \min_{v \le \rho} B_o(x, v),

where o is the heaviest of the others, each of which has some :math:`v \le \rho` (with one other,
:math:`v = \rho`). [0, 1] is cut into strips of x; those in which this is not proved to be
nonnegative are halved, with finer cells of y and v.
"""

import torch
from torch import Tensor

from .bounds import Bounds, edges

_STRIPS, _CELLS, _ROUNDS, _STUCK = 128, 256, 6, 0.6
_OFF = 2.0**-50
_ROUNDING = 1e-14  # of the terms of B, which are added and subtracted


def heaviest_by_itself(bounds: Bounds, own: float, rivals: Tensor, total: float) -> bool:
    """Whether raising the target's logit never hurts in a row of three classes or more.

    Args:
        bounds: Of the loss; the effect of a binary reduction must be known not to be negative.
        own: The target's weight.
        rivals: The others' weights.
        total: The sum of all.
    """
    heaviest, other = rivals.topk(2).values.tolist()
    single = len(rivals) == 2
    start, width, cells = edges(_STRIPS), 1 / _STRIPS, _CELLS
    for _ in range(_ROUNDS):
        first = _least(bounds, (own, heaviest, total), start, width, cells)
        rest = _least(bounds, (own, other, total), start, width, cells)
        left = ~_held(start, width, first, _worst(start, width, rest, single))
        if not bool(left.any()):
            return True
        if float(left.double().mean()) > _STUCK:
            return False  # finer cells do not help where the sum is negative
        start, width, cells = start[left], width / 2, 2 * cells
        start = torch.cat([start, start + width])
    return False


def _least(
    bounds: Bounds, weights: tuple[float, float, float], start: Tensor, width: float, cells: int
) -> Tensor:
    """(strips, cells) lower bounds of B over the cells of y in each strip of x."""
    own, rival, total = weights
    y0, step = edges(cells), 1 / cells
    low, _ = bounds.theta(own, total, start, start + width)
    _, high = bounds.theta(rival, total, y0, y0 + step)
    x0, y0 = start[:, None], y0[None]
    x1, y1 = x0 + width, y0 + step
    # outwards by what the quotients may be off
    p0 = torch.where(x0 > 0, x0 / (x0 + y1) - _OFF, 0.0).clamp(min=0)
    p1 = torch.where(y0 > 0, x1 / (x1 + y0) + _OFF, 1.0).clamp(max=1)
    gain = bounds.pair(own, rival, p0, p1)[0].clamp(min=0)
    gain = gain / ((bounds.num_classes - 1) * (x1 + y1) ** 2)
    slack = _ROUNDING * (low.abs()[:, None] + high.abs() + gain)
    return low[:, None] - high + gain - slack


def _worst(start: Tensor, width: float, rest: Tensor, single: bool) -> Tensor:
    """(strips, cells of y) lower bounds of what one of the others has, of all that it may be."""
    cells = rest.shape[1]
    y0 = edges(cells)
    most = 1 - start[:, None] - y0  # of rho
    last = (most * cells).ceil().long().clamp(0, cells - 1)
    if not single:
        return rest.cummin(1).values.gather(1, last)
    # rho itself: the cells from its least to its largest value, a few
    span = int(width * cells) + 3
    nearby = torch.stack([rest.gather(1, (last - k).clamp(min=0)) for k in range(span)])
    return nearby.amin(0)


def _held(start: Tensor, width: float, first: Tensor, rest: Tensor) -> Tensor:
    """(strips,) where y B_s + rho B_o is nonnegative in all cells."""
    cells = first.shape[1]
    y0, step = edges(cells)[None], 1 / cells
    x0, y1 = start[:, None], y0 + step
    x1 = x0 + width
    # with both bounds fixed the sum is linear in x and in y: its least value is at a corner
    corners = [y * first + (1 - x - y).clamp(min=0) * rest for x in (x0, x1) for y in (y0, y1)]
    least = torch.stack(corners).amin(0)
    # where x + y = 1 crosses a cell: every factor by itself
    cut = x1 + y1 > 1
    loose = torch.where(first >= 0, y0, y1) * first
    loose = loose + torch.where(rest >= 0, 0.0, (1 - x0 - y0).clamp(min=0)) * rest
    least = torch.where(cut, loose, least)
    outside = x0 + y0 >= 1
    return ((first >= 0) & (rest >= 0) | (least > 0) | outside).all(1)

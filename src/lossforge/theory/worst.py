"""Where the pointwise ratios of a density are largest, for witnesses; a search, not a proof."""

import torch
from torch import Tensor

from ..base import BaseFunction
from ..errors import check_integer
from .enclosure import CELLS

_SMALLEST = 40  # the grid goes down to 2^-40 near both ends
_ROUNDS, _STEPS, _SHRINK = 12, 16, 0.25


def worst_transfer(base: BaseFunction, cells: int = CELLS) -> tuple[float, float]:
    """The point (x, y), x + y <= 1, where phi(y) / phi(x) is (nearly) as large as xi_tri.

    x is the probability of the target and y that of the rival. The points may lie on the edges
    of the triangle; those where the density is infinite are left out.
    """
    nodes = _nodes(base, cells)
    values = base.density(nodes)
    kept = torch.isfinite(values)
    nodes, values = nodes[kept], values[kept]
    least, where = values.cummin(0)
    # the last node that leaves room for y, up to the rounding of 1 - y
    last = torch.searchsorted(nodes, 1 - nodes + 1e-15, right=True) - 1
    open_, last = last >= 0, last.clamp(min=0)
    best = int(torch.where(open_, _quotients(values, least[last]), -1.0).argmax())
    x, y = float(nodes[where[last[best]]]), float(nodes[best])

    width = 1 / cells
    for _ in range(_ROUNDS):
        ys = _around(y, width, float(nodes[0]))
        xs = _around(x, width, 0.0)[:, None]
        xs = torch.minimum(xs, 1 - ys)
        ratio = _quotients(base.density(ys), base.density(xs))
        best = int(torch.nan_to_num(ratio, nan=-1.0, posinf=torch.inf).argmax())
        x, y = float(xs.flatten()[best]), float(ys[best % len(ys)])
        width *= _SHRINK
    return min(x, 1 - y), y


def worst_pair(base: BaseFunction, cells: int = CELLS) -> float:
    """The p in [0, 1] where f(1 - p) / f(p) is (nearly) as large as rho_M, finite if possible."""
    nodes = _nodes(base, cells)
    p, ratio = _best_pair(base, nodes)
    width = 1 / cells
    for _ in range(_ROUNDS):
        closer, larger = _best_pair(base, _around(p, width, 0.0))
        if larger > ratio:
            p, ratio = closer, larger
        width *= _SHRINK
    return p


def _best_pair(base: BaseFunction, p: Tensor) -> tuple[float, float]:
    above, below = base.density(1 - p), base.density(p)
    ratio = torch.where(torch.isfinite(above), _quotients(above, below), -1.0)
    best = int(ratio.argmax())
    return float(p[best]), float(ratio[best])


def _nodes(base: BaseFunction, cells: int) -> Tensor:
    """A grid of [0, 1], finer at both ends, with the turning points and their mirror images."""
    check_integer("cells", cells, 1)
    grid = torch.arange(cells + 1, dtype=torch.float64, device="cpu") / cells
    small = 2.0 ** -torch.arange(1, _SMALLEST + 1, dtype=torch.float64, device="cpu")
    turns = torch.tensor(base.turning_points() or (), dtype=torch.float64, device="cpu")
    return torch.cat([grid, small, 1 - small, turns, 1 - turns]).sort().values


def _around(centre: float, width: float, least: float) -> Tensor:
    """Points on both sides of the centre, which is the first of them."""
    steps = torch.arange(1, _STEPS + 1, dtype=torch.float64, device="cpu") / _STEPS * width
    zero = torch.zeros(1, dtype=torch.float64, device="cpu")
    return (centre + torch.cat([zero, steps, -steps])).clamp(least, 1.0)


def _quotients(above: Tensor, below: Tensor) -> Tensor:
    return torch.where(above == 0, 0.0, above / below)

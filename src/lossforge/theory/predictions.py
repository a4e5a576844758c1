"""Predictions worth trying, with few different probabilities whatever the number of classes.

Rivals are ordered by weight and put into slots: the heaviest few and the lightest one by
themselves, those between in a handful of groups that share one probability. Everything the search
computes is linear in the weights of classes of equal probability, so a slot counts exactly with its
mean weight, and a search costs the same for ten classes as for ten thousand.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..base import BaseFunction
from ..errors import check_integer
from .enclosure import CELLS
from .weights import Rows

FLOOR = 1e-30  # of a probability, so that a prediction lies inside the simplex
_ENDS = (1, 2, 3, 4, 6, 10, 30, 100, 300)  # of slots, in the order of weight
_SMALLEST = 40  # the grid goes down to 2^-40 near both ends
_ROUNDS, _STEPS, _SHRINK = 12, 16, 0.25
_OWN_SHARES = torch.tensor(
    [1e-9, 1e-4, 0.01, 0.03, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8], dtype=torch.float64
)
_RIVAL_SHARES = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)


@dataclass(frozen=True)
class Slots:
    """One row of a noise: the target in slot 0, the rivals in the others.

    Args:
        weights: (J,) mean weights.
        counts: (J,) numbers of classes.
        total: Sum of all weights.
        places: (K,) the slot of each class.
        num_classes: K.
    """

    weights: Tensor
    counts: Tensor
    total: Tensor
    places: Tensor
    num_classes: int

    def full(self, probs: Tensor) -> Tensor:
        """(B, K) predictions from (B, J) probabilities of the slots."""
        return probs[:, self.places]

    def inside(self, probs: Tensor) -> Tensor:
        """Predictions moved off the faces of the simplex, with sum one."""
        probs = probs.clamp(min=FLOOR)
        return probs / (self.counts * probs).sum(-1, keepdim=True)

    def softmax(self, logits: Tensor) -> Tensor:
        """Predictions from logits of the slots."""
        return torch.softmax(logits + torch.log(self.counts), 1) / self.counts

    def shaped(self, own: Tensor, shapes: Tensor) -> Tensor:
        """(B, J) predictions: every target's probability with every division of the rest.

        Args:
            own: (X,) probabilities of the target.
            shapes: (S, J - 1) shares of the rest that the slots take as a whole.
        """
        rest = (1 - own)[:, None, None] * shapes / self.counts[1:]
        own = own[:, None, None].expand(len(own), len(shapes), 1)
        return self.inside(torch.cat([own, rest], -1).reshape(-1, len(self.weights)))


def fill_slots(row: Rows) -> Slots:
    """The slots of one row."""
    classes, target = row.num_classes, int(row.targets[0])
    weights = row.weights[0]
    order = weights.argsort(descending=True, stable=True)
    order = order[order != target]
    ends = [end for end in _ENDS if end < classes - 2] + [classes - 2, classes - 1]
    ends = [end for end in ends if end > 0]
    places = torch.zeros(classes, dtype=torch.long)
    means, counts, start = [weights[target]], [1], 0
    for number, end in enumerate(ends, 1):
        members = order[start:end]
        places[members] = number
        means.append(weights[members].mean())
        counts.append(len(members))
        start = end
    numbers = torch.tensor(counts, dtype=torch.float64)
    return Slots(torch.stack(means), numbers, row.totals[0], places, classes)


def candidates(slots: Slots) -> Tensor:
    """(B, J) predictions worth trying."""
    small = torch.logspace(-9, -1.1, 20, dtype=torch.float64)
    middle = torch.linspace(0.08, 0.92, 22, dtype=torch.float64)
    own = torch.cat([small, middle, 1 - small.flip(0)])
    rivals = len(slots.weights) - 1
    shapes = []
    for heavy in range(1, rivals + 1):
        first = torch.zeros(rivals, dtype=torch.float64)
        first[:heavy] = slots.counts[1 : heavy + 1]
        first /= first.sum()
        shapes.append(first)
        if heavy == rivals:
            break
        others = slots.counts[1:].clone()
        others[:heavy] = 0
        last = torch.zeros(rivals, dtype=torch.float64)
        last[-1] = 1.0
        for part in (0.7, 0.5, 0.3, 0.1, 0.01):
            shapes += [part * first + (1 - part) * rest for rest in (others / others.sum(), last)]
    return slots.shaped(own, torch.stack(shapes))


def pair_predictions(slots: Slots, p: Tensor, sizes: Tensor) -> Tensor:
    """(B, J) predictions whose target and heaviest rival share each of `sizes` as p to 1 - p."""
    p, sizes = torch.cartesian_prod(p, sizes).T
    probs = torch.zeros(len(sizes), len(slots.weights), dtype=torch.float64)
    if len(slots.weights) > 2:
        probs[:, -1] = 1 - sizes
    probs[:, 0], probs[:, 1] = sizes * p, sizes * (1 - p)
    return slots.inside(probs)


def spread_predictions(slots: Slots) -> Tensor:
    """(B, J) predictions of the target and the heaviest rival, the rest evenly on a few others."""
    own, rival = torch.cartesian_prod(_OWN_SHARES, _RIVAL_SHARES).T
    kept = own + rival < 1
    own, rival = own[kept], rival[kept]
    size = len(slots.weights)
    found = [torch.zeros(0, size, dtype=torch.float64)]
    # one slot, or one and all lighter ones
    spans = {(first, last) for first in range(2, size) for last in (first + 1, size)}
    for first, last in sorted(spans):
        probs = torch.zeros(len(own), size, dtype=torch.float64)
        probs[:, 0], probs[:, 1] = own, rival
        rest = (1 - own - rival) / slots.counts[first:last].sum()
        probs[:, first:last] = rest[:, None]
        found.append(probs)
    return slots.inside(torch.cat(found))


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

"""Predictions with few different probabilities, whatever the number of classes.

Rivals are ordered by weight and put into slots: the heaviest few and the lightest one by
themselves, those between in a handful of groups that share one probability. Everything the search
computes is linear in the weights of classes of equal probability, so a slot counts exactly with its
mean weight, and a search costs the same for ten classes as for ten thousand.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .weights import Rows

FLOOR = 1e-30  # of a probability, so that a prediction lies inside the simplex
_ENDS = (1, 2, 3, 4, 6, 10, 30, 100, 300)  # of slots, in the order of weight


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

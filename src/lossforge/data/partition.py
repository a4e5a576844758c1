"""Dividing samples into a training and a test part, class by class."""

import torch
from torch import Generator, Tensor

from ..errors import check_number


def members(labels: Tensor) -> list[Tensor]:
    """The positions of the samples of each class 0, 1, ..., in order."""
    ends = labels.bincount().cumsum(0)
    return list(labels.argsort(stable=True).tensor_split(ends[:-1].tolist()))


def stratify(
    labels: Tensor, fraction: float, *, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """The positions of a training and of a test part, both in increasing order.

    Each class gives the fraction of its samples, rounded, to the test part, but never its last one.
    Without a generator these are evenly spaced in the order of the data (of five, the third), so
    the division is the same everywhere; with one they are drawn at random.
    """
    check_number("fraction", fraction, "in (0, 1)", lambda value: 0 < value < 1)
    test = torch.zeros(len(labels), dtype=torch.bool)
    for positions in members(labels):
        n = len(positions)
        count = min(round(fraction * n), n - 1)
        if generator is not None:
            test[positions[torch.randperm(n, generator=generator)[:count]]] = True
        elif count > 0:
            test[positions[(2 * torch.arange(count) + 1) * n // (2 * count)]] = True
    return (~test).nonzero()[:, 0], test.nonzero()[:, 0]

"""Dividing samples into a training and a test part, class by class."""

import torch
from torch import Generator, Tensor

from ..errors import check_number


def members(labels: Tensor) -> list[Tensor]:
    """The positions of the samples of each class 0, 1, ..., in order."""
    ends = labels.bincount().cumsum(0)
    return list(labels.argsort(stable=True).tensor_split(ends[:-1].tolist()))


def check_fraction(name: str, value: object) -> None:
    """Raise unless `value` is a number between 0 and 1, neither included."""
    check_number(name, value, "in (0, 1)", lambda number: 0 < number < 1)


def stratify(
    labels: Tensor, test_fraction: float, *, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """The positions of a training and of a test part, both in increasing order.

    Each class gives the fraction of its samples, rounded, to the test part, but never its last one.
    Without a generator these are evenly spaced in the order of the data (of five, the third), so
    the division is the same everywhere; with one they are drawn at random. A fraction too small
    for any class to give a sample is refused.
    """
    check_fraction("test_fraction", test_fraction)
    test = torch.zeros(len(labels), dtype=torch.bool)
    for positions in members(labels):
        n = len(positions)
        count = min(round(test_fraction * n), n - 1)
        if generator is not None:
            test[positions[torch.randperm(n, generator=generator)[:count]]] = True
        elif count > 0:
            test[positions[(2 * torch.arange(count) + 1) * n // (2 * count)]] = True
    if not test.any():
        raise ValueError(
            f"test_fraction must leave a sample for testing, got {test_fraction} of {len(labels)}"
        )
    return (~test).nonzero()[:, 0], test.nonzero()[:, 0]

"""What noise is in labels whose truth is known."""

import torch
from torch import Tensor

from .inject import check_labels


def confusion_counts(true: Tensor, given: Tensor, num_classes: int) -> Tensor:
    """How many samples of each true class (rows) were given each label (columns)."""
    for labels in (true, given):
        check_labels(labels, num_classes)
    _check_lengths(true, given)
    cells = torch.bincount(true * num_classes + given, minlength=num_classes**2)
    return cells.view(num_classes, num_classes)


def empirical_transition(true: Tensor, given: Tensor, num_classes: int) -> Tensor:
    """The share of each true class that was given each label.

    The row of a class without samples is NaN: nothing is known about it.
    """
    counts = confusion_counts(true, given, num_classes).double()
    return counts / counts.sum(1, keepdim=True)


def noise_rate(true: Tensor, given: Tensor) -> float:
    """The share of labels that are wrong; of none at all, NaN."""
    _check_lengths(true, given)
    return (true != given).double().mean().item()


def _check_lengths(true: Tensor, given: Tensor) -> None:
    if true.shape != given.shape or true.ndim != 1:
        raise ValueError(
            f"true and given must be vectors of equal length, "
            f"got {tuple(true.shape)} and {tuple(given.shape)}"
        )

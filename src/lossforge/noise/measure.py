"""Measuring label noise: counted where the true labels are known, otherwise estimated."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import extra
from .inject import check_labels
from .transition import transition


def confusion_counts(true: Tensor, given: Tensor, num_classes: int) -> Tensor:
    """Count the samples of each true class (rows) that were given each label (columns)."""
    for labels in (true, given):
        check_labels(labels, num_classes)
    _check_lengths(true, given)
    cells = torch.bincount(true * num_classes + given, minlength=num_classes**2)
    return cells.view(num_classes, num_classes)


def empirical_transition(true: Tensor, given: Tensor, num_classes: int) -> Tensor:
    """Return the share of each true class that was given each label.

    The row of a class without samples is NaN.
    """
    counts = confusion_counts(true, given, num_classes).double()
    return counts / counts.sum(1, keepdim=True)


def noise_rate(true: Tensor, given: Tensor) -> float:
    """Return the share of wrong labels; NaN without labels."""
    _check_lengths(true, given)
    return (true != given).double().mean().item()


class NoiseEstimate(NamedTuple):
    """Estimated transition matrix, distribution of the true classes, and share of wrong labels."""

    T: Tensor
    prior: Tensor
    rate: float


class EstimationError(ValueError):
    """No sample is confidently of a class, so that its noise cannot be estimated."""


def estimate_noise(
    probs: Tensor, given: Tensor, *, classes: Sequence[str] | None = None
) -> NoiseEstimate:
    """Estimate the noise from a model's probabilities and the noisy labels alone.

    This is confident learning, by cleanlab's estimator: a sample counts towards the class whose
    probability exceeds that class's average confidence.

    Args:
        probs: Predicted probabilities, (N, K), *out of sample*: each row from a model that was
            not fitted to that sample (cross-validation). A model that has memorised its labels
            agrees with them, and the estimate is then near zero.
        given: The labels as given; every class must occur.
        classes: The names of the classes, for errors.

    Raises:
        EstimationError: If no sample is confidently of a class.

    References:
        Northcutt, Jiang and Chuang, Confident Learning, JAIR 2021. https://arxiv.org/abs/1911.00068
    """
    count = extra("cleanlab.count", "noise")
    if probs.ndim != 2 or len(probs) != len(given):
        raise ValueError(
            f"probs must be one row for each of the {len(given)} labels, "
            f"got shape {tuple(probs.shape)}"
        )
    if not bool(((probs >= 0) & ((probs.sum(1, keepdim=True) - 1).abs() < 1e-3)).all()):
        raise ValueError("rows of probs must be probabilities that sum to 1; are these logits?")
    check_labels(given, probs.shape[1])
    absent = sorted(set(range(probs.shape[1])) - set(given.tolist()))
    if absent:
        raise ValueError(f"every class must occur in given, absent: {absent}")
    prior, given_if_true, _, _ = count.estimate_py_and_noise_matrices_from_probabilities(
        given.numpy(force=True), probs.detach().double().numpy(force=True)
    )
    lost = (~(given_if_true.sum(0) > 0)).nonzero()[0].tolist()
    if lost:
        names = [repr(classes[k]) if classes else str(k) for k in lost[:3]]
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise EstimationError(
            f"the noise of class {', '.join(names)}{more} cannot be estimated, because no sample "
            "is predicted as one with confidence; merge rare classes, or label more samples of them"
        )
    T = transition(torch.as_tensor(given_if_true).T)  # cleanlab's columns are the true classes
    prior = torch.as_tensor(prior)
    return NoiseEstimate(T, prior, 1 - (prior @ T.diagonal()).item())


def _check_lengths(true: Tensor, given: Tensor) -> None:
    if true.shape != given.shape or true.ndim != 1:
        raise ValueError(
            f"true and given must be vectors of equal length, "
            f"got {tuple(true.shape)} and {tuple(given.shape)}"
        )

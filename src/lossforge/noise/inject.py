"""Injecting label noise: true labels and a transition matrix in, given labels out."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from .transition import transition


class Corruption(NamedTuple):
    """Labels after noise, and which of them it made wrong."""

    labels: Tensor
    flipped: Tensor


def corrupt(labels: Tensor, T: Tensor, *, generator: Generator, exact: bool = False) -> Corruption:
    """Replace labels by the noise of a transition matrix.

    Args:
        labels: True labels, (N,), int64.
        T: Transition matrix; `T[i, j]` is the probability that class i is given label j.
        generator: The source of randomness: the same state gives the same labels.
        exact: Draw every label independently (the default), or give every class exactly its
            share: a class of n samples then has round(n (1 - T[i, i])) wrong labels, spread over
            the others as evenly as T allows.

    Returns:
        The given labels, and the mask of those that are wrong.

    Example:
        >>> from lossforge.noise import symmetric
        >>> labels = torch.arange(10).repeat(100)
        >>> noise = corrupt(
        ...     labels, symmetric(10, 0.4), generator=torch.Generator().manual_seed(0), exact=True
        ... )
        >>> noise.flipped.sum()
        tensor(400)
    """
    T = transition(T)
    check_labels(labels, len(T))
    draw = _exact_share if exact else _independent
    given = labels.clone()
    for true in sorted(set(labels.tolist())):
        (members,) = torch.where(labels == true)
        given[members] = draw(T[true], true, len(members), generator).to(labels.device)
    return Corruption(given, given != labels)


def check_labels(labels: Tensor, num_classes: int) -> None:
    """Raise unless labels are a vector of int64 class numbers."""
    if labels.dtype != torch.int64 or labels.ndim != 1:
        raise TypeError(
            f"labels must be a vector of int64, got {labels.dtype} of shape {tuple(labels.shape)}"
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise ValueError(
            f"labels must lie in 0..{num_classes - 1}, got {int(labels.min())}..{int(labels.max())}"
        )


def _independent(row: Tensor, true: int, n: int, generator: Generator) -> Tensor:
    row = row.to(generator.device)
    return torch.multinomial(row, n, replacement=True, generator=generator)


def _exact_share(row: Tensor, true: int, n: int, generator: Generator) -> Tensor:
    wrong = row.clone()
    wrong[true] = 0
    total = wrong.sum().item()
    flips = min(n, round(n * total))  # rows sum to one within a tolerance
    counts = torch.zeros(len(row), dtype=torch.int64)
    if flips:
        counts = _apportion(flips, wrong / total, generator)
    counts[true] = n - flips
    shuffled = torch.randperm(n, generator=generator, device=generator.device).cpu()
    return torch.repeat_interleave(torch.arange(len(row)), counts)[shuffled]


def _apportion(total: int, shares: Tensor, generator: Generator) -> Tensor:
    """Whole numbers that sum to `total`, each its share rounded down or up.

    What rounding down leaves over goes to the largest remainders; equal ones are chosen between
    at random, for a fixed order would favour the classes that come first.
    """
    quotas = total * shares
    counts = quotas.floor()
    order = torch.randperm(len(shares), generator=generator, device=generator.device).cpu()
    remainders = (quotas - counts).round(decimals=9)[order]
    left = total - int(counts.sum())
    counts[order[remainders.argsort(descending=True, stable=True)[:left]]] += 1
    return counts.long()

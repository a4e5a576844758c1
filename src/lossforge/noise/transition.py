"""Transition matrices.

Everywhere in the package `T[i, j]` is the probability that a sample of true class i is given
the label j, so rows sum to one.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from ..errors import check_integer, check_number
from .superclasses import SUPERCLASSES

# Classes that are mistaken for each other, as every paper since Patrini et al. (CVPR 2017) maps
# them: truck -> automobile, bird -> airplane, cat <-> dog, deer -> horse; and 7 -> 1, 2 -> 7,
# 5 <-> 6, 3 -> 8.
CIFAR10_FLIPS = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
MNIST_FLIPS = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}


def transition(T: Tensor) -> Tensor:
    """Check that a matrix is a transition matrix and return it in float64.

    Args:
        T: Square, nonnegative, rows summing to one within 1e-6.
    """
    T = torch.as_tensor(T, dtype=torch.float64)
    if T.ndim != 2 or T.shape[0] != T.shape[1] or T.shape[0] < 2:
        raise ValueError(
            f"T must be square, with 2 classes or more, got {' x '.join(map(str, T.shape))}"
        )
    if not bool(((T >= 0) & (T <= 1 + 1e-6)).all()):
        raise ValueError(
            f"entries of T must be probabilities, got {T.min().item()}..{T.max().item()}"
        )
    sums = T.sum(1)
    worst = int((sums - 1).abs().argmax())
    if abs(sums[worst].item() - 1) > 1e-6:
        raise ValueError(f"rows of T must sum to 1, row {worst} sums to {sums[worst].item():.6g}")
    # returned bit for bit: numpy's multinomial, and so published labels, hang on the last one
    return T


def symmetric(num_classes: int, rate: float) -> Tensor:
    """Every wrong label equally likely: rate / (K - 1) off the diagonal.

    The true class is never drawn for a flip, so `rate` is the real share of wrong labels.

    >>> symmetric(3, 0.5)
    tensor([[0.5000, 0.2500, 0.2500],
            [0.2500, 0.5000, 0.2500],
            [0.2500, 0.2500, 0.5000]], dtype=torch.float64)
    """
    _check(num_classes, rate)
    T = torch.full((num_classes, num_classes), rate / (num_classes - 1), dtype=torch.float64)
    return T.fill_diagonal_(1 - rate)


def flips(num_classes: int, targets: Mapping[int, int], rate: float) -> Tensor:
    """Classes that turn into one other class each; the others stay clean.

    Args:
        num_classes: Number of classes.
        targets: The class that each noisy class is mistaken for.
        rate: The probability of the mistake.
    """
    _check(num_classes, rate)
    T = torch.eye(num_classes, dtype=torch.float64)
    for source, target in targets.items():
        if not (0 <= source < num_classes and 0 <= target < num_classes) or source == target:
            raise ValueError(
                f"targets must map classes below {num_classes} to other ones, "
                f"got {source} -> {target}"
            )
        T[source, source] = 1 - rate
        T[source, target] = rate
    return T


def pair(num_classes: int, rate: float) -> Tensor:
    """Every class is mistaken for the next one, the last for the first."""
    return flips(num_classes, {i: (i + 1) % num_classes for i in range(num_classes)}, rate)


def asymmetric(
    name: Literal["cifar10", "cifar100", "mnist"],
    rate: float,
    *,
    blocks: Literal["superclass", "alphabetical"] = "superclass",
) -> Tensor:
    """The asymmetric noise of the literature: each noisy class turns into a similar one.

    Five of the ten classes of CIFAR-10 and MNIST are noisy, so the overall rate is half of
    `rate`; on CIFAR-100 every class turns into the next of its superclass.

    Args:
        name: Whose classes.
        rate: The probability of the mistake within a noisy class.
        blocks: For CIFAR-100: "superclass" follows the 20 superclasses of the data. Nearly all
            published code takes blocks of five consecutive fine labels instead, which are
            alphabetical: 94 of its 100 flips leave the superclass. "alphabetical" is that noise.
    """
    if blocks not in ("superclass", "alphabetical"):
        raise ValueError(f"blocks must be 'superclass' or 'alphabetical', got {blocks!r}")
    if name == "cifar10":
        return flips(10, CIFAR10_FLIPS, rate)
    if name == "mnist":
        return flips(10, MNIST_FLIPS, rate)
    if name != "cifar100":
        raise ValueError(f"name must be one of cifar10, cifar100, mnist, got {name!r}")
    groups = (
        SUPERCLASSES
        if blocks == "superclass"
        else tuple(tuple(range(first, first + 5)) for first in range(0, 100, 5))
    )
    following = {
        label: group[(place + 1) % 5] for group in groups for place, label in enumerate(group)
    }
    return flips(100, following, rate)


def _check(num_classes: int, rate: float) -> None:
    check_integer("num_classes", num_classes, 2)
    check_number("rate", rate, "in [0, 1]", lambda rate: 0 <= rate <= 1)

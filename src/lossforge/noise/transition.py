"""Transition matrices.

Everywhere in the package `T[i, j]` is the probability that a sample of true class i is given
the label j, so rows sum to one.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..errors import check_integer, check_number, check_rows, unknown

# Classes that are mistaken for each other, as every paper since Patrini et al. (CVPR 2017) maps
# them: truck -> automobile, bird -> airplane, cat <-> dog, deer -> horse; and 7 -> 1, 2 -> 7,
# 5 <-> 6, 3 -> 8.
CIFAR10_FLIPS = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
MNIST_FLIPS = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}

# fine labels of each, in order of the coarse label: Krizhevsky, Learning Multiple Layers of
# Features from Tiny Images, 2009
SUPERCLASSES = (
    (4, 30, 55, 72, 95),  # aquatic mammals
    (1, 32, 67, 73, 91),  # fish
    (54, 62, 70, 82, 92),  # flowers
    (9, 10, 16, 28, 61),  # food containers
    (0, 51, 53, 57, 83),  # fruit and vegetables
    (22, 39, 40, 86, 87),  # household electrical devices
    (5, 20, 25, 84, 94),  # household furniture
    (6, 7, 14, 18, 24),  # insects
    (3, 42, 43, 88, 97),  # large carnivores
    (12, 17, 37, 68, 76),  # large man-made outdoor things
    (23, 33, 49, 60, 71),  # large natural outdoor scenes
    (15, 19, 21, 31, 38),  # large omnivores and herbivores
    (34, 63, 64, 66, 75),  # medium-sized mammals
    (26, 45, 77, 79, 99),  # non-insect invertebrates
    (2, 11, 35, 46, 98),  # people
    (27, 29, 44, 78, 93),  # reptiles
    (36, 50, 65, 74, 80),  # small mammals
    (47, 52, 56, 59, 96),  # trees
    (8, 13, 48, 58, 90),  # vehicles 1
    (41, 69, 81, 85, 89),  # vehicles 2
)
"""The 20 superclasses of CIFAR-100."""


def _next_within(groups: tuple[tuple[int, ...], ...]) -> dict[int, int]:
    """Map every label to the next of its group, the last to the first."""
    return {
        label: group[(place + 1) % len(group)]
        for group in groups
        for place, label in enumerate(group)
    }


class ClassMap(NamedTuple):
    """The class that each noisy class is mistaken for; without any, the next of any number."""

    num_classes: int | None
    flips: Mapping[int, int]


CLASS_MAPS = {
    "cifar10": ClassMap(10, CIFAR10_FLIPS),
    "cifar100": ClassMap(100, _next_within(SUPERCLASSES)),
    "mnist": ClassMap(10, MNIST_FLIPS),
    "next": ClassMap(None, {}),
}
"""Class maps of asymmetric noise by name; data sets without a published one take "next"."""


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
    check_rows("T", T)
    # returned bit for bit: published labels by numpy's multinomial depend on the last one
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
    name: str,
    rate: float,
    *,
    num_classes: int | None = None,
    blocks: Literal["superclass", "alphabetical"] = "superclass",
) -> Tensor:
    """The asymmetric noise of the literature: each noisy class turns into a similar one.

    Five of the ten classes of CIFAR-10 and MNIST are noisy, so the overall rate is half of
    `rate`; on CIFAR-100 every class turns into the next of its superclass.

    Args:
        name: Whose classes: one of `CLASS_MAPS`.
        rate: The probability of the mistake within a noisy class.
        num_classes: For the map "next", which suits any number of classes.
        blocks: For CIFAR-100: "superclass" follows the 20 superclasses of the data. Nearly all
            published code takes blocks of five consecutive fine labels instead, which are
            alphabetical: 94 of its 100 flips leave the superclass. "alphabetical" is that noise.
    """
    if blocks not in ("superclass", "alphabetical"):
        raise ValueError(f"blocks must be 'superclass' or 'alphabetical', got {blocks!r}")
    if name not in CLASS_MAPS:
        raise unknown("class map", name, CLASS_MAPS)
    known, targets = CLASS_MAPS[name]
    if known is None:
        if num_classes is None:
            raise ValueError("num_classes must be given for the class map 'next'")
        return pair(num_classes, rate)
    if name == "cifar100" and blocks == "alphabetical":
        targets = _next_within(tuple(tuple(range(i, i + 5)) for i in range(0, 100, 5)))
    return flips(known, targets, rate)


def check_rate(rate: float) -> None:
    """Raise unless a rate of noise is a number in [0, 1]."""
    check_number("rate", rate, "in [0, 1]", lambda rate: 0 <= rate <= 1)


def _check(num_classes: int, rate: float) -> None:
    check_integer("num_classes", num_classes, 2)
    check_rate(rate)

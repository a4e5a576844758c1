"""The one shape of all data: inputs, given labels, true labels where they are known."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Generator, Tensor

from ..errors import check_number

if TYPE_CHECKING:
    from .pipeline import Pipeline


class Stored(Protocol):
    """Samples outside memory, such as images on disk: read when they are indexed."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor, /) -> Tensor: ...

    def subset(self, index: Tensor, /) -> "Stored":
        """The samples at some positions, still unread."""
        ...


Inputs = Tensor | Stored
"""Samples that can be indexed by a tensor of positions."""


Transform = Callable[[Inputs, Tensor, Generator | None], Tensor]
"""(inputs, positions, generator) -> a float batch; without a generator, as for evaluation."""


def read(inputs: Inputs, index: Tensor, generator: Generator | None = None) -> Tensor:
    """Return the samples unchanged: the transform of features that need no augmentation."""
    if not isinstance(inputs, Tensor):
        return inputs[index]
    # on a CPU many times faster than inputs[index] for rows of features or bytes
    return inputs.index_select(0, index.to(inputs.device))


@dataclass(frozen=True, eq=False)
class Split:
    """Samples with their given labels and, where they are known, the true ones.

    Args:
        inputs: The samples.
        given: (N,) their labels, some of which may be wrong.
        true: (N,) the true labels, if they are known.
        weight: (N,) how much each sample counts in training; None is 1 for all.
    """

    inputs: Inputs
    given: Tensor
    true: Tensor | None = None
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and self.weight.shape != self.given.shape:
            raise ValueError(
                f"weight must have the shape {tuple(self.given.shape)} of the labels, got "
                f"{tuple(self.weight.shape)}"
            )
        for name, labels in (("given", self.given), ("true", self.true)):
            if labels is None:
                continue
            if labels.dtype != torch.int64:
                raise TypeError(f"{name} labels must be int64, got {labels.dtype}")
            if labels.shape != (len(self.inputs),):
                raise ValueError(
                    f"{name} labels must be one for each of the {len(self.inputs)} inputs, "
                    f"got shape {tuple(labels.shape)}"
                )

    def __len__(self) -> int:
        return len(self.given)

    def relabel(self, given: Tensor) -> "Split":
        """Replace the given labels; the true ones stay."""
        return replace(self, given=given)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training split, one or more test splits, and how a batch of them is prepared.

    Args:
        name: What `lossforge.data.load` calls it.
        classes: The class names, in the order of the labels.
        train: The training samples; their given labels may be wrong.
        tests: Test splits by name. Most data have one, "test"; WebVision is judged on two.
        validation: A part of the training split held out, *with its given labels*, so that
            choosing an epoch or a parameter on it needs no true label.
        transform: Prepares a batch, with augmentation when it is handed a generator.
        pipeline: Prepares new samples of a user's own data alike, see `lossforge.data.pipeline`.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    tests: Mapping[str, Split]
    validation: Split | None = None
    transform: Transform = field(default=read, repr=False)
    pipeline: "Pipeline | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for part, split in self.parts().items():
            for kind, labels in (("given", split.given), ("true", split.true)):
                if labels is not None and len(labels):
                    low, high = int(labels.min()), int(labels.max())
                    if low < 0 or high >= len(self.classes):
                        raise ValueError(
                            f"{self.name}: {kind} labels of {part} must lie in "
                            f"0..{len(self.classes) - 1}, got {low}..{high}"
                        )

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def parts(self) -> dict[str, Split]:
        """Return every split by name."""
        held_out = {} if self.validation is None else {"validation": self.validation}
        return {"train": self.train, **held_out, **self.tests}

    @property
    def is_blind(self) -> bool:
        """Whether it holds neither true labels nor tests."""
        return not self.tests and all(part.true is None for part in self.parts().values())

    def without_truth(self) -> "Dataset":
        """Drop the true labels and the tests."""
        held_out = None if self.validation is None else replace(self.validation, true=None)
        return replace(self, train=replace(self.train, true=None), validation=held_out, tests={})

    def with_noise(self, given: Tensor) -> "Dataset":
        """Replace the given labels of the training samples."""
        return replace(self, train=self.train.relabel(given))

    def hold_out(self, fraction: float, *, generator: Generator) -> "Dataset":
        """Move a random part of the training split, with its given labels, to `validation`."""
        check_fraction("fraction", fraction)
        if self.validation is not None:
            raise ValueError(f"{self.name} has a validation part already")
        count = round(fraction * len(self.train))
        if not 0 < count < len(self.train):
            raise ValueError(
                f"fraction must leave a sample for both parts, got {fraction} of {len(self.train)}"
            )
        order = torch.randperm(len(self.train), generator=generator)
        return replace(
            self,
            train=subset(self.train, order[count:].sort().values),
            validation=subset(self.train, order[:count].sort().values),
        )


def subset(split: Split, index: Tensor) -> Split:
    """Return the samples of a split at the given positions."""
    inputs = split.inputs
    chosen = read(inputs, index) if isinstance(inputs, Tensor) else inputs.subset(index)
    true, weight = (None if one is None else one[index] for one in (split.true, split.weight))
    return Split(chosen, split.given[index], true, weight)


def members(labels: Tensor) -> list[Tensor]:
    """Return the positions of the samples of each class 0, 1, ..., in order."""
    ends = labels.bincount().cumsum(0)
    return list(labels.argsort(stable=True).tensor_split(ends[:-1].tolist()))


def check_fraction(name: str, value: object) -> None:
    """Raise unless `value` is a number between 0 and 1, neither included."""
    check_number(name, value, "in (0, 1)", lambda number: 0 < number < 1)


def stratify(
    labels: Tensor, test_fraction: float, *, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Divide samples class by class; return the positions of the training and the test part.

    Both are in increasing order. Each class gives the fraction of its samples, rounded, to the test
    part, but never its last one.
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


def deal(sizes: list[int], count: int) -> list[Tensor]:
    """Deal `count` positions below each size, such that no combination of them comes twice.

    Each slot deals its cards round and round. Two slots with periods m and n would repeat after
    lcm(m, n) turns; moving the second on by one there reaches all m n combinations (by the Chinese
    remainder theorem), which is the period of the two together.
    """
    step, period, turns = torch.arange(count), 1, []
    for size in sizes:
        phase = step % (period * size)
        turns.append((phase + phase // math.lcm(period, size)) % size)
        period *= size
    return turns

"""Labelled samples as training reads them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from .. import interrupts


@dataclass(frozen=True, eq=False)
class Samples:
    """Labelled samples, read in batches.

    Args:
        read: Prepares the inputs at the given positions (an int64 tensor) as a float batch, with
            augmentation when it is handed a generator.
        given: The labels as given, which training sees.
        true: The true labels, if they are known.
        weight: (N,) how much each sample counts in training, 0 or more; None is 1 for all.
    """

    read: Callable[[Tensor, Generator | None], Tensor]
    given: Tensor
    true: Tensor | None = None
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        if self.given.dtype != torch.int64 or self.given.dim() != 1:
            raise TypeError(
                f"given must be int64 labels (N,), got {self.given.dtype} "
                f"of shape {tuple(self.given.shape)}"
            )
        if self.true is not None and (
            self.true.shape != self.given.shape or self.true.dtype != torch.int64
        ):
            raise ValueError(
                f"true must be int64 labels of shape {tuple(self.given.shape)}, got "
                f"{self.true.dtype} of shape {tuple(self.true.shape)}"
            )

        if self.weight is not None and self.weight.shape != self.given.shape:
            raise ValueError(
                f"weight must have the shape {tuple(self.given.shape)} of the labels, got "
                f"{tuple(self.weight.shape)}"
            )

    def __len__(self) -> int:
        return len(self.given)

    @property
    def labels(self) -> Tensor:
        """The true labels if they are known, otherwise the given ones."""
        return self.given if self.true is None else self.true

    def inputs(
        self, positions: Tensor, device: torch.device, generator: Generator | None = None
    ) -> Tensor:
        """Read a batch onto a device; images channels last, which is faster for convolutions.

        Training and evaluation call this for every batch: the point where a signal ends them.
        """
        interrupts.check()
        batch = self.read(positions, generator).to(device, non_blocking=True)
        if batch.dim() == 4:
            return batch.contiguous(memory_format=torch.channels_last)
        return batch

"""A loss as training reads it: one value for each sample."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

LossLike = nn.Module | Callable[[int], nn.Module]
"""A loss, or a function from the epoch (counted from 0) to the loss of that epoch."""


class SampleLoss:
    """A loss as a value for each sample, with the weight that a mean over samples divides by.

    For every loss with the contract of `torch.nn.CrossEntropyLoss`, the mean over a batch is the
    sum of the values that reduction "none" gives over the sum of the kept labels' weights.

    Args:
        loss: A loss with reduction "mean" or "sum"; it is copied, not changed.
        device: Where it is evaluated.
    """

    def __init__(self, loss: nn.Module, device: torch.device) -> None:
        reduction = getattr(loss, "reduction", None)
        if reduction not in ("mean", "sum") or not hasattr(loss, "ignore_index"):
            raise TypeError(
                "loss must have reduction 'mean' or 'sum', weight and ignore_index as "
                f"torch.nn.CrossEntropyLoss has, got {loss!r}"
            )
        self.mean = reduction == "mean"
        self.ignore_index: int = loss.ignore_index  # type: ignore[assignment]
        weight = getattr(loss, "weight", None)
        self._weight = None if weight is None else weight.double().cpu()
        self._loss = copy.deepcopy(loss).to(device)
        self._loss.reduction = "none"  # type: ignore[assignment]

    @classmethod
    def at(cls, loss: LossLike, epoch: int, device: torch.device) -> "SampleLoss":
        """The loss of an epoch."""
        return cls(loss if isinstance(loss, nn.Module) else loss(epoch), device)

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """(N,) weighted values, 0 where the label is ignored."""
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        values: Tensor = self._loss(logits, target)
        return values

    def expected(self, logits: Tensor, weights: Tensor, target: Tensor) -> Tensor:
        """(N,) sums over the classes of the loss times a weight, 0 where the label is ignored.

        Args:
            logits: (N, K).
            weights: Of the classes (N, K), 0 or more.
            target: Given labels (N,), which only say what is ignored.
        """
        values = self(logits, weights.to(logits.dtype))
        return torch.where(target != self.ignore_index, values, 0)

    def kept(self, labels: Tensor, weight: Tensor | None = None) -> float:
        """The total weight of the labels that are not ignored.

        Args:
            labels: (N,).
            weight: (N,) of the samples, which multiplies that of their classes.
        """
        keep = labels != self.ignore_index
        counted = torch.ones(int(keep.sum()), dtype=torch.float64)
        if self._weight is not None:
            counted = counted * self._weight[labels[keep]]
        if weight is not None:
            counted = counted * weight[keep].double()
        return float(counted.sum())

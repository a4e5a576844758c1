"""Steps along the gradient of a loss."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn, optim

from . import distributed
from .samples import Samples
from .settings import Settings


class Diverged(RuntimeError):  # noqa: N818 - it says what happened
    """The training loss or a parameter is no longer finite.

    Attributes:
        metrics: Those of the epochs before.
    """

    def __init__(self, message: str, metrics: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.metrics = metrics


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

    def kept(self, labels: Tensor) -> float:
        """The total weight of the labels that are not ignored."""
        keep = labels[labels != self.ignore_index]
        return float(len(keep) if self._weight is None else self._weight[keep].sum())


@dataclass(frozen=True)
class Fit:
    """Trains a model one epoch at a time.

    Args:
        model: The model.
        net: The model as it is called: distributed, compiled.
        optimizer: The optimizer of its parameters.
        settings: How to train.
        device: Where the model is.
    """

    model: nn.Module
    net: Callable[..., Any]
    optimizer: optim.Optimizer
    settings: Settings
    device: torch.device

    def epoch(
        self,
        epoch: int,
        loss: SampleLoss,
        samples: Samples,
        order: Tensor,
        augment: Generator,
    ) -> tuple[float, float]:
        """Train for an epoch; return the mean loss, and the accuracy on given labels in %."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate(epoch)
        sums, weight, labelled = [], 0.0, 0
        for batch in batches(order, self.settings.batch_size):
            labels = samples.given[batch]
            kept = loss.kept(labels)
            if kept:
                sums.append(self._step(loss, samples, batch, kept, augment))
                weight += kept
                labelled += int((labels != loss.ignore_index).sum())
        if not sums:
            raise ValueError("samples must have a label that the loss does not ignore, got none")
        value, hits = distributed.total(torch.stack(sums)).cpu().double().sum(0).tolist()
        return value / weight, 100 * hits / labelled

    def _step(
        self,
        loss: SampleLoss,
        samples: Samples,
        batch: Tensor,
        kept: float,
        augment: Generator,
    ) -> Tensor:
        """Take one step; return this process's sum of losses and number of hits."""
        mine = distributed.share(batch)
        # A process without samples must still take part in averaging the gradient.
        positions = mine if len(mine) else batch[:1]
        target = samples.given[positions].to(self.device)
        with self.settings.autocast(self.device):
            logits = self.net(samples.inputs(positions, self.device, augment))
        total = loss(logits, target)[: len(mine)].sum()
        self.optimizer.zero_grad()
        _, size = distributed.world()
        torch.autograd.backward(total * (size / kept if loss.mean else size))
        self._decay_and_clip()
        self.optimizer.step()
        hit = (logits.detach().argmax(1) == target) & (target != loss.ignore_index)
        hits = hit[: len(mine)].sum()
        return torch.stack([total.detach(), hits.to(total.dtype)])

    def _decay_and_clip(self) -> None:
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        if self.settings.l1_decay:
            for p in parameters:
                sign = p.detach().sign().mul_(self.settings.l1_decay)
                p.grad = sign if p.grad is None else p.grad.add_(sign)
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(parameters, self.settings.clip)

    def check(self, epoch: int, loss: float, metrics: list[dict[str, Any]]) -> None:
        """Raise unless loss and parameters are finite."""
        finite = all(bool(p.isfinite().all()) for p in self.model.parameters())
        if math.isfinite(loss) and finite:
            return
        what = f"the mean loss is {loss:g}" if finite else "parameters are not finite"
        advice = "a smaller clip" if self.settings.clip else "clip=5"
        if self.settings.precision != "float32":
            advice += " or precision='float32'"
        raise Diverged(
            f"training diverged in epoch {epoch + 1}: {what}; "
            f"try an lr below {self.settings.lr:g} or {advice}",
            metrics,
        )


def batches(order: Tensor, size: int) -> list[Tensor]:
    """Cut the order into batches; a single sample left over joins the batch before."""
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1 < size:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts

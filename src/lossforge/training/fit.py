"""Steps along the gradient."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn, optim

from . import distributed
from .objective import Objective
from .samples import Samples
from .settings import Settings


class Diverged(RuntimeError):  # noqa: N818 - it says what happened
    """The training loss or a parameter is no longer finite.

    Attributes:
        metrics: What was measured in the epochs before.
    """

    def __init__(self, message: str, metrics: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.metrics = metrics


@dataclass(frozen=True)
class Fit:
    """One epoch of training after another.

    Args:
        model: What is trained.
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
        objective: Objective,
        samples: Samples,
        order: Tensor,
        augment: Generator,
    ) -> tuple[float, float]:
        """Train for an epoch; the mean loss, and the accuracy on given labels in per cent."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate(epoch)
        sums, weight, labelled = [], 0.0, 0
        for batch in batches(order, self.settings.batch_size):
            labels = samples.given[batch]
            kept = objective.kept(labels)
            if kept:
                sums.append(self._step(objective, samples, batch, kept, augment))
                weight += kept
                labelled += int((labels != objective.ignore_index).sum())
        if not sums:
            raise ValueError("samples must have a label that the loss does not ignore, got none")
        loss, hits = distributed.total(torch.stack(sums)).cpu().double().sum(0).tolist()
        return loss / weight, 100 * hits / labelled

    def _step(
        self,
        objective: Objective,
        samples: Samples,
        batch: Tensor,
        kept: float,
        augment: Generator,
    ) -> Tensor:
        """One step; this process's sum of losses and number of hits."""
        mine = distributed.share(batch)
        # A process with nothing to do must still take part in averaging the gradient.
        positions = mine if len(mine) else batch[:1]
        target = samples.given[positions].to(self.device)
        with self.settings.autocast(self.device):
            logits = self.net(samples.inputs(positions, self.device, augment))
        total = objective(logits, target)[: len(mine)].sum()
        self.optimizer.zero_grad()
        _, size = distributed.world()
        torch.autograd.backward(total * (size / kept if objective.mean else size))
        self._decay_and_clip()
        self.optimizer.step()
        hit = (logits.detach().argmax(1) == target) & (target != objective.ignore_index)
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
        advice = ["a smaller clip" if self.settings.clip else "clip=5"]
        advice += ["precision='float32'"] * (self.settings.precision != "float32")
        raise Diverged(
            f"training diverged in epoch {epoch + 1}: {what}; "
            f"try an lr below {self.settings.lr:g} or {' or '.join(advice)}",
            metrics,
        )


def batches(order: Tensor, size: int) -> list[Tensor]:
    """The order cut into batches; a single sample left over joins the batch before."""
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1 < size:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts

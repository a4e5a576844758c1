"""Steps along the gradients that a training method asks for."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from . import distributed
from .method import Batch, Epoch, Method
from .settings import Settings


class Diverged(RuntimeError):  # noqa: N818 - it says what happened
    """The training loss or a parameter is no longer finite.

    Attributes:
        metrics: Those of the epochs before.
    """

    def __init__(self, message: str, metrics: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.metrics = metrics


@dataclass(frozen=True)
class Fit:
    """Trains the networks of a method one epoch at a time.

    Args:
        method: How a batch becomes a step.
        settings: How to train.
        device: Where the networks are.
    """

    method: Method
    settings: Settings
    device: torch.device

    def epoch(self, epoch: Epoch, order: Tensor, augment: Generator) -> tuple[float, float]:
        """Train for an epoch; return the mean loss, and the accuracy on given labels in %.

        Both are those of the first network.
        """
        self.method.begin(epoch)
        for network in epoch.networks:
            network.begin(epoch.number)
        sums, divisor, labelled = [], 0.0, 0
        for rows in batches(order, self.settings.batch_size):
            labels, weight = epoch.samples.given[rows], epoch.samples.weight
            kept = epoch.loss.kept(labels, None if weight is None else weight[rows])
            if kept:
                found, counted = self._step(epoch, rows, kept, augment)
                sums.append(found)
                divisor += counted
                labelled += int((labels != epoch.loss.ignore_index).sum())
        if not sums:
            raise ValueError(
                "samples must have a label that the loss does not ignore, with a positive weight, "
                "got none"
            )
        value, hits = distributed.total(torch.stack(sums)).cpu().double().sum(0).tolist()
        return value / divisor if divisor else 0.0, 100 * hits / labelled

    def _step(
        self, epoch: Epoch, rows: Tensor, kept: float, augment: Generator
    ) -> tuple[Tensor, float]:
        """Take a step of each network.

        Return this process's sum of values and number of hits of the first one, and the weight.
        """
        mine = distributed.share(rows)
        # A process without samples must still take part in averaging the gradient.
        positions = mine if len(mine) else rows[:1]
        target = epoch.samples.given[positions].to(self.device)
        inputs, weight = epoch.samples.inputs(positions, self.device, augment), None
        if epoch.samples.weight is not None:
            weight = epoch.samples.weight[positions].to(self.device)
        batch = Batch(positions, inputs, target, kept, weight)
        logits, objectives = self.method.step(epoch, batch)
        _, size = distributed.world()
        totals = []
        for network, (values, divisor) in zip(epoch.networks, objectives, strict=True):
            total = values[: len(mine)].sum()
            if divisor:
                network.descend(total * (size / divisor if epoch.loss.mean else size))
            totals.append(total.detach())
        hit = (logits.detach().argmax(1) == target) & (target != epoch.loss.ignore_index)
        hits = hit[: len(mine)].sum()
        return torch.stack([totals[0], hits.to(totals[0].dtype)]), objectives[0].weight

    def check(self, epoch: Epoch, loss: float, metrics: list[dict[str, Any]]) -> None:
        """Raise unless loss and parameters are finite."""
        models = [network.model for network in epoch.networks]
        finite = all(bool(p.isfinite().all()) for model in models for p in model.parameters())
        if math.isfinite(loss) and finite:
            return
        what = f"the mean loss is {loss:g}" if finite else "parameters are not finite"
        advice = "a smaller clip" if self.settings.clip else "clip=5"
        if self.settings.precision != "float32":
            advice += " or precision='float32'"
        raise Diverged(
            f"training diverged in epoch {epoch.number + 1}: {what}; "
            f"try an lr below {self.settings.lr:g} or {advice}",
            metrics,
        )


def batches(order: Tensor, size: int) -> list[Tensor]:
    """Cut the order into batches; a single sample left over joins the batch before."""
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1 < size:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts

"""Many small networks trained side by side, each as `lossforge.training.train` would train it.

An audit of a simulated case trains about a hundred networks of 64 units, in which a step is nearly
all overhead. Here all of them take a step in the same tensor operations. Weights, batches, Adam and
early stopping are the library's; tests/audit/test_audit_cases.py compares the two.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lossforge.training import Settings, generator
from lossforge.training.fit import batches

BETA, EPS = 0.999, 1e-8  # torch's defaults


@dataclass(eq=False)
class Job:
    """A network to train, and what it predicts.

    Args:
        model: With its initial weights; not changed.
        loss: With reduction "mean".
        settings: Those of Adam.
        seed: Of the batch order.
        rows: Training samples, as rows of the inputs (n,).
        labels: Theirs (n,).
        weights: Theirs (n,).
        held: Samples to predict, as rows of the inputs (m,).
        held_labels: Labels for early stopping (m,); None trains to the end.
        patience: Epochs without a better prediction of these.
        logits: The result (m, K).
        epoch: The epoch whose network predicted, counted from 1.
    """

    model: nn.Module
    loss: nn.Module
    settings: Settings
    seed: int
    rows: Tensor
    labels: Tensor
    weights: Tensor
    held: Tensor
    held_labels: Tensor | None = None
    patience: int = 6
    logits: Tensor = field(init=False)
    epoch: int = field(init=False, default=0)

    def key(self) -> tuple[object, ...]:
        """Jobs with equal keys can be stacked."""
        shapes = tuple(tuple(one.shape) for one in self.model.parameters())
        return (*shapes, self.settings.batch_size, self.held_labels is None)


def train_all(jobs: Sequence[Job], inputs: Tensor) -> None:
    """Train all jobs, those of equal shape together."""
    groups: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.key(), []).append(job)
    for group in groups.values():
        _Stack(group, inputs).train()


class _Stack:
    def __init__(self, jobs: list[Job], inputs: Tensor) -> None:
        self.jobs, self.inputs = sorted(jobs, key=lambda job: str(job.loss)), inputs
        jobs = self.jobs
        self.losses: list[tuple[nn.Module, slice]] = []
        for number, job in enumerate(jobs):
            if number and str(job.loss) == str(jobs[number - 1].loss):
                loss, span = self.losses.pop()
                self.losses.append((loss, slice(span.start, number + 1)))
            else:
                loss = copy.deepcopy(job.loss)
                loss.reduction = "none"  # type: ignore[assignment]
                self.losses.append((loss, slice(number, number + 1)))
        self.rows = _padded([job.rows for job in jobs])
        self.labels = _padded([job.labels for job in jobs])
        self.weights = _padded([job.weights for job in jobs])
        self.held = _padded([job.held for job in jobs])
        self.live = torch.ones(len(jobs), dtype=torch.bool)
        self.steps = torch.zeros(len(jobs), 1)
        self.decay = torch.tensor([job.settings.weight_decay for job in jobs])[:, None]
        # all parameters of a network in one row, so that Adam is a few operations
        layers = [
            [one for one in job.model.modules() if isinstance(one, nn.Linear)] for job in jobs
        ]
        self.shapes = [(one.in_features, one.out_features) for one in layers[0]]
        rows = [
            torch.cat([part for one in own for part in (one.weight.T.flatten(), one.bias)])
            for own in layers
        ]
        self.params = torch.stack(rows).detach().requires_grad_()
        self.first, self.second = torch.zeros_like(self.params), torch.zeros_like(self.params)

    def train(self) -> None:
        best = [float("-inf")] * len(self.jobs)
        for epoch in range(max(job.settings.epochs for job in self.jobs)):
            for place, job in enumerate(self.jobs):
                if epoch >= job.settings.epochs:
                    self.live[place] = False
            if not bool(self.live.any()):
                break
            self._epoch(epoch)
            if self.jobs[0].held_labels is not None:
                self._stop(epoch + 1, best)
        if self.jobs[0].held_labels is None:
            for job, logits in zip(self.jobs, self._predict(), strict=True):
                job.logits, job.epoch = logits[: len(job.held)], job.settings.epochs

    def _epoch(self, epoch: int) -> None:
        parts = []
        for job in self.jobs:
            order = torch.randperm(len(job.rows), generator=generator(job.seed, "order", epoch))
            parts.append(batches(order, job.settings.batch_size))
        rates = torch.tensor([job.settings.learning_rate(epoch) for job in self.jobs])
        for number in range(max(map(len, parts))):
            chosen = [part[number] if number < len(part) else part[0][:0] for part in parts]
            self._step(_padded(chosen), torch.tensor(list(map(len, chosen))), rates)

    def _step(self, at: Tensor, counts: Tensor, rates: Tensor) -> None:
        rows, labels = self.rows.gather(1, at), self.labels.gather(1, at)
        counted = torch.arange(at.shape[1]) < counts[:, None]
        weights = self.weights.gather(1, at) * counted / counts.clamp(min=1)[:, None]
        logits = self._logits(self.inputs[rows])
        total = torch.zeros(())
        for loss, span in self.losses:
            found = loss(logits[span].flatten(0, 1), labels[span].flatten())
            total = total + found @ weights[span].flatten()
        (gradient,) = torch.autograd.grad(total, self.params)
        self._descend(gradient, rates[:, None], (self.live & (counts > 0))[:, None])

    @torch.no_grad()
    def _descend(self, slope: Tensor, rates: Tensor, active: Tensor) -> None:
        self.steps += active
        beta, steps = self.jobs[0].settings.momentum, self.steps.clamp(min=1)
        slope.addcmul_(self.params, self.decay)
        # a network that takes no step keeps its moments
        self.first.lerp_(slope, active * (1 - beta))
        self.second.lerp_(slope.square_(), active * (1 - BETA))
        scale = (self.second.sqrt() / (1 - BETA**steps).sqrt()).add_(EPS)
        rates = active * rates / (1 - beta**steps)
        self.params.sub_((self.first * rates).div_(scale))

    def _logits(self, x: Tensor) -> Tensor:
        start = 0
        for place, (inner, outer) in enumerate(self.shapes):
            end = start + inner * outer
            weight = self.params[:, start:end].view(-1, inner, outer)
            start = end + outer
            x = torch.baddbmm(self.params[:, None, end:start], x, weight)
            if place + 1 < len(self.shapes):
                x = x.relu()
        return x

    @torch.no_grad()
    def _predict(self) -> Tensor:
        return self._logits(self.inputs[self.held])

    def _stop(self, epoch: int, best: list[float]) -> None:
        """Keep the best predictions of each, and stop those that get no better."""
        for place, logits in enumerate(self._predict()):
            job = self.jobs[place]
            if not self.live[place]:
                continue
            assert job.held_labels is not None
            logits = logits[: len(job.held)]
            found = logits.double().log_softmax(1).gather(1, job.held_labels[:, None])
            if float(found.mean()) > best[place]:
                best[place], job.logits, job.epoch = float(found.mean()), logits.clone(), epoch
            elif epoch - job.epoch >= job.patience:
                self.live[place] = False


def _padded(parts: Sequence[Tensor]) -> Tensor:
    """Stack vectors of different lengths, with zeros behind the shorter ones."""
    return nn.utils.rnn.pad_sequence(list(parts), batch_first=True)

"""The training loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from . import distributed
from .evaluate import accuracy, memorisation, top_classes
from .fit import Fit
from .method import Epoch, Method
from .network import Network
from .precision import check_precision
from .sample_loss import LossLike, SampleLoss
from .samples import Samples
from .seeds import generator, seeded
from .settings import Settings
from .state import State

Metrics = dict[str, Any]


def train(
    model: nn.Module,
    loss: LossLike,
    samples: Samples,
    tests: Mapping[str, Samples],
    settings: Settings,
    *,
    seed: int,
    method: Method | None = None,
    peers: Sequence[nn.Module] = (),
    validation: Samples | None = None,
    state: State | None = None,
    device: str | torch.device = "cpu",
    on_epoch: Callable[[State], object] | None = None,
) -> State:
    """Train a model in place, from its present weights or from a state.

    On a CPU with a fixed number of threads, seed, settings and initial weights determine every bit
    of the result, whether or not the run was interrupted and continued from a state. Torch's global
    random state is left as it was. In a process group (torchrun) every process calls this with the
    same arguments, and each works on its part of every batch: see `lossforge.training.distributed`.

    A last batch that is not full is used; a single sample left over joins the batch before, as a
    batch norm needs two. A batch all of whose labels are ignored makes no step.

    Args:
        model: The model.
        loss: A `lossforge.Loss` or a `torch.nn.CrossEntropyLoss`, with reduction "mean" or "sum";
            or a function from the epoch, counted from 0, to such a loss.
        samples: The training samples; only their given labels are trained on. With weights w, the
            mean over a batch is the sum of w times the loss over the sum of w.
        tests: Samples to test on after every epoch, by name.
        settings: How to train.
        seed: Determines batch order, augmentation, dropout and the probed samples.
        method: The training method; None is the plain loop.
        peers: Further models for a method of several networks, `method.networks - 1` of them; the
            first model alone is tested.
        validation: Held-out samples, judged by their given labels.
        state: The state to continue from; in a process group, that of rank 0.
        device: Where to train.
        on_epoch: Called after every epoch with the state then; in a process group by rank 0 alone.

    Returns:
        The state after the last epoch. Its `metrics` have for each epoch: epoch (from 1), lr, loss
        (mean, without decay) and accuracy (on given labels) while training, tests (top1 and top5 by
        name), validation, noise_fit, noise_recovered and clean_fit (see `memorisation`).
        Accuracies are in per cent, and None where they are unknown.

    Raises:
        Diverged: If the loss or a parameter is not finite after an epoch.
        RuntimeError: If precision is "bf16" and this CPU cannot train in it.
    """
    if not len(samples):
        raise ValueError("samples must not be empty")
    method = method or Method()
    _check_method(method, peers, weighted=samples.weight is not None)
    device = torch.device(device)
    rank, _ = distributed.world()
    networks = [Network.make(one, settings, device) for one in (model, *peers)]
    pairs = [(network.model, network.optimizer) for network in networks]
    metrics: list[Metrics] = []
    memory: dict[str, Tensor] = {}
    if (state := distributed.agree_on_state(state, device)) is not None:
        if state.epoch > settings.epochs:
            raise ValueError(f"state must have {settings.epochs} epochs or less, got {state.epoch}")
        state.restore(pairs)
        metrics = list(state.metrics)
        memory = {name: value.to(device, copy=True) for name, value in state.memory.items()}
    networks = [network.wrapped() for network in networks]
    fit = Fit(method, settings, device)
    probe = torch.randperm(len(samples), generator=generator(seed, "probe"))[: settings.probe]
    judge = _Judge(model, settings, device, samples, probe.sort().values, tests, validation)
    if len(metrics) < settings.epochs:
        check_precision(settings.precision, device)
    noisy = replace(samples, true=None)
    for number in range(len(metrics), settings.epochs):
        order = torch.randperm(len(samples), generator=generator(seed, "order", number))
        augment = generator(seed, "augment", number, rank)
        sample_loss = SampleLoss.at(loss, number, device)
        chance = generator(seed, "method", number, rank)
        epoch = Epoch(number, networks, sample_loss, noisy, memory, chance)
        with seeded(device, seed, "layers", number, rank):
            mean, right = fit.epoch(epoch, order, augment)
        fit.check(epoch, mean, metrics)
        row = {"epoch": number + 1, "lr": settings.learning_rate(number), "loss": mean}
        metrics.append({**row, "accuracy": right, **judge.measure()})
        if on_epoch is not None and rank == 0:
            on_epoch(State.take(pairs, metrics, memory))
    return State.take(pairs, metrics, memory)


def _check_method(method: Method, peers: Sequence[nn.Module], *, weighted: bool) -> None:
    if weighted and not method.weighs:
        raise ValueError(f"samples must have no weights for the method {method}")
    if len(peers) != method.networks - 1:
        raise ValueError(
            f"peers must be {method.networks - 1} models for {method}, got {len(peers)}"
        )
    if not method.distributed and distributed.world()[1] > 1:
        raise ValueError(f"{method} must run in one process, got {distributed.world()[1]}")


@dataclass(frozen=True)
class _Judge:
    """Measures the model after every epoch."""

    model: nn.Module
    settings: Settings
    device: torch.device
    samples: Samples
    probe: Tensor
    tests: Mapping[str, Samples]
    validation: Samples | None

    def measure(self) -> Metrics:
        distributed.agree_on_buffers(self.model)
        held_out, true = self.validation, self.samples.true
        tests = {name: accuracy(self._top(test), test.labels) for name, test in self.tests.items()}
        noise: Mapping[str, float | None] = memorisation(self.probe, self.probe, None)
        if true is not None and len(self.probe):
            predicted = self._top(self.samples, self.probe)[:, 0]
            noise = memorisation(predicted, self.samples.given[self.probe], true[self.probe])
        chosen_by = None
        if held_out is not None:
            chosen_by = accuracy(self._top(held_out), held_out.given)["top1"]
        return {"tests": tests, "validation": chosen_by, **noise}

    def _top(self, samples: Samples, positions: Tensor | None = None) -> Tensor:
        # larger batches than in training, as no activations are kept
        size, context = 4 * self.settings.batch_size, self.settings.autocast(self.device)
        return top_classes(self.model, samples, positions, batch_size=size, context=context)

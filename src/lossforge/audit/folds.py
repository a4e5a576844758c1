"""Probabilities out of fold: each row from a network that has not seen that sample.

The network is small and trained with cross entropy, and each fold stops at the epoch that predicts
its held-out labels best. These labels are noisy, which does not matter: a network that begins to
fit wrong labels predicts the labels of others worse, right or wrong. On digits this came closer to
the true noise rate than training with a robust loss, whose probabilities are overconfident.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..benchmark.prepare import logits_of, prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import parse
from ..data import Dataset, subset
from ..training import Samples, Settings, State, generator, train

LOSS = "CE"
PATIENCE = 6  # epochs without a better prediction of the held-out labels
STEPS = 8  # of an epoch, at least, where there are few samples
LR = 1e-3


class _EnoughError(Exception):
    """Training has gone on for long enough."""


@dataclass(frozen=True)
class Folded:
    """Probabilities out of fold.

    Args:
        probs: (N, K), float64.
        epochs: The epoch at which each fold was stopped.
    """

    probs: Tensor
    epochs: tuple[int, ...]


def network_of(dataset: Dataset) -> str:
    """The network for the data: a small CNN for images, an MLP for features."""
    probe = dataset.transform(dataset.train.inputs, torch.tensor([0]), None)
    return "cnn8-narrow" if probe.ndim == 4 else "mlp"


def settings_for(n: int, epochs: int, *, lr: float = LR, schedule: str = "constant") -> Settings:
    """How a network is trained on n samples."""
    batch = 2 ** max(4, min(8, math.floor(math.log2(max(1, n / STEPS)))))
    return Settings(
        epochs=epochs, batch_size=batch, optimizer="adam", lr=lr, schedule=schedule, probe=0
    )


def make_folds(given: Tensor, folds: int, seed: int) -> Tensor:
    """(N,) a fold for each sample; every class is spread over all of them evenly."""
    draw = generator(seed, "folds")
    shuffled = torch.randperm(len(given), generator=draw)
    order = shuffled[given[shuffled].argsort(stable=True)]
    assigned = torch.empty_like(given)
    assigned[order] = torch.arange(len(given)) % folds
    return assigned


def fresh_network(dataset: Dataset, seed: int) -> nn.Module:
    """A network with initial weights of its own for every seed."""
    network = network_of(dataset)
    spec = RunSpec(data=dataset.name, model=network, loss=LOSS, expression=LOSS, seed=seed)
    return prepare_model(spec, dataset)


def cross_validate(
    dataset: Dataset,
    *,
    folds: int,
    epochs: int,
    seed: int,
    device: str = "cpu",
    on_epoch: Callable[[int, int], object] | None = None,
) -> Folded:
    """Train a network for each fold on all the others, and predict the fold.

    Args:
        dataset: Its training split is used, given labels only.
        folds: How many; each class must have as many samples.
        epochs: The most that a network is trained for.
        seed: Of folds, weights and batch order.
        device: Where to train.
        on_epoch: Called after every epoch with the fold and the epoch.
    """
    split = dataset.train
    assigned = make_folds(split.given, folds, seed)
    probs = torch.zeros(len(split), dataset.num_classes, dtype=torch.float64)
    stopped = []
    for fold in range(folds):
        inside = (assigned == fold).nonzero()[:, 0]
        outside = (assigned != fold).nonzero()[:, 0]
        best = _fit_until_best(
            dataset,
            samples(dataset, subset(split, outside)),
            samples(dataset, subset(split, inside)),
            epochs,
            folds * seed + fold,
            device,
            None if on_epoch is None else lambda epoch, fold=fold: on_epoch(fold, epoch),  # type: ignore[misc]
        )
        probs[inside] = best.probs
        stopped.append(best.epoch)
    return Folded(probs, tuple(stopped))


class _Best:
    """The prediction of held-out labels that was best so far."""

    def __init__(self, model: nn.Module, held_out: Samples, device: str) -> None:
        self.model, self.held_out, self.device = model, held_out, device
        self.epoch, self.score = 0, -math.inf
        self.probs = torch.empty(0)

    def look(self, epoch: int) -> None:
        """Judge the network after an epoch; raise if it has got no better for a while."""
        log_probs = predict(self.model, self.held_out, self.device)
        score = float(log_probs.gather(1, self.held_out.given[:, None]).mean())
        if score > self.score:
            self.epoch, self.score, self.probs = epoch, score, log_probs.exp()
        elif epoch - self.epoch >= PATIENCE:
            raise _EnoughError


def _fit_until_best(
    dataset: Dataset,
    seen: Samples,
    held_out: Samples,
    epochs: int,
    seed: int,
    device: str,
    on_epoch: Callable[[int], object] | None,
) -> _Best:
    model = fresh_network(dataset, seed)
    best = _Best(model, held_out, device)

    def look(state: State) -> None:
        if on_epoch is not None:
            on_epoch(state.epoch)
        best.look(state.epoch)

    settings = settings_for(len(seen), epochs)
    with suppress(_EnoughError):
        train(model, parse(LOSS), seen, {}, settings, seed=seed, device=device, on_epoch=look)
    return best


def predict(model: nn.Module, part: Samples, device: str) -> Tensor:
    """(N, K) log-probabilities in float64, on the CPU."""
    return logits_of(model, part, device).double().log_softmax(1)

"""Out-of-fold predictions: every sample is predicted by a network that was not trained on it."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .evaluate import predict
from .loop import train
from .method import Method
from .sample_loss import LossLike
from .samples import Samples
from .seeds import generator
from .settings import Settings
from .state import State


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples to train on, and the held-out rest.

    Args:
        number: Counted from 0.
        rows: Positions of the held-out samples (n,).
        seen: The samples to train on.
        held_out: The samples to predict.
    """

    number: int
    rows: Tensor
    seen: Samples
    held_out: Samples


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions of the held-out samples of a fold.

    Args:
        logits: (n, K), on the CPU.
        epoch: The epoch of the network that made them, counted from 1.
    """

    logits: Tensor
    epoch: int


class _NoImprovementError(Exception):
    """Ends a training whose predictions have stopped getting better."""


def assign_folds(given: Tensor, folds: int, seed: int) -> Tensor:
    """Draw a fold for each sample (N,), with every class spread evenly over all folds."""
    shuffled = torch.randperm(len(given), generator=generator(seed, "folds"))
    order = shuffled[given[shuffled].argsort(stable=True)]
    assigned = torch.empty_like(given)
    assigned[order] = torch.arange(len(given)) % folds
    return assigned


def split_folds(samples: Samples, assigned: Tensor) -> Iterator[Fold]:
    """Hold out one fold after another.

    Args:
        samples: All samples.
        assigned: The fold of each (N,), counted from 0.
    """
    for number in range(int(assigned.max()) + 1):
        rows, others = ((assigned == number).nonzero()[:, 0], (assigned != number).nonzero()[:, 0])
        yield Fold(number, rows, select(samples, others), select(samples, rows))


def select(samples: Samples, rows: Tensor) -> Samples:
    """Return the samples at some positions."""
    return Samples(
        lambda positions, chance: samples.read(rows[positions], chance),
        samples.given[rows],
        *(None if one is None else one[rows] for one in (samples.true, samples.weight)),
    )


def fit_fold(
    fold: Fold,
    model: nn.Module,
    loss: LossLike,
    settings: Settings,
    *,
    seed: int,
    device: str = "cpu",
    method: Method | None = None,
    patience: int | None = None,
    on_epoch: Callable[[int], object] | None = None,
) -> Prediction:
    """Train a model outside a fold, and predict the fold.

    Args:
        fold: From `split_folds`.
        model: The network, with its initial weights.
        loss: As for `train`.
        settings: As for `train`.
        seed: As for `train`.
        device: Where to train.
        method: As for `train`.
        patience: Stop after this many epochs without a higher mean log-likelihood of the held-out
            labels, and predict with the best epoch; None trains to the end.
        on_epoch: Called after every epoch with its number, counted from 1.
    """
    best: Prediction | None = None
    best_score = -math.inf

    def end_epoch(state: State) -> None:
        nonlocal best, best_score
        if on_epoch is not None:
            on_epoch(state.epoch)
        if patience is None:
            return
        logits = predict(model, fold.held_out)
        log_probs = logits.double().log_softmax(1)
        score = float(log_probs.gather(1, fold.held_out.given[:, None]).mean())
        if score > best_score:
            best, best_score = Prediction(logits, state.epoch), score
        elif state.epoch - (0 if best is None else best.epoch) >= patience:
            raise _NoImprovementError

    with suppress(_NoImprovementError):
        train(
            model,
            loss,
            fold.seen,
            {},
            settings,
            seed=seed,
            method=method,
            device=device,
            on_epoch=end_epoch,
        )
    if best is None:
        best = Prediction(predict(model, fold.held_out), settings.epochs)
    return best

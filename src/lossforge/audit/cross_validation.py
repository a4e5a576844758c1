"""Cross-validation on noisy labels: probabilities out of fold.

The network is small. It is trained with cross entropy, and each fold stops at
the epoch that predicts its held-out labels best. That these labels are noisy does not matter: a
network that starts to fit wrong labels predicts held-out labels worse, whether correct or wrong. On
digits this came closer to the true noise rate than training with a robust loss, whose probabilities
are overconfident.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..benchmark.run import prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import read
from ..data import Dataset
from ..training import Settings
from ..training.folds import Fold, Prediction, assign_folds, fit_fold, split_folds
from .kept import Kept
from .subject import has_images

LOSS = "CE"
PATIENCE = 6  # epochs without a better prediction of the held-out labels
MIN_STEPS = 8  # per epoch, where there are few samples
LR = 1e-3

MIN_TRIAL_EPOCHS, MAX_TRIAL_EPOCHS = 20, 40
SLOWER = 3  # robust losses take more epochs than cross entropy with early stopping


@dataclass(frozen=True)
class OutOfFold:
    """Probabilities out of fold.

    Args:
        probs: (N, K), float64.
        epochs: The epoch whose network predicted each fold.
    """

    probs: Tensor
    epochs: tuple[int, ...]


def network_of(dataset: Dataset) -> str:
    """Choose the network for the data: a small CNN for images, an MLP for features."""
    return "cnn8-narrow" if has_images(dataset) else "mlp"


def settings_for(n: int, epochs: int, **changes: Any) -> Settings:
    """Return training settings for n samples.

    Args:
        n: The number of samples.
        epochs: The number of epochs.
        changes: Other settings than a constant learning rate of `LR`.
    """
    batch = 2 ** max(4, min(8, math.floor(math.log2(max(1, n / MIN_STEPS)))))
    usual = {"optimizer": "adam", "lr": LR, "schedule": "constant", "probe": 0}
    return Settings(epochs=epochs, batch_size=batch, **{**usual, **changes})


def fresh_network(dataset: Dataset, seed: int, hidden: Sequence[int] | None = None) -> nn.Module:
    """Make a network with initial weights that depend on the seed.

    Args:
        dataset: The data that it fits.
        seed: Of the weights.
        hidden: Widths of the hidden layers of an MLP, instead of the network's own.
    """
    spec = RunSpec(
        data=dataset.name,
        model=network_of(dataset) if hidden is None else "mlp",
        model_options={} if hidden is None else {"hidden": list(hidden)},
        loss=LOSS,
        expression=LOSS,
        seed=seed,
    )
    return prepare_model(spec, dataset)


def cross_validate(
    dataset: Dataset,
    *,
    folds: int,
    epochs: int,
    seed: int,
    device: str = "cpu",
    hidden: tuple[int, ...] | None = None,
    kept: Kept | None = None,
    on_epoch: Callable[[int, int], object] | None = None,
) -> OutOfFold:
    """Predict each fold by a network trained on all other folds.

    Args:
        dataset: Its training split is used, given labels only.
        folds: The number of folds; each class must have at least as many samples.
        epochs: Maximum number of epochs.
        seed: Of folds, weights and batch order.
        device: Where to train.
        hidden: As for `fresh_network`.
        kept: Predictions of an interrupted call.
        on_epoch: Called after every epoch with the fold and the epoch.
    """
    given = dataset.train.given
    probs = torch.zeros(len(given), dataset.num_classes, dtype=torch.float64)
    best_epochs = []

    def predict_fold(fold: Fold) -> Prediction:
        def end_epoch(epoch: int) -> None:
            if on_epoch is not None:
                on_epoch(fold.number, epoch)

        number = folds * seed + fold.number
        settings = settings_for(len(fold.seen), epochs)

        def fit() -> Prediction:
            return fit_fold(
                fold,
                fresh_network(dataset, number, hidden),
                read(LOSS).loss,
                settings,
                seed=number,
                device=device,
                patience=PATIENCE,
                on_epoch=end_epoch,
            )

        if kept is None:
            return fit()
        return kept.prediction(
            fit,
            rows=fold.rows.tolist(),
            network=[network_of(dataset), hidden],
            loss=LOSS,
            settings=settings,
            seed=number,
            device=device,
            patience=PATIENCE,
        )

    for fold in split_folds(samples(dataset, dataset.train), assign_folds(given, folds, seed)):
        found = predict_fold(fold)
        probs[fold.rows] = found.logits.double().log_softmax(1).exp()
        best_epochs.append(found.epoch)
    return OutOfFold(probs, tuple(best_epochs))


def trial_epochs(best_epochs: Sequence[int], limit: int) -> int:
    """Choose the number of epochs for each loss from the best epochs of cross entropy.

    Args:
        best_epochs: The best epoch of each fold.
        limit: The maximum.
    """
    median = sorted(best_epochs)[len(best_epochs) // 2]
    return min(limit, MAX_TRIAL_EPOCHS, max(MIN_TRIAL_EPOCHS, SLOWER * median))

"""Cross-validation on noisy labels: probabilities out of fold, and the accuracy of each loss.

The network is small. For the probabilities it is trained with cross entropy, and each fold stops at
the epoch that predicts its held-out labels best. That these labels are noisy does not matter: a
network that starts to fit wrong labels predicts held-out labels worse, whether correct or wrong. On
digits this came closer to the true noise rate than training with a robust loss, whose probabilities
are overconfident.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn

from ..benchmark.run import prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import read
from ..data import Dataset
from ..training import Diverged, Settings
from ..training.folds import Fold, Prediction, assign_folds, fit_fold, split_folds
from .kept import Kept
from .subject import has_images

LOSS = "CE"
PATIENCE = 6  # epochs without a better prediction of the held-out labels
MIN_STEPS = 8  # per epoch, where there are few samples
LR = 1e-3

ENOUGH = 2000  # held-out labels; the standard error of a share of them is about a point
TRIAL_LR = 2e-3
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


def settings_for(n: int, epochs: int, *, lr: float = LR, schedule: str = "constant") -> Settings:
    """Return training settings for n samples."""
    batch = 2 ** max(4, min(8, math.floor(math.log2(max(1, n / MIN_STEPS)))))
    return Settings(
        epochs=epochs, batch_size=batch, optimizer="adam", lr=lr, schedule=schedule, probe=0
    )


def fresh_network(dataset: Dataset, seed: int) -> nn.Module:
    """Make a network with initial weights that depend on the seed."""
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
        kept: Predictions of an interrupted call.
        on_epoch: Called after every epoch with the fold and the epoch.
    """
    given = dataset.train.given
    probs = torch.zeros(len(given), dataset.num_classes, dtype=torch.float64)
    best_epochs = []

    def predict_fold(fold: Fold) -> None:
        def end_epoch(epoch: int) -> None:
            if on_epoch is not None:
                on_epoch(fold.number, epoch)

        found = _fit(
            dataset,
            fold,
            LOSS,
            settings_for(len(fold.seen), epochs),
            kept,
            weights=folds * seed + fold.number,
            seed=folds * seed + fold.number,
            device=device,
            patience=PATIENCE,
            on_epoch=end_epoch,
        )
        probs[fold.rows] = found.logits.double().log_softmax(1).exp()
        best_epochs.append(found.epoch)

    for fold in split_folds(samples(dataset, dataset.train), assign_folds(given, folds, seed)):
        predict_fold(fold)
    return OutOfFold(probs, tuple(best_epochs))


def try_losses(
    losses: Sequence[str],
    dataset: Dataset,
    *,
    folds: int,
    epochs: int,
    seed: int,
    device: str = "cpu",
    kept: Kept | None = None,
    on_progress: Callable[[int, float], object] | None = None,
) -> dict[str, float]:
    """Measure the accuracy on held-out noisy labels of networks trained with each loss.

    Folds are held out in turn until 2,000 labels have been predicted, or all. All losses start from
    the same weights and see the same batches. The network of the last epoch predicts, as in use.

    Args:
        losses: Losses or expressions.
        dataset: Its training split is used, given labels only.
        folds: The number of folds.
        epochs: The number of epochs.
        seed: Of folds, weights and batch order.
        device: Where to train.
        kept: Predictions of an interrupted call.
        on_progress: Called after every epoch with the index of the loss and the finished share of
            its work.

    Returns:
        For each loss, the share of held-out labels that are the most probable class.
    """
    assigned = assign_folds(dataset.train.given, folds, seed)
    held_out = min(folds, math.ceil(ENOUGH * folds / len(assigned)))

    def hits(index: int, fold: Fold) -> Tensor:
        def end_epoch(epoch: int) -> None:
            if on_progress is not None:
                on_progress(index, (fold.number + epoch / epochs) / held_out)

        given = fold.held_out.given
        try:
            found = _fit(
                dataset,
                fold,
                losses[index],
                settings_for(len(fold.seen), epochs, lr=TRIAL_LR, schedule="cosine"),
                kept,
                weights=folds * seed + fold.number,
                seed=seed,
                device=device,
                on_epoch=end_epoch,
            )
        except Diverged:
            return torch.zeros_like(given, dtype=torch.bool)
        return found.logits.double().log_softmax(1).argmax(1) == given

    shares = {}
    for index, loss in enumerate(losses):
        all_folds = split_folds(samples(dataset, dataset.train), assigned)
        found = torch.cat([hits(index, fold) for fold in islice(all_folds, held_out)])
        shares[loss] = int(found.sum()) / len(found)
    return shares


def _fit(
    dataset: Dataset,
    fold: Fold,
    loss: str,
    settings: Settings,
    kept: Kept | None,
    *,
    weights: int,
    seed: int,
    device: str,
    patience: int | None = None,
    on_epoch: Callable[[int], object],
) -> Prediction:
    """Predict a fold as `fit_fold` does, unless the prediction is kept.

    Args:
        dataset: The data, which the network fits.
        fold: The fold to predict.
        loss: A loss or expression.
        settings: Of the training.
        kept: Predictions of an interrupted call.
        weights: Seed of the initial weights.
        seed: As for `fit_fold`, like all that follows.
        device: Where to train.
        patience: When to stop.
        on_epoch: Called after every epoch.
    """
    reading = read(loss)

    def fit() -> Prediction:
        return fit_fold(
            fold,
            fresh_network(dataset, weights),
            reading.loss,
            settings,
            seed=seed,
            device=device,
            patience=patience,
            on_epoch=on_epoch,
        )

    if kept is None:
        return fit()
    return kept.prediction(
        fit,
        rows=fold.rows.tolist(),
        network=network_of(dataset),
        weights=weights,
        loss=reading.text,
        **({"code": [code.hash for code in reading.code]} if reading.code else {}),
        settings=settings,
        seed=seed,
        device=device,
        patience=patience,
    )


def trial_epochs(best_epochs: Sequence[int], limit: int) -> int:
    """Choose the number of epochs for each loss from the best epochs of cross entropy.

    Args:
        best_epochs: The best epoch of each fold.
        limit: The maximum.
    """
    median = sorted(best_epochs)[len(best_epochs) // 2]
    return min(limit, MAX_TRIAL_EPOCHS, max(MIN_TRIAL_EPOCHS, SLOWER * median))

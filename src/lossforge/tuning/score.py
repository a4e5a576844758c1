"""Scores and noise estimates from noisy labels alone; true labels and test sets are refused."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..benchmark.run import prepare_data, prepare_model, prepare_networks, samples
from ..benchmark.spec import RunSpec
from ..catalog import parse
from ..data import Dataset
from ..data.source import PathLike
from ..noise import estimate_noise
from ..theory import read_noise
from ..training import State, generator, make_method, train
from ..training.folds import fit_fold, split_folds
from .plan import Plan

LAST = 5  # epochs whose mean is the score: neighbouring epochs differ by chance
ESTIMATE_FOLDS = 4
ESTIMATE_EPOCHS = 10  # cross entropy fits noise later


def visible(plan: Plan, data_dir: PathLike | None = None) -> list[Dataset]:
    """Load the data that a search may see: noisy labels, with each of several parts held out."""
    noise = plan.label_noise()
    return [
        blind(prepare_data(plan.spec, data_dir, split=split, noise=noise))
        for split in range(plan.splits)
    ]


def blind(dataset: Dataset) -> Dataset:
    """Remove true labels and test sets.

    Args:
        dataset: With a held-out part, whose given labels judge the search.
    """
    if dataset.validation is None:
        raise ValueError("dataset must have a validation part, got none: hold_out is 0")
    return dataset.without_truth()


@dataclass(frozen=True)
class HeldOutScore:
    """The score of a loss: train with it, and measure the accuracy on held-out noisy labels.

    Args:
        spec: The run, whose loss is replaced.
        datasets: From `visible`, one for each held-out part.
        device: Where to train.
    """

    spec: RunSpec
    datasets: Sequence[Dataset] = field(repr=False)
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not all(one.is_blind and one.validation is not None for one in self.datasets):
            raise ValueError("datasets must hold out a part, and neither true labels nor tests")

    def __call__(self, expression: str, on_epoch: Callable[[int, float], object]) -> float:
        """Return the mean accuracy in % on held-out noisy labels, over the last epochs and parts.

        Args:
            expression: A loss.
            on_epoch: Called after every epoch with its number and the score so far. Epochs count
                from 1 and continue from one held-out part to the next.
        """
        torch.set_num_threads(self.spec.threads)
        method = make_method(self.spec.method)
        scores: list[float] = []

        def report(state: State) -> None:
            epoch = len(scores) * self.spec.settings.epochs + state.epoch
            on_epoch(epoch, statistics.fmean([*scores, state.metrics[-1]["validation"]]))

        for dataset in self.datasets:
            assert dataset.validation is not None
            model, *peers = prepare_networks(self.spec, dataset, method)
            state = train(
                model,
                parse(expression),
                samples(dataset, dataset.train),
                {},
                self.spec.settings,
                seed=self.spec.seed,
                method=method,
                peers=peers,
                validation=samples(dataset, dataset.validation),
                device=self.device,
                on_epoch=report,
            )
            scores.append(statistics.fmean(row["validation"] for row in state.metrics[-LAST:]))
        return statistics.fmean(scores)


def estimate_transition(spec: RunSpec, dataset: Dataset, *, device: str = "cpu") -> list[Any]:
    """Estimate the transition matrix of the training labels, from out-of-fold predictions.

    Args:
        spec: The run, whose network and optimizer are used with cross entropy for a few epochs.
        dataset: From `visible`.
        device: Where to train.

    Raises:
        ValueError: If a wrong class is estimated to be the most frequent label of a class.
    """
    if not dataset.is_blind:
        raise ValueError("dataset must hold neither true labels nor tests")
    torch.set_num_threads(spec.threads)
    given = dataset.train.given
    shuffled = torch.randperm(len(given), generator=generator(spec.seed, "folds"))
    epochs = min(ESTIMATE_EPOCHS, spec.settings.epochs)
    settings = replace(spec.settings, epochs=epochs, l1_decay=0.0)
    probs = torch.zeros(len(given), dataset.num_classes)
    for fold in split_folds(samples(dataset, dataset.train), shuffled % ESTIMATE_FOLDS):
        model = prepare_model(spec, dataset)
        found = fit_fold(fold, model, parse("CE"), settings, seed=spec.seed, device=device)
        probs[fold.rows] = found.logits.float().softmax(1)
    try:
        matrix = estimate_noise(probs, given).T
        return list(read_noise(matrix, dataset.num_classes).weights.tolist())
    except ValueError as error:
        raise ValueError(
            f"the noise in these labels cannot be estimated well enough to admit losses: {error}"
        ) from None

"""Ways to train that an audit compares: losses, and procedures for the suspects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from ..catalog import read
from ..data import Dataset
from ..errors import extra
from ..training import Samples, Settings
from ..training.folds import Fold, Prediction, fit_fold, select
from ..training.method import Batch, Epoch, Method
from .cross_validation import LOSS, LR, fresh_network, settings_for

Treatment = Literal["drop", "relabel", "weigh"]
TRIAL_LR = 2e-3
LINEAR_LR = 1e-2  # Adam descends a convex objective quickly
LINEAR_COST = 0.3  # in epochs of the network
LINEAR_PENALTY = 0.3  # half of it times the squared weights, for features of length 1
MEASURED = 1000  # samples whose features are measured


@dataclass(frozen=True)
class Recipe:
    """A way to train.

    Args:
        name: As shown.
        loss: A loss or expression.
        suspects: What is done about suspects; None for nothing.
        linear: Whether the model is a logistic regression instead of a network.
        early: Whether training stops at the epoch at which cross entropy predicts held-out labels
            best.
    """

    name: str
    loss: str = LOSS
    suspects: Treatment | None = None
    linear: bool = False
    early: bool = False


PROCEDURES = (
    Recipe("linear", linear=True),
    Recipe("linear, suspects dropped", linear=True, suspects="drop"),
    Recipe("CE, stopped early", early=True),
    Recipe("CE, suspects dropped", suspects="drop"),
    Recipe("CE, suspects relabelled", suspects="relabel"),
    Recipe("CE, suspects weighted", suspects="weigh"),
)


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What networks predict for labelled samples that they have not seen.

    Args:
        flagged: (n,) whether each sample is a suspect.
        suggested: (n,) the most probable class.
        confidence: (n,) the probability of the given label.
    """

    flagged: Tensor
    suggested: Tensor
    confidence: Tensor


def suspicion(probs: Tensor, given: Tensor) -> Suspicion:
    """Flag the samples that cleanlab finds.

    Args:
        probs: (n, K) probabilities out of fold.
        given: (n,) the labels.
    """
    find = extra("cleanlab.filter", "noise").find_label_issues
    flagged = torch.as_tensor(find(given.numpy(), probs.numpy(), n_jobs=1))
    return Suspicion(flagged, probs.argmax(1), probs.gather(1, given[:, None])[:, 0])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighted(Method):
    """The plain loop with a weight for each training sample."""

    weights: Tensor = field(repr=False)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        """Return the weighted values of the loss (n,)."""
        weights = self.weights[batch.rows].to(logits.device, logits.dtype)
        return weights * epoch.loss(logits, batch.target)


def treat(
    seen: Samples, treatment: Treatment | None, found: Suspicion | None
) -> tuple[Samples, Method | None]:
    """Return the samples to train on, and the method that weighs them.

    Args:
        seen: The training samples.
        treatment: What is done about the suspects.
        found: The suspects among these samples; unused without a treatment.
    """
    if treatment is None or found is None:
        return seen, None
    if treatment == "drop":
        return select(seen, (~found.flagged).nonzero()[:, 0]), None
    if treatment == "relabel":
        given = torch.where(found.flagged, found.suggested, seen.given)
        return Samples(seen.read, given, seen.true), None
    return seen, _Weighted(weights=torch.where(found.flagged, found.confidence, 1.0))


@dataclass(frozen=True)
class Schedule:
    """How to train, the same in trials on a part of the data as on all of them.

    Args:
        epochs: The epochs of a full training.
        best_epoch: The epoch at which cross entropy is stopped early.
        rows: The number of all samples, which decides the batch size.
        square: The mean squared length of their features, see `mean_square`.
    """

    epochs: int
    best_epoch: int
    rows: int
    square: float

    def settings(self, recipe: Recipe) -> Settings:
        """Return the training settings of a recipe."""
        if recipe.early:
            return settings_for(self.rows, self.best_epoch, lr=LR)
        settings = settings_for(self.rows, self.epochs, lr=TRIAL_LR, schedule="cosine")
        if recipe.linear:
            # longer features need smaller weights, so that a penalty of one size would do less
            decay = LINEAR_PENALTY * self.square / self.rows
            return replace(settings, lr=LINEAR_LR, weight_decay=decay)
        return settings

    def cost(self, recipe: Recipe) -> float:
        """Return about how many epochs of the network a recipe takes."""
        if recipe.early:
            return self.best_epoch
        return self.epochs * (LINEAR_COST if recipe.linear else 1)


def mean_square(samples: Samples) -> float:
    """Return the mean squared length of the features of samples, or of 1,000 spread over them."""
    rows = torch.linspace(0, len(samples) - 1, min(len(samples), MEASURED)).long()
    return float(samples.read(rows, None).flatten(1).double().square().sum(1).mean())


def fit_recipe(
    recipe: Recipe,
    dataset: Dataset,
    fold: Fold,
    found: Suspicion | None,
    schedule: Schedule,
    *,
    seed: int,
    device: str = "cpu",
    hidden: Sequence[int] | None = None,
    on_epoch: Callable[[int], object] | None = None,
) -> Prediction:
    """Train by a recipe outside a fold, and predict the fold.

    Args:
        recipe: The way to train.
        dataset: The data, which the model fits.
        fold: The samples to train on and to predict.
        found: The suspects among those to train on; unused by a recipe without a treatment.
        schedule: How long to train.
        seed: Of weights and batch order.
        device: Where to train.
        hidden: Of the network, as for `fresh_network`.
        on_epoch: As for `fit_fold`.
    """
    seen, method = treat(fold.seen, recipe.suspects, found)
    return fit_fold(
        replace(fold, seen=seen),
        fresh_network(dataset, seed, () if recipe.linear else hidden),
        read(recipe.loss).loss,
        schedule.settings(recipe),
        seed=seed,
        device=device,
        method=method,
        on_epoch=on_epoch,
    )

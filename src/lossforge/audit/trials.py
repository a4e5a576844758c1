"""Train candidates and predict held-out noisy labels with them, in rounds of fewer and fewer.

No candidate can influence what it is judged by:

* The suspects among the samples to train on are found by networks that were trained on none of the
  held-out samples. With those of the whole audit it would be otherwise: a network that saw the
  held-out labels, wrong as some are, would choose which samples to train on.
* All candidates are judged on the same held-out samples, whose scores are fixed before any of them
  is trained. None is left out because a candidate calls it suspicious.

One number is taken from all labels: the epoch at which cross entropy stops predicting held-out
labels better. It is the same for all.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import torch
from torch import Tensor

from ..benchmark.run import samples
from ..catalog import read
from ..data import Dataset
from ..data.dataset import subset
from ..noise import NoiseEstimate
from ..training import Diverged
from ..training.folds import Fold, Prediction, assign_folds, fit_fold, split_folds
from .cross_validation import LOSS, fresh_network
from .kept import Kept
from .recipes import Recipe, Schedule, Suspicion, fit_recipe, suspicion

FOLDS = 3  # more held-out labels for an epoch than with 5
INNER_FOLDS = 4
FEWEST = 3  # candidates in the last round
MOST = 3000  # samples, 1,000 of them held out in each round; more take long and decide little
MOST_PER_CLASS = 20
EARLY = Recipe("", early=True)
LEAST = 1e-3  # probability of a class, as an estimated matrix may leave less than none


@dataclass(frozen=True, eq=False)
class Judged:
    """The predictions of a candidate for held-out samples.

    Args:
        rows: Positions of the samples (n,).
        predicted: The classes (n,).
    """

    rows: Tensor
    predicted: Tensor

    def scores(self, table: Tensor) -> Tensor:
        """Return the score of each sample by a table of all classes (N, K); class -1 has 0."""
        found = table[self.rows, self.predicted.clamp(min=0)]
        return torch.where(self.predicted < 0, 0.0, found)

    def joined(self, other: "Judged") -> "Judged":
        """Return both."""
        return Judged(
            torch.cat([self.rows, other.rows]), torch.cat([self.predicted, other.predicted])
        )


@dataclass(frozen=True)
class Trial:
    """What was measured about a candidate; the fields are those of `Candidate`."""

    accuracy: float
    score: float
    judged: int
    level: bool


def measure(found: Mapping[str, Judged], table: Tensor, given: Tensor) -> dict[str, Trial]:
    """Summarise predictions.

    Args:
        found: From `compete`.
        table: The score of each class for each sample (N, K).
        given: The labels (N,).
    """
    most = max(len(judged.rows) for judged in found.values())
    scores = {name: judged.scores(table) for name, judged in found.items()}
    last = {name: one for name, one in scores.items() if len(one) == most}
    best = max(last.values(), key=lambda one: float(one.mean()))

    def level(name: str) -> bool:
        if name not in last:
            return False
        behind = best - last[name]
        return float(behind.mean()) <= float(behind.std()) / math.sqrt(most)

    return {
        name: Trial(
            float((judged.predicted == given[judged.rows]).double().mean()),
            float(scores[name].mean()),
            len(judged.rows),
            level(name),
        )
        for name, judged in found.items()
    }


@dataclass(eq=False)
class Trials:
    """Predicts held-out folds by recipes.

    Args:
        dataset: Its training split is used, given labels only.
        schedule: How long to train.
        seed: Of folds, weights and batch order.
        device: Where to train.
        hidden: Of the network, as for `fresh_network`.
        kept: Predictions of an interrupted call.
    """

    dataset: Dataset
    schedule: Schedule
    seed: int = 0
    device: str = "cpu"
    hidden: tuple[int, ...] | None = None
    kept: Kept | None = None
    _folds: list[Fold] = field(init=False, repr=False)
    _found: dict[int, Suspicion] = field(init=False, repr=False, default_factory=dict)
    chosen: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.dataset.train.given
        most = max(MOST, MOST_PER_CLASS * self.dataset.num_classes)
        parts = assign_folds(given, math.ceil(len(given) / most), self.seed)
        self.chosen = (parts == 0).nonzero()[:, 0]
        used = samples(self.dataset, subset(self.dataset.train, self.chosen))
        self._folds = list(split_folds(used, assign_folds(used.given, FOLDS, self.seed)))

    def predict(
        self, recipe: Recipe, number: int, on_epoch: Callable[[int], object] | None = None
    ) -> Judged:
        """Predict a fold by a recipe; one that diverges predicts class -1.

        Args:
            recipe: The way to train.
            number: The fold, counted from 0.
            on_epoch: Called after every epoch.
        """
        fold = self._folds[number]
        found = None if recipe.suspects is None else self.suspicion(number)

        def fit() -> Prediction:
            return fit_recipe(
                recipe,
                self.dataset,
                fold,
                found,
                self.schedule,
                seed=FOLDS * self.seed + number,
                device=self.device,
                hidden=self.hidden,
                on_epoch=on_epoch,
            )

        rows = self.chosen[fold.rows]
        reading = read(recipe.loss)
        try:
            found_logits = self._kept(
                fit,
                fold,
                recipe=asdict(replace(recipe, name="", loss=reading.text)),
                code=[code.hash for code in reading.code],
            ).logits
        except Diverged:
            return Judged(rows, torch.full_like(rows, -1))
        return Judged(rows, found_logits.argmax(1))

    def suspicion(self, number: int) -> Suspicion:
        """Find the suspects outside a fold, by networks that see nothing of it.

        Args:
            number: The fold, counted from 0.
        """
        if number not in self._found:
            seen = self._folds[number].seen
            probs = torch.zeros(len(seen), self.dataset.num_classes, dtype=torch.float64)
            for inner in split_folds(seen, assign_folds(seen.given, INNER_FOLDS, self.seed)):
                found = self._inner(number, inner)
                probs[inner.rows] = found.logits.double().softmax(1)
            self._found[number] = suspicion(probs, seen.given)
        return self._found[number]

    def _inner(self, number: int, inner: Fold) -> Prediction:
        seed = (FOLDS * self.seed + number) * INNER_FOLDS + inner.number

        def fit() -> Prediction:
            return fit_fold(
                inner,
                fresh_network(self.dataset, seed, self.hidden),
                read(LOSS).loss,
                self.schedule.settings(EARLY),
                seed=seed,
                device=self.device,
            )

        return self._kept(fit, self._folds[number], inner=inner.number)

    def _kept(self, fit: Callable[[], Prediction], fold: Fold, **what: object) -> Prediction:
        if self.kept is None:
            return fit()
        return self.kept.prediction(
            fit,
            rows=self.chosen[fold.rows].tolist(),
            schedule=asdict(self.schedule),
            hidden=self.hidden,
            seed=self.seed,
            device=self.device,
            **what,
        )


def compete(
    recipes: Sequence[Recipe],
    trials: Trials,
    table: Tensor,
    *,
    budget: float | None = None,
    on_progress: Callable[[str, float], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Judged]:
    """Judge all recipes on one fold, the better half on a second one, its better half on a third.

    The cheapest are first. With a budget, a recipe is not begun if it would end after it; those of
    an unfinished round keep the predictions of the rounds before.

    Args:
        recipes: The candidates.
        trials: Predicts the folds.
        table: The score of each class for each sample (N, K), see `true_class`.
        budget: Seconds that may be spent; None for no limit.
        on_progress: Called after every epoch with what is done and the finished share of all work.
        clock: Tells the seconds.

    Returns:
        The predictions by name, of those that were trained; a candidate of more rounds has more.
    """
    cost = trials.schedule.cost
    left = sorted(recipes, key=cost)
    rounds = [left]
    total = planned_cost(left, trials.schedule)
    start, spent = clock(), 0.0
    found: dict[str, Judged] = {}
    for number in range(FOLDS):
        done: dict[str, Judged] = {}
        for recipe in rounds[-1]:
            used = clock() - start
            expected = used / spent * cost(recipe) if spent else 0.0
            if budget is not None and used + expected > budget and found | done:
                break

            def end_epoch(epoch: int, name: str = recipe.name, before: float = spent) -> None:
                if on_progress is not None:
                    on_progress(f"trying {name}", min(1.0, (before + epoch) / total))

            done[recipe.name] = trials.predict(recipe, number, end_epoch)
            spent += cost(recipe)
        if number > 0 and len(done) < len(rounds[-1]):
            break
        for name, judged in done.items():
            found[name] = found[name].joined(judged) if name in found else judged
        trained = [recipe for recipe in rounds[-1] if recipe.name in done]
        rounds.append(_better_half(trained, found, table))
    return found


def planned_cost(recipes: Sequence[Recipe], schedule: Schedule) -> float:
    """Return about how many epochs all rounds take, if the dearest recipes stay.

    Args:
        recipes: The candidates.
        schedule: How to train.
    """
    left, total = sorted(map(schedule.cost, recipes), reverse=True), 0.0
    for _ in range(FOLDS):
        total += sum(left)
        left = left[: _size_after(len(left))]
    return total


def _size_after(size: int) -> int:
    return min(size, max(FEWEST, math.ceil(size / 2)))


def _better_half(
    recipes: Sequence[Recipe], found: dict[str, Judged], table: Tensor
) -> list[Recipe]:
    """Keep the better half, cheapest first; the order of recipes decides between equals."""

    def score(recipe: Recipe) -> float:
        return float(found[recipe.name].scores(table).mean())

    best = sorted(recipes, key=score, reverse=True)[: _size_after(len(recipes))]
    return [recipe for recipe in recipes if recipe in best]


def true_class(probs: Tensor, given: Tensor, noise: NoiseEstimate) -> Tensor:
    """Return the probability of each class to be the true one, for each sample (N, K).

    By Bayes' rule with both witnesses, the networks of the cross-validation and the given label:
    proportional to P(class | x) T[class, given]. The former are probabilities of labels, P(label |
    x) = sum over classes of P(class | x) T[class, label], and solved for those of the classes; what
    an estimated matrix leaves below `LEAST` is raised to it.

    Args:
        probs: (N, K) probabilities of labels, out of fold.
        given: (N,) the labels.
        noise: The estimated noise.
    """
    clean = (probs @ torch.linalg.pinv(noise.T)).clamp(min=LEAST)
    joint: Tensor = clean * noise.T[:, given].T
    return joint / joint.sum(1, keepdim=True)

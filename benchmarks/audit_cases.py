"""One simulated case of benchmarks/audit.py: an audit of it, and what each candidate is worth.

All that decides is the library's: the estimate, the suspects, the judge, the rounds and the
recommendation. Only the networks are trained side by side, see audit_stack.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from audit_simulated import Case, make
from audit_stack import Job, train_all
from cleanlab.filter import find_label_issues
from torch import Tensor

from lossforge.audit.audit import recipes_of
from lossforge.audit.candidates import certify_candidates, procedure, recommend, with_trials
from lossforge.audit.cross_validation import LOSS, fresh_network, settings_for, trial_epochs
from lossforge.audit.noise import Estimated, estimate
from lossforge.audit.recipes import (
    PROCEDURES,
    Recipe,
    Schedule,
    Suspicion,
    mean_square,
    suspicion,
)
from lossforge.audit.trials import (
    EARLY,
    FOLDS,
    INNER_FOLDS,
    Judged,
    Trials,
    compete,
    measure,
    true_class,
)
from lossforge.benchmark.run import samples
from lossforge.catalog import read
from lossforge.data import Dataset
from lossforge.training import generator
from lossforge.training.folds import assign_folds

LOSSES = ("BQF", "BEF", "ANL-CE", "NCE+AGCE", "GCE", "CE")
HIDDEN, AUDIT_FOLDS, REPEATS, EPOCHS = (64,), 5, 3, 30
TRUTH_SEEDS = (900, 901, 902)
RATE_RESAMPLES = 50


def job(
    recipe: Recipe,
    dataset: Dataset,
    rows: Tensor,
    held: Tensor,
    found: Suspicion,
    schedule: Schedule,
    seed: int,
) -> Job:
    """Do what `fit_recipe` does, as a job of a stack.

    Args:
        recipe: The way to train.
        dataset: With noisy labels.
        rows: The samples to train on.
        held: The samples to predict, as rows of the inputs of the stack.
        found: The suspects among those to train on.
        schedule: How long to train.
        seed: Of weights and batch order.
    """
    labels = dataset.train.given[rows]
    weights = torch.ones(len(rows))
    if recipe.suspects == "drop":
        rows, labels = rows[~found.flagged], labels[~found.flagged]
        weights = weights[~found.flagged]
    elif recipe.suspects == "relabel":
        labels = torch.where(found.flagged, found.suggested, labels)
    elif recipe.suspects == "weigh":
        weights = torch.where(found.flagged, found.confidence, 1.0).float()
    model = fresh_network(dataset, seed, () if recipe.linear else HIDDEN)
    settings = schedule.settings(recipe)
    return Job(model, read(recipe.loss).loss, settings, seed, rows, labels, weights, held)


def split(given: Tensor, folds: int, seed: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield each fold with its training and its held-out rows."""
    assigned = assign_folds(given, folds, seed)
    for number in range(folds):
        yield number, (assigned != number).nonzero()[:, 0], (assigned == number).nonzero()[:, 0]


def probabilities(dataset: Dataset, repeats: int, seed: int) -> tuple[list[Tensor], list[int]]:
    """Do what `cross_validate` does in each repeat; return also the epochs."""
    given, jobs = dataset.train.given, []
    for repeat in range(repeats):
        at = seed * repeats + repeat
        for number, rows, held in split(given, AUDIT_FOLDS, at):
            of = AUDIT_FOLDS * at + number
            model, settings = fresh_network(dataset, of, HIDDEN), settings_for(len(rows), EPOCHS)
            ones = torch.ones(len(rows))
            jobs.append(Job(model, read(LOSS).loss, settings, of, rows, given[rows], ones, held))
            jobs[-1].held_labels = given[held]
    train_all(jobs, dataset.train.inputs)
    found = torch.zeros(repeats, len(given), dataset.num_classes, dtype=torch.float64)
    for place, one in enumerate(jobs):
        found[place // AUDIT_FOLDS, one.held] = one.logits.double().softmax(1)
    return list(found), [one.epoch for one in jobs]


class StackedTrials(Trials):
    """Trials whose networks are trained side by side, all in advance."""

    def run(self, recipes: Sequence[Recipe]) -> dict[str, Judged]:
        """Predict all folds by all recipes."""
        given, inputs = self.dataset.train.given, self.dataset.train.inputs
        parts = list(split(given, FOLDS, self.seed))
        inner = {}
        for number, rows, _ in parts:
            for part, seen, held in split(given[rows], INNER_FOLDS, self.seed):
                of = (FOLDS * self.seed + number) * INNER_FOLDS + part
                settings = self.schedule.settings(EARLY)
                model = fresh_network(self.dataset, of, HIDDEN)
                labels, ones = given[rows[seen]], torch.ones(len(seen))
                one = Job(
                    model, read(LOSS).loss, settings, of, rows[seen], labels, ones, rows[held]
                )
                inner[number, part] = one
        train_all(list(inner.values()), inputs)
        self._jobs = {}
        for number, rows, held in parts:
            probs = torch.zeros(len(given), self.dataset.num_classes, dtype=torch.float64)
            for part in range(INNER_FOLDS):
                one = inner[number, part]
                probs[one.held] = one.logits.double().softmax(1)
            found = suspicion(probs[rows], given[rows])
            for recipe in recipes:
                of = FOLDS * self.seed + number
                self._jobs[recipe.name, number] = job(
                    recipe, self.dataset, rows, held, found, self.schedule, of
                )
        train_all(list(self._jobs.values()), inputs)
        whole = {}
        for recipe in recipes:
            found_ = self.predict(recipe, 0)
            for number in range(1, FOLDS):
                found_ = found_.joined(self.predict(recipe, number))
            whole[recipe.name] = found_
        return whole

    def predict(self, recipe: Recipe, number: int, on_epoch: object = None) -> Judged:
        """Return a fold's predictions."""
        one = self._jobs[recipe.name, number]
        return Judged(one.held, one.logits.argmax(1))


def truth(
    recipes: Sequence[Recipe], dataset: Dataset, test: Any, found: Suspicion, schedule: Schedule
) -> dict[str, list[float]]:
    """Train by each recipe on all samples, and return the accuracies on clean labels."""
    n = len(dataset.train)
    inputs = torch.cat([dataset.train.inputs, test.inputs])
    held = n + torch.arange(len(test))
    jobs = {
        (recipe.name, seed): job(recipe, dataset, torch.arange(n), held, found, schedule, seed)
        for recipe in recipes
        for seed in TRUTH_SEEDS
    }
    train_all(list(jobs.values()), inputs)
    accuracies: dict[str, list[float]] = {}
    for (name, _), one in jobs.items():
        right = (one.logits.argmax(1) == test.true).double().mean()
        accuracies.setdefault(name, []).append(round(float(right), 4))
    return accuracies


def cleanlab_issues(probs: Tensor, given: Tensor) -> Tensor:
    """Call cleanlab itself, as its users do."""
    return torch.as_tensor(find_label_issues(given.numpy(), probs.numpy()))


def found_wrong(flagged: Tensor, wrong: Tensor) -> list[int]:
    """Count suspects, wrong suspects, and wrong labels."""
    return [int(flagged.sum()), int((flagged & wrong).sum()), int(wrong.sum())]


def rate_of(noise: Estimated, wrong: Tensor) -> dict[str, float]:
    """The estimate beside the truth."""
    return {
        "truth": float(wrong.double().mean()),
        "rate": noise.rate.value,
        "low": noise.rate.low,
        "high": noise.rate.high,
        "sure": noise.sure_rate,
        "most": noise.most_rate,
    }


def rate_case(case: Case) -> dict[str, Any]:
    """Estimate the rate alone, from one cross-validation."""
    clean, given = make(case)
    dataset = clean.with_noise(given).without_truth()
    probs, _ = probabilities(dataset, 1, case.seed)
    chance = generator(case.seed, "resamples")
    noise = estimate(probs, given, generator=chance, resamples=RATE_RESAMPLES)
    return rate_of(noise, given != clean.train.true)


def full_case(case: Case, keep: dict[str, Any] | None = None) -> dict[str, Any]:
    """Audit a case, and find out how well each candidate does."""
    clean, given = make(case)
    dataset, wrong = clean.with_noise(given).without_truth(), given != clean.train.true
    runs, epochs = probabilities(dataset, REPEATS, case.seed)
    probs = torch.stack(runs).mean(0)
    noise = estimate(runs, given, generator=generator(case.seed, "resamples"))
    best = sorted(epochs)[len(epochs) // 2]
    square = mean_square(samples(dataset, dataset.train))
    schedule = Schedule(trial_epochs(epochs, EPOCHS), best, len(given), square)
    # the share of resampled proofs takes long, and no recommendation depends on it
    candidates = certify_candidates(LOSSES, replace(noise, resampled=()))
    candidates += [procedure(one, ()) for one in PROCEDURES]
    recipes = recipes_of(candidates)
    trials = StackedTrials(dataset, schedule, case.seed, hidden=HIDDEN)
    whole = trials.run(recipes)
    table = true_class(probs, given, noise.estimate)
    judged = compete(recipes, trials, table)
    advice = recommend(with_trials(candidates, measure(judged, table, given)), noise)
    found = suspicion(probs, given)
    accuracies = truth(recipes, dataset, clean.tests["test"], found, schedule)
    if keep is not None:
        keep |= {"probs": runs, "given": given, "true": clean.train.true, "whole": whole}
        keep |= {"noise": noise, "candidates": candidates, "acc": accuracies, "judged": judged}
    return {
        **rate_of(noise, wrong),
        "predicted": float((probs.argmax(1) == given).double().mean()),
        "recommended": advice.name,
        "proved": [one.name for one in candidates if one.status == "PROVED"],
        "scores": {name: round(float(one.scores(table).mean()), 4) for name, one in whole.items()},
        "noisy": {
            name: round(float((one.predicted == given[one.rows]).double().mean()), 4)
            for name, one in whole.items()
        },
        "accuracy": accuracies,
        "suspects": found_wrong(found.flagged, wrong),
        "cleanlab": found_wrong(cleanlab_issues(probs, given), wrong),
        "bayes": found_wrong(table.gather(1, given[:, None])[:, 0] < 0.5, wrong),
    }

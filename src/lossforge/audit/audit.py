"""`audit`: estimate the noise in labels of unknown quality, and recommend how to train on them."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ..benchmark.run import samples
from ..data.source import PathLike
from ..errors import check_integer, check_number, extra
from ..training import Pace, generator
from .candidates import (
    CANDIDATES,
    Candidate,
    certify_candidates,
    check_candidates,
    procedure,
    recommend,
    with_trials,
)
from .commands import commands
from .cross_validation import LOSS, PATIENCE, OutOfFold, cross_validate, network_of, trial_epochs
from .findings import Audit, Method, Suspect
from .folder import check_folder, write_audit
from .kept import Kept, unfinished
from .noise import RESAMPLES, estimate
from .progress import Progress
from .recipes import PROCEDURES, Recipe, Schedule, mean_square
from .subject import Subject, check_labels
from .trials import FOLDS as TRIAL_FOLDS
from .trials import MOST, Trials, compete, measure, planned_cost, true_class

FOLDS, REPEATS, EPOCHS = 5, 3, 60
MANY_CLASSES = 200  # matrices of more classes take much memory and time
Report = Callable[[Progress], object]


def audit(
    subject: Subject,
    *,
    losses: Sequence[str] = CANDIDATES,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    epochs: int = EPOCHS,
    trials: bool = True,
    procedures: bool = True,
    budget: float | None = None,
    hidden: Sequence[int] | None = None,
    seed: int = 0,
    device: str = "cpu",
    folder: PathLike | None = None,
    command: str = "lossforge.audit.audit(...)",
    source: Sequence[str] = (),
    on_progress: Report | None = None,
) -> Audit:
    """Estimate the noise in labels, and how to train on them, without any true label.

    ::

        found = audit(read_subject("digits", noise="symmetric:0.4"))  # half a minute
        found.noise.rate, found.recommended.code

    Args:
        subject: From `read_subject`. If it has probabilities, no network is trained, and the
            options that are about training have no effect.
        losses: Candidates, in order of preference.
        folds: Folds of the cross-validation, 2 or more.
        repeats: Cross-validations with other folds and weights, whose probabilities are averaged.
        epochs: Maximum number of epochs.
        trials: Whether to train with the candidates and compare how well they predict held-out
            samples; otherwise the first proved loss is recommended.
        procedures: Whether `PROCEDURES` are candidates as well as losses.
        budget: Seconds for the trials. What does not fit is not tried, the cheapest candidates
            come first; the result then depends on the speed of the computer. None for all.
        hidden: Widths of the hidden layers of the MLP, instead of its usual ones.
        seed: Of folds, weights, batch order and resamples.
        device: Where to train.
        folder: Where to write page, suspects, matrix and findings: before the trials, as if there
            were none, and again after them. Finished folds and trials are kept in its folder
            `unfinished` until the audit is complete, so that the same call continues where an
            interrupted one stopped. None writes nothing.
        command: The command that repeats the audit, shown on the page.
        source: What names the data in a command: a path or name, then options such as --label.
        on_progress: Called as the audit proceeds.
    """
    start = time.perf_counter()
    check_integer("folds", folds, 2)
    check_integer("repeats", repeats, 1)
    check_integer("epochs", epochs, 1)
    if budget is not None:
        check_number("budget", budget, "positive", lambda value: value > 0)
    check_candidates(losses)
    check_labels(subject, folds if subject.probs is None else 1)
    extra("cleanlab", "noise")  # before anything is trained
    out = None if folder is None else Path(folder)
    if out is not None:
        check_folder(out)
    report = on_progress or (lambda progress: None)

    def write(found: Audit) -> Audit:
        method = replace(found.method, seconds=time.perf_counter() - start)
        found = replace(found, method=method)
        if out is not None:
            write_audit(
                found,
                out,
                command,
                on_picture=lambda n, total: report(Progress("reading suspects", n, total)),
            )
        return found

    network = None if hidden is None else tuple(hidden)
    with unfinished(out) as place:
        kept = Kept(place, subject.dataset)
        train = _Training(epochs, seed, device, network, kept, report)
        begin = time.perf_counter()
        if subject.probs is not None:
            runs = [OutOfFold(subject.probs, ())]
        else:
            runs = train.cross_validations(subject, folds, repeats)
        spent = time.perf_counter() - begin
        report(Progress("estimating the noise", 0, 1))
        found, probs = _findings(subject, runs, losses, folds, seed)
        if subject.probs is not None:
            return write(found)
        schedule = train.schedule(subject, runs)
        if procedures:
            found = _with_procedures(found, schedule, source, out)
        found = write(found)
        if trials:
            train.announce(found, schedule, spent, budget)
            found = write(train.trials(found, probs, schedule, budget))
    return found


@dataclass(frozen=True)
class _Training:
    """How all networks of an audit are trained."""

    epochs: int
    seed: int
    device: str
    hidden: tuple[int, ...] | None
    kept: Kept
    report: Report

    def cross_validations(self, subject: Subject, folds: int, repeats: int) -> list[OutOfFold]:
        """Predict every sample out of fold, in each repeat."""
        pace = Pace("cross-validation", "its first fold")

        def report_fold(step: str, repeat: int, fold: int, epoch: int) -> None:
            text = f"{step}, fold {fold + 1} of {folds}"
            note = pace(repeat * folds + fold, repeats * folds)
            self.report(Progress(text, fold * self.epochs + epoch, folds * self.epochs, note))

        runs = []
        for repeat in range(repeats):
            step = f"cross-validation {repeat + 1} of {repeats}"
            run = cross_validate(
                subject.dataset,
                folds=folds,
                epochs=self.epochs,
                seed=self.seed * repeats + repeat,
                device=self.device,
                hidden=self.hidden,
                kept=self.kept,
                on_epoch=partial(report_fold, step if repeats > 1 else "cross-validation", repeat),
            )
            runs.append(run)
        return runs

    def schedule(self, subject: Subject, runs: Sequence[OutOfFold]) -> Schedule:
        """Choose how long to train, from the epochs at which cross entropy was best."""
        best = sorted(epoch for run in runs for epoch in run.epochs)
        rows = len(runs[0].probs)
        square = mean_square(samples(subject.dataset, subject.dataset.train))
        return Schedule(trial_epochs(best, self.epochs), best[len(best) // 2], rows, square)

    def announce(
        self, found: Audit, schedule: Schedule, spent: float, budget: float | None
    ) -> None:
        """Say how long the trials take, if it is more than a minute.

        Args:
            found: The findings so far.
            schedule: How to train.
            spent: Seconds of the cross-validations.
            budget: Seconds for the trials.
        """
        folds, recipes = found.method.folds, recipes_of(found.candidates)
        trained = sum(min(self.epochs, epoch + PATIENCE) for epoch in found.method.epochs)
        each = spent / trained * folds / (folds - 1)  # seconds of an epoch of all samples
        share = min(1.0, MOST / schedule.rows) * (TRIAL_FOLDS - 1) / TRIAL_FOLDS
        seconds = min(each * share * planned_cost(recipes, schedule), budget or math.inf)
        if seconds > 60:
            text = f"trying {len(recipes)} candidates, about {seconds / 60:.0f} minutes"
            self.report(Progress(text, 0, 1))

    def trials(
        self, found: Audit, probs: Tensor, schedule: Schedule, budget: float | None
    ) -> Audit:
        """Train with the candidates, and recommend one of them."""
        dataset, given = found.subject.dataset, found.subject.given
        trials = Trials(dataset, schedule, self.seed, self.device, self.hidden, self.kept)
        table = true_class(probs, given, found.noise.estimate)

        def report_trial(text: str, share: float) -> None:
            self.report(Progress(text, round(1000 * share), 1000))

        judged = compete(
            recipes_of(found.candidates), trials, table, budget=budget, on_progress=report_trial
        )
        candidates = with_trials(found.candidates, measure(judged, table, given))
        recommended = recommend(candidates, found.noise)
        return replace(found, candidates=tuple(candidates), recommended=recommended)


def recipes_of(candidates: Sequence[Candidate]) -> list[Recipe]:
    """Return how to train by each candidate."""
    procedures = {one.name: one for one in PROCEDURES}
    return [
        procedures[one.name] if one.kind == "procedure" else Recipe(one.name, one.name)
        for one in candidates
    ]


def _findings(
    subject: Subject, runs: Sequence[OutOfFold], losses: Sequence[str], folds: int, seed: int
) -> tuple[Audit, Tensor]:
    """Estimate the noise, certify the losses and find the suspects; nothing is tried.

    Returns:
        The findings, and the probabilities out of fold (N, K).
    """
    dataset = subject.dataset
    found = estimate(
        [run.probs for run in runs],
        subject.given,
        generator=generator(seed, "resamples"),
        resamples=RESAMPLES if dataset.num_classes <= MANY_CLASSES else RESAMPLES // 5,
        classes=dataset.classes,
    )
    candidates = certify_candidates(losses, found)
    probs = torch.stack([run.probs for run in runs]).mean(0)
    trained = subject.probs is None
    method = Method(
        network=network_of(dataset) if trained else "",
        loss=LOSS if trained else "",
        folds=folds if trained else 0,
        repeats=len(runs),
        epochs=tuple(epoch for run in runs for epoch in run.epochs),
        accuracy=float((probs.argmax(1) == subject.given).double().mean()),
        seed=seed,
        seconds=0.0,
    )
    suspects = tuple(find_suspects(probs, subject))
    recommended = recommend(candidates, found)
    return Audit(subject, method, found, tuple(candidates), recommended, suspects), probs


def _with_procedures(
    found: Audit, schedule: Schedule, source: Sequence[str], folder: Path | None
) -> Audit:
    """Add the procedures to the candidates, each with its commands."""
    words = list(source)
    if words and found.subject.label is not None and "--label" not in words:
        words += ["--label", found.subject.label]
    added = [procedure(one, commands(one, words, folder, schedule)) for one in PROCEDURES]
    return replace(found, candidates=(*found.candidates, *added))


def find_suspects(probs: Tensor, subject: Subject) -> Iterator[Suspect]:
    """Find the samples that cleanlab flags, by decreasing margin of another class over the label.

    For each pair of classes it flags as many samples as the noise estimate implies, those with the
    largest margin. On digits with asymmetric noise this order had more wrong labels at its top than
    the order by self-confidence alone.

    Args:
        probs: (N, K) probabilities out of fold.
        subject: The audited data.
    """
    find = extra("cleanlab.filter", "noise").find_label_issues
    given, classes = subject.given, subject.dataset.classes
    rows = find(
        given.numpy(),
        probs.numpy(),
        return_indices_ranked_by="normalized_margin",
        n_jobs=1,
    )
    for row in rows.tolist():
        label, best = int(given[row]), int(probs[row].argmax())
        yield Suspect(
            row,
            subject.where(row),
            classes[label],
            classes[best],
            float(probs[row, label]),
            float(probs[row, best]),
            subject.text(row),
            subject.ids(row),
        )

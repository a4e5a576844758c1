"""`audit`: estimate the noise in labels of unknown quality, and recommend a loss for it."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ..data.source import PathLike
from ..errors import check_integer, extra
from ..training import Pace, generator
from .candidates import (
    CANDIDATES,
    admitted,
    certify_candidates,
    check_candidates,
    recommend,
    with_accuracies,
)
from .cross_validation import LOSS, OutOfFold, cross_validate, network_of, trial_epochs, try_losses
from .findings import Audit, Method, Suspect
from .folder import check_folder, write_audit
from .kept import Kept, unfinished
from .noise import RESAMPLES, estimate
from .progress import Progress
from .subject import Subject, check_labels

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
    seed: int = 0,
    device: str = "cpu",
    folder: PathLike | None = None,
    command: str = "lossforge.audit.audit(...)",
    on_progress: Report | None = None,
) -> Audit:
    """Estimate the noise in labels, and find a loss for it, without any true label.

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
        trials: Whether to train networks with the proved losses and compare their accuracy;
            otherwise the order of preference decides.
        seed: Of folds, weights, batch order and resamples.
        device: Where to train.
        folder: Where to write page, suspects, matrix and findings: before the trials, as if there
            were none, and again after them. Finished folds and trials are kept in its folder
            `unfinished` until the audit is complete, so that the same call continues where an
            interrupted one stopped. None writes nothing.
        command: The command that repeats the audit, shown on the page.
        on_progress: Called as the audit proceeds.
    """
    start = time.perf_counter()
    check_integer("folds", folds, 2)
    check_integer("repeats", repeats, 1)
    check_integer("epochs", epochs, 1)
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

    with unfinished(out) as place:
        kept = Kept(place, subject.dataset)
        if subject.probs is not None:
            runs = [OutOfFold(subject.probs, ())]
        else:
            runs = _cross_validations(subject, folds, repeats, epochs, seed, device, kept, report)
        report(Progress("estimating the noise", 0, 1))
        found = write(_findings(subject, runs, losses, folds, seed))
        if trials and subject.probs is None:
            found = write(_with_trials(found, epochs, device, kept, report))
    return found


def _cross_validations(
    subject: Subject,
    folds: int,
    repeats: int,
    epochs: int,
    seed: int,
    device: str,
    kept: Kept,
    report: Report,
) -> list[OutOfFold]:
    pace = Pace("cross-validation", "its first fold")

    def report_fold(step: str, repeat: int, fold: int, epoch: int) -> None:
        text = f"{step}, fold {fold + 1} of {folds}"
        note = pace(repeat * folds + fold, repeats * folds)
        report(Progress(text, fold * epochs + epoch, folds * epochs, note))

    runs = []
    for repeat in range(repeats):
        step = f"cross-validation {repeat + 1} of {repeats}" if repeats > 1 else "cross-validation"
        run = cross_validate(
            subject.dataset,
            folds=folds,
            epochs=epochs,
            seed=seed * repeats + repeat,
            device=device,
            kept=kept,
            on_epoch=partial(report_fold, step, repeat),
        )
        runs.append(run)
    return runs


def _findings(
    subject: Subject, runs: Sequence[OutOfFold], losses: Sequence[str], folds: int, seed: int
) -> Audit:
    """Estimate the noise, certify the losses and find the suspects; no loss is tried."""
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
    return Audit(subject, method, found, tuple(candidates), recommended, suspects)


def _with_trials(found: Audit, epochs: int, device: str, kept: Kept, report: Report) -> Audit:
    """Train networks with the admitted losses, and recommend one of them."""
    names = [one.name for one in admitted(found.candidates)]

    def report_trial(index: int, share: float) -> None:
        done = round(100 * (index + share))
        report(Progress(f"training with {names[index]}", done, 100 * len(names)))

    accuracies = try_losses(
        names,
        found.subject.dataset,
        folds=found.method.folds,
        epochs=trial_epochs(found.method.epochs, epochs),
        seed=found.method.seed,
        device=device,
        kept=kept,
        on_progress=report_trial,
    )
    candidates = with_accuracies(found.candidates, accuracies)
    recommended = recommend(candidates, found.noise)
    return replace(found, candidates=tuple(candidates), recommended=recommended)


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

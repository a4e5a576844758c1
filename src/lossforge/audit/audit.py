"""`audit`: estimate the noise in labels of unknown quality, and recommend a loss for it."""

import csv
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import check_integer, extra
from ..noise.spec import matrix_csv
from ..training import generator
from .candidates import (
    CANDIDATES,
    Candidate,
    Recommendation,
    admitted,
    certify_candidates,
    check_candidates,
    recommend,
    with_accuracies,
)
from .cross_validation import LOSS, cross_validate, network_of, trial_epochs, try_losses
from .noise import RESAMPLES, Estimated, estimate
from .read import Progress
from .subject import Subject, check_labels

FOLDS, REPEATS, EPOCHS = 5, 3, 60
MANY_CLASSES = 200  # matrices of more classes take much memory and time


@dataclass(frozen=True)
class Suspect:
    """A sample that is probably mislabelled.

    Args:
        index: Its position, counted from 0.
        where: Its location: a line of a file, the path of an image.
        given: Its given label.
        suggested: The class that the network predicts.
        confidence: The probability out of fold of the given label (self-confidence).
        suggested_confidence: That of the suggested class.
        text: A description of the sample.
    """

    index: int
    where: str
    given: str
    suggested: str
    confidence: float
    suggested_confidence: float
    text: str


@dataclass(frozen=True)
class Method:
    """How the probabilities were computed.

    Args:
        network: The name of the network.
        loss: The loss it was trained with.
        folds: Folds of the cross-validation.
        repeats: Cross-validations with other folds and weights.
        epochs: The epoch at which each fold was stopped.
        accuracy: The share of given labels that are the most probable class out of fold.
        seed: Of the audit.
        seconds: Duration of the audit.
    """

    network: str
    loss: str
    folds: int
    repeats: int
    epochs: tuple[int, ...]
    accuracy: float
    seed: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings about a set of labels.

    Args:
        subject: The audited data.
        method: How the probabilities were computed.
        noise: The estimated noise.
        candidates: Losses, in order of preference.
        recommended: The loss to use.
        suspects: Samples that are probably mislabelled, most suspicious first.
    """

    subject: Subject
    method: Method
    noise: Estimated
    candidates: tuple[Candidate, ...]
    recommended: Recommendation
    suspects: tuple[Suspect, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `json.dumps` and for `lossforge.report.page.audit_page`."""
        subject, noise = self.subject, self.noise
        classes = subject.dataset.classes
        counts = subject.given.bincount(minlength=len(classes)).tolist()
        return {
            "data": {
                "name": subject.name,
                "kind": subject.kind,
                "rows": len(subject.given),
                "classes": list(classes),
                "counts": counts,
                "notes": list(subject.notes),
                "injected": subject.injected,
            },
            "method": {**asdict(self.method), "epochs": list(self.method.epochs)},
            "noise": {
                "rate": noise.rate.value,
                "low": noise.rate.low,
                "high": noise.rate.high,
                "repeats": list(noise.repeats),
                "resamples": len(noise.resampled),
                "transition": noise.estimate.T.tolist(),
                "prior": noise.estimate.prior.tolist(),
                "dominated": [
                    {"true": classes[true], "given": classes[given]}
                    for true, given in noise.dominated
                ],
            },
            "confusions": [
                {
                    "true": classes[one.true],
                    "given": classes[one.given],
                    "rate": one.rate.value,
                    "low": one.rate.low,
                    "high": one.rate.high,
                    "rows": one.rows,
                }
                for one in noise.confusions
            ],
            "losses": [asdict(one) for one in self.candidates],
            "recommended": asdict(self.recommended),
            "suspects": [asdict(one) for one in self.suspects],
        }

    def suspects_csv(self) -> str:
        """Write the suspects as CSV, one per row."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = ("index", "where", "given", "suggested", "confidence", "suggested_confidence")
        writer.writerow([*names, "text"])
        for one in self.suspects:
            shares = (f"{one.confidence:.4f}", f"{one.suggested_confidence:.4f}")
            writer.writerow([one.index, one.where, one.given, one.suggested, *shares, one.text])
        return file.getvalue()

    def transition_csv(self) -> str:
        """Write the transition matrix as CSV, for `lossforge certify --noise FILE`."""
        return matrix_csv(self.noise.estimate.T, self.subject.dataset.classes)


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
    on_progress: Callable[[Progress], object] | None = None,
) -> Audit:
    """Estimate the noise in labels, and find a loss for it, without any true label.

    ::

        found = audit(read_subject("digits", noise="symmetric:0.4"))  # half a minute
        found.noise.rate, found.recommended.code

    Args:
        subject: From `read_subject`.
        losses: Candidates, in order of preference.
        folds: Folds of the cross-validation, 2 or more.
        repeats: Cross-validations with other folds and weights, whose probabilities are averaged.
        epochs: Maximum number of epochs.
        trials: Whether to train networks with the proved losses and compare their accuracy;
            otherwise the order of preference decides.
        seed: Of folds, weights, batch order and resamples.
        device: Where to train.
        on_progress: Called as the audit proceeds.
    """
    start = time.perf_counter()
    check_integer("folds", folds, 2)
    check_integer("repeats", repeats, 1)
    check_integer("epochs", epochs, 1)
    check_candidates(losses)
    check_labels(subject, folds)
    extra("cleanlab", "noise")  # before anything is trained
    report = on_progress or (lambda progress: None)
    dataset = subject.dataset

    def report_fold(step: str, fold: int, epoch: int) -> None:
        text = f"{step}, fold {fold + 1} of {folds}"
        report(Progress(text, fold * epochs + epoch, folds * epochs))

    runs = []
    for repeat in range(repeats):
        step = f"cross-validation {repeat + 1} of {repeats}" if repeats > 1 else "cross-validation"
        run = cross_validate(
            dataset,
            folds=folds,
            epochs=epochs,
            seed=seed * repeats + repeat,
            device=device,
            on_epoch=partial(report_fold, step),
        )
        runs.append(run)
    report(Progress("estimating the noise", 0, 1))
    found = estimate(
        [run.probs for run in runs],
        subject.given,
        generator=generator(seed, "resamples"),
        resamples=RESAMPLES if dataset.num_classes <= MANY_CLASSES else RESAMPLES // 5,
    )
    candidates = certify_candidates(losses, found)
    best_epochs = [epoch for run in runs for epoch in run.epochs]
    if trials:
        names = [one.name for one in admitted(candidates)]

        def report_trial(index: int, share: float) -> None:
            done = round(100 * (index + share))
            report(Progress(f"training with {names[index]}", done, 100 * len(names)))

        accuracies = try_losses(
            names,
            dataset,
            folds=folds,
            epochs=trial_epochs(best_epochs, epochs),
            seed=seed,
            device=device,
            on_progress=report_trial,
        )
        candidates = with_accuracies(candidates, accuracies)
    probs = torch.stack([run.probs for run in runs]).mean(0)
    suspects = tuple(find_suspects(probs, subject))
    method = Method(
        network=network_of(dataset),
        loss=LOSS,
        folds=folds,
        repeats=repeats,
        epochs=tuple(best_epochs),
        accuracy=float((probs.argmax(1) == subject.given).double().mean()),
        seed=seed,
        seconds=time.perf_counter() - start,
    )
    recommended = recommend(candidates, found)
    return Audit(subject, method, found, tuple(candidates), recommended, suspects)


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
        )

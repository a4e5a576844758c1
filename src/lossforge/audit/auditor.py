"""The audit: from labels of unknown quality to a loss."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from ..data.source import PathLike
from ..errors import check_integer, extra
from ..training import generator
from .estimate import RESAMPLES, estimate
from .folds import LOSS, Folded, cross_validate, network_of
from .judge import CANDIDATES, admitted, check_candidates, judge, recommend, with_accuracies
from .pictures import SIZE, read_folder
from .result import Audit, Method
from .subject import Subject, check_labels, is_name, read_named
from .suspects import find_suspects
from .table import SUFFIXES, read_table
from .trials import trial_epochs, try_losses

FOLDS, REPEATS, EPOCHS = 5, 3, 60
MANY_CLASSES = 200  # matrices of more take memory and time


class Progress(NamedTuple):
    """How far an audit is: what it does now, and how much of it is done."""

    text: str
    done: int
    total: int


def read_subject(
    data: str,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    noise: str | None = None,
    size: int = SIZE,
    seed: int = 0,
    data_dir: PathLike | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Subject:
    """Read what is to be audited.

    Args:
        data: The name of a data set, a table (.csv, .tsv, .parquet), or a folder of class folders.
            A name wins over a folder; ./name is the folder.
        label: The column of labels, for a table.
        columns: The columns to learn from, for a table.
        noise: Added to a named data set, to try the audit on labels whose truth is known.
        size: Height and width of images as the network sees them.
        seed: Of the noise.
        data_dir: Where named data lie.
        on_progress: Called while images are read.
    """
    path = Path(data)
    table = path.suffix.lower() in SUFFIXES
    for option, value in (("--label", label), ("--column", columns)):
        if value is not None and not table:
            raise ValueError(f"{option} is for tables ({', '.join(SUFFIXES)}), got {data!r}")
    if is_name(data):
        return read_named(data, noise, seed=seed, data_dir=data_dir)
    if noise is not None:
        raise ValueError(
            f"--noise is added to data sets whose labels are known, not to {data!r}; leave it out"
        )
    if table:
        return read_table(path, label=label, columns=columns)
    if path.is_dir():
        hear = on_progress
        told = None if hear is None else lambda n, of: hear(Progress("reading images", n, of))
        return read_folder(path, size=size, progress=told)
    kind = f"is a file of type {path.suffix or 'unknown'}" if path.exists() else "is not there"
    raise ValueError(
        f"{data!r} {kind}; an audit takes a table ({', '.join(SUFFIXES)}), a folder of class "
        "folders, or a name that `lossforge data list` shows"
    )


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
    """Estimate the noise in labels, and find a loss for it; no true label is looked at.

    ::

        found = audit(read_subject("digits", noise="symmetric:0.4"))  # half a minute
        found.noise.rate, found.recommended.code

    Args:
        subject: From `read_subject`.
        losses: Candidates, in order of preference.
        folds: Of the cross-validation, 2 or more.
        repeats: Cross-validations with other folds and weights, whose probabilities are averaged.
        epochs: The most that a network is trained for.
        trials: Whether networks are trained with the losses that are proved, to see how well they
            learn; without, the order of preference decides.
        seed: Of folds, weights, batch order and resamples.
        device: Where to train.
        on_progress: Called as the audit goes on.
    """
    begin = time.perf_counter()
    check_integer("folds", folds, 2)
    check_integer("repeats", repeats, 1)
    check_integer("epochs", epochs, 1)
    check_candidates(losses)
    check_labels(subject, folds)
    extra("cleanlab", "noise")  # before anything is trained
    work = _Work(subject, folds, epochs, seed, device, on_progress or (lambda progress: None))
    runs = [work.cross_validate(repeat, repeats) for repeat in range(repeats)]
    work.say(Progress("estimating the noise", 0, 1))
    found = estimate(
        [run.probs for run in runs],
        subject.given,
        generator=generator(seed, "resamples"),
        resamples=RESAMPLES if subject.dataset.num_classes <= MANY_CLASSES else RESAMPLES // 5,
    )
    candidates = judge(losses, found)
    stopped = [epoch for run in runs for epoch in run.epochs]
    if trials:
        names = [one.name for one in admitted(candidates)]
        learnt = work.try_losses(names, trial_epochs(stopped, epochs))
        candidates = with_accuracies(candidates, learnt)
    probs = torch.stack([run.probs for run in runs]).mean(0)
    suspects = tuple(find_suspects(probs, subject))
    method = Method(
        network=network_of(subject.dataset),
        loss=LOSS,
        folds=folds,
        repeats=repeats,
        epochs=tuple(stopped),
        accuracy=float((probs.argmax(1) == subject.given).double().mean()),
        seed=seed,
        seconds=time.perf_counter() - begin,
    )
    recommended = recommend(candidates, found)
    return Audit(subject, method, found, tuple(candidates), recommended, suspects)


@dataclass(frozen=True, eq=False)
class _Work:
    """The parts of an audit that train, and that say how far they are."""

    subject: Subject
    folds: int
    epochs: int
    seed: int
    device: str
    say: Callable[[Progress], object]

    def cross_validate(self, repeat: int, repeats: int) -> Folded:
        text = "cross-validation" + (f" {repeat + 1} of {repeats}" if repeats > 1 else "")
        total = self.folds * self.epochs

        def tell(fold: int, epoch: int) -> None:
            place = f"{text}, fold {fold + 1} of {self.folds}"
            self.say(Progress(place, fold * self.epochs + epoch, total))

        return cross_validate(
            self.subject.dataset,
            folds=self.folds,
            epochs=self.epochs,
            seed=self.seed * repeats + repeat,
            device=self.device,
            on_epoch=tell,
        )

    def try_losses(self, losses: Sequence[str], epochs: int) -> dict[str, float]:
        def tell(place: int, share: float) -> None:
            done = round(100 * (place + share))
            self.say(Progress(f"training with {losses[place]}", done, 100 * len(losses)))

        return try_losses(
            losses,
            self.subject.dataset,
            folds=self.folds,
            epochs=epochs,
            seed=self.seed,
            device=self.device,
            on_share=tell,
        )

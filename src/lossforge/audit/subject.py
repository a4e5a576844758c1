"""The subject of an audit: samples with their given labels, and how to refer to each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ..data import Dataset

Kind = Literal["data set", "table", "images"]

LEAST_ROWS = 50


@dataclass(frozen=True, eq=False)
class Subject:
    """Labelled samples without true labels.

    Args:
        name: Of the data.
        kind: The kind of source.
        dataset: Its training split is audited; it has neither true labels nor tests.
        where: The location of a sample: a line of a file, the path of an image.
        text: A description of a sample; empty if there is none.
        picture: A small image of a sample as a data URL, if it is one.
        notes: What was guessed, left out or missing.
        injected: The share of labels made wrong by noise that was added to try the audit.
        ids: The values of a sample in the user's own columns that identify it, by column.
        label: The column of labels, for a table.
        sha256: Of a file or folder, see `lossforge.data.own.content_hash`; None for a data set.
        path: Where the table or folder of images is that `lossforge clean` takes.
        probs: (N, K) probabilities of the classes from a model that was not trained on the sample,
            float64; None if an audit has to compute them.
    """

    name: str
    kind: Kind
    dataset: Dataset
    where: Callable[[int], str]
    text: Callable[[int], str] = lambda row: ""
    picture: Callable[[int], str | None] = lambda row: None
    notes: tuple[str, ...] = ()
    injected: float | None = None
    ids: Callable[[int], dict[str, str]] = lambda row: {}
    label: str | None = None
    sha256: str | None = None
    path: Path | None = None
    probs: Tensor | None = None

    def __post_init__(self) -> None:
        if not self.dataset.is_blind:
            raise ValueError("dataset must hold neither true labels nor tests")
        if self.probs is not None:
            expected = (len(self.given), self.dataset.num_classes)
            if tuple(self.probs.shape) != expected:
                raise ValueError(f"probs must be {expected}, got {tuple(self.probs.shape)}")

    @property
    def given(self) -> Tensor:
        """(N,) the labels."""
        return self.dataset.train.given


def has_images(dataset: Dataset) -> bool:
    """Check whether a network is shown images rather than features."""
    return dataset.transform(dataset.train.inputs, torch.tensor([0]), None).ndim == 4


def check_labels(subject: Subject, folds: int) -> None:
    """Raise unless every class has enough samples for cross-validation.

    Args:
        subject: The data to audit.
        folds: Every class must have at least this many samples, one for each fold.
    """
    dataset, given = subject.dataset, subject.given
    what = "images" if subject.kind == "images" else "rows"
    if len(given) < LEAST_ROWS:
        raise ValueError(
            f"{subject.name}: an audit needs {LEAST_ROWS} labelled {what} or more, "
            f"got {len(given)}; the noise in fewer cannot be estimated"
        )
    counts = given.bincount(minlength=dataset.num_classes).tolist()
    few = {dataset.classes[k]: n for k, n in enumerate(counts) if n < folds}
    if few:
        shown = ", ".join(f"{name!r} has {n}" for name, n in list(few.items())[:3])
        more = f" and {len(few) - 3} more" if len(few) > 3 else ""
        least = min(few.values())
        advice = f", or use {least} folds" if least > 1 else ""
        raise ValueError(
            f"{subject.name}: with {folds} folds every class needs {folds} {what} or more, but "
            f"{shown}{more}; merge or remove such classes{advice}"
        )

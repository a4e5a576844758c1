"""What is audited: samples with the labels they were given, and a way to name each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from ..benchmark import noises
from ..data import Dataset, load, names
from ..data.source import PathLike
from ..noise import noise_rate

Kind = Literal["data set", "table", "images"]

LEAST_ROWS = 50


@dataclass(frozen=True, eq=False)
class Subject:
    """Labelled samples without any knowledge of the truth.

    Args:
        name: What to call them.
        kind: Where they come from.
        dataset: Its training split is audited; it has neither true labels nor tests.
        where: Names a sample for a person: a line of a file, a picture.
        text: What a person recognises a sample by; empty where there is nothing to say.
        picture: A small image of a sample as a data address, where there is one.
        notes: What was guessed or left out.
        injected: The share of labels that noise made wrong, where it was added to try the audit.
    """

    name: str
    kind: Kind
    dataset: Dataset
    where: Callable[[int], str]
    text: Callable[[int], str] = lambda row: ""
    picture: Callable[[int], str | None] = lambda row: None
    notes: tuple[str, ...] = ()
    injected: float | None = None

    def __post_init__(self) -> None:
        if not self.dataset.is_blind:
            raise ValueError("dataset must hold neither true labels nor tests")

    @property
    def given(self) -> Tensor:
        """(N,) the labels."""
        return self.dataset.train.given


def read_named(
    name: str, noise: str | None = None, *, seed: int = 0, data_dir: PathLike | None = None
) -> Subject:
    """The training part of a data set, with its own labels or with noise added to them.

    Args:
        name: One of `lossforge.data.names()`, in any case.
        noise: As `lossforge train` takes it, such as "symmetric:0.4"; None leaves the labels.
        seed: Of the noise.
        data_dir: Where the data lie.
    """
    name = name.lower()
    if noise is not None:
        noises.check(noise, name)
    dataset = load(name, data_dir=data_dir)
    notes, injected = [], None
    if noise is not None and noise != "given":
        given = noises.given_labels(dataset, noise, seed, data_dir=data_dir)
        dataset = dataset.with_noise(given)
        notes.append(f"noise added: {noise}, seed {seed}")
        if dataset.train.true is not None:
            injected = noise_rate(dataset.train.true, given)
    return Subject(
        name,
        "data set",
        dataset.without_truth(),
        where=lambda row: f"{name}, sample {row}",
        notes=tuple(notes),
        injected=injected,
    )


def check_labels(subject: Subject, folds: int) -> None:
    """Raise unless there are enough samples of every class for cross-validation.

    Args:
        subject: What is to be audited.
        folds: Every class must have as many samples, so that each fold holds one.
    """
    dataset, given = subject.dataset, subject.given
    what = "images" if subject.kind == "images" else "rows"
    if len(given) < LEAST_ROWS:
        raise ValueError(
            f"{subject.name}: an audit needs {LEAST_ROWS} labelled {what} or more, "
            f"got {len(given)}; collect more before you ask how wrong they are"
        )
    counts = given.bincount(minlength=dataset.num_classes).tolist()
    few = {dataset.classes[k]: n for k, n in enumerate(counts) if n < folds}
    if few:
        shown = ", ".join(f"{name!r} has {n}" for name, n in list(few.items())[:3])
        more = f" and {len(few) - 3} more" if len(few) > 3 else ""
        least = min(few.values())
        advice = f", or take --folds {least}" if least > 1 else ""
        raise ValueError(
            f"{subject.name}: with {folds} folds every class needs {folds} {what} or more, but "
            f"{shown}{more}; merge or leave out such classes{advice}"
        )


def is_name(data: str) -> bool:
    """Whether a text names a data set rather than a path."""
    return data.lower() in names() and Path(data).name == data

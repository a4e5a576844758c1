"""What the verbs of the theory read: a loss, a noise, a matrix in a file; and how they wait."""

import csv
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
import typer
from rich.console import Console
from torch import Tensor

from ..errors import SpecError, check_integer, extra
from ..noise import asymmetric, pair, symmetric
from ..theory import read_noise as check_rows

MAPS = ("cifar10", "cifar100", "mnist")
FILES = (".csv", ".npy")
FORMS = (
    "symmetric:RATE, pair:RATE, asymmetric:MAP:RATE (MAP is cifar10, cifar100 or mnist), "
    "weights:W,W,..., or a .csv or .npy file with the transition matrix"
)

LossText = Annotated[str, typer.Argument(help="A loss or an expression, see `lossforge losses`.")]
Classes = Annotated[
    int | None,
    typer.Option(help="Number of classes, where the noise does not say it.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Noise(NamedTuple):
    """A noise that was read: a transition matrix, or the weights of one instance."""

    text: str
    weights: Tensor
    num_classes: int

    @property
    def options(self) -> str:
        """The options of a command that mean this noise."""
        counted = self.text.startswith(("symmetric:", "pair:"))
        more = f" --classes {self.num_classes}" if counted else ""
        return f"--noise {shlex.quote(self.text)}{more}"


def read_noise(text: str, num_classes: int | None = None) -> Noise:
    """Read a noise, and check that every class keeps the largest share of its labels.

    Args:
        text: One of `FORMS`.
        num_classes: What the user says; needed for symmetric noise and pair flips.
    """
    if num_classes is not None:
        check_integer("--classes", num_classes, 2)
    kind, _, detail = text.partition(":")
    if kind in ("symmetric", "pair"):
        weights = _flips(kind, text, detail, num_classes)
    elif kind == "asymmetric":
        weights = _mapped(text, detail)
    elif kind == "weights":
        numbers = [_number(word, text) for word in detail.split(",")]
        weights = torch.tensor(numbers, dtype=torch.float64)
    elif Path(text).suffix.lower() in FILES:
        weights = read_matrix(Path(text))
    else:
        raise SpecError(f"noise must be {FORMS}; got {text!r}")
    rows = check_rows(weights, num_classes)
    return Noise(text, weights, rows.num_classes)


def read_matrix(path: Path) -> Tensor:
    """The numbers of a CSV or .npy file, in float64; nothing in a file is ever run.

    Args:
        path: A file without a header; one line of it is a row.
    """
    if path.suffix.lower() == ".npy":
        try:
            found = extra("numpy", "bench").load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} must be a .npy file of numbers: {error}") from None
        if getattr(found, "dtype", None) is None or found.dtype.kind not in "fiu":
            raise ValueError(f"{path} must hold one array of real numbers")
        return torch.as_tensor(found.astype("float64"))
    if path.suffix.lower() != ".csv":
        raise SpecError(f"a matrix must be a .csv or .npy file, got {str(path)!r}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [line for line in csv.reader(file) if any(cell.strip() for cell in line)]
    if not lines:
        raise ValueError(f"{path} is empty")
    for place, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"rows of {path} must be equally long, got {len(lines[0])} numbers in row 0 "
                f"and {len(line)} in row {place}"
            )
    rows = [
        [_number(cell, f"row {place} of {path}") for cell in line]
        for place, line in enumerate(lines)
    ]
    return torch.tensor(rows, dtype=torch.float64)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Say on stderr, in a terminal, what is being computed; gives a function that says more."""
    with Console(stderr=True).status(text) as status:
        try:
            yield status.update
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted") from None


def _flips(kind: str, text: str, detail: str, num_classes: int | None) -> Tensor:
    if num_classes is None:
        raise SpecError(f"{kind} noise needs the number of classes: --noise {text} --classes 10")
    rate = _rate(detail, text)
    limit = (num_classes - 1) / num_classes if kind == "symmetric" else 0.5
    if rate >= limit:
        rival = rate / (num_classes - 1) if kind == "symmetric" else rate
        raise ValueError(
            f"{text} with {num_classes} classes has no unique largest weight: {1 - rate:.4g} of a "
            f"class's labels are right, {rival:.4g} one wrong class; the rate must be below "
            f"{limit:.4g}"
        )
    return (symmetric if kind == "symmetric" else pair)(num_classes, rate)


def _mapped(text: str, detail: str) -> Tensor:
    name, colon, rate = detail.partition(":")
    if not colon or name not in MAPS:
        given = rate if colon else name
        choices = ", ".join(f"asymmetric:{known}:{given}" for known in MAPS)
        raise SpecError(
            f"asymmetric noise needs a map of classes: {choices}; for other classes give the "
            f"matrix as a .csv file, such as `lossforge audit` writes; got {text!r}"
        )
    value = _rate(rate, text)
    if value >= 0.5:
        raise ValueError(
            f"{text} has no unique largest weight: {1 - value:.4g} of a noisy class's labels are "
            f"right, {value:.4g} one wrong class; the rate must be below 0.5"
        )
    return asymmetric(name, value)


def _rate(word: str, text: str) -> float:
    rate = _number(word, text)
    if not 0 <= rate <= 1:
        raise ValueError(f"the rate of noise must be in [0, 1], got {text!r}")
    return rate


def _number(word: str, text: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise SpecError(f"{text} must hold numbers alone, got {word!r}") from None

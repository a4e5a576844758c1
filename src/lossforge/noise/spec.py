"""Label noise as text: one grammar for every command, preset and function.

====================== =====================================================================
text                   labels
====================== =====================================================================
clean                  the true ones
given                  as the data come, noise included
symmetric:RATE         wrong with this probability, every wrong class equally likely
pair:RATE              mistaken for the next class with this probability
asymmetric:RATE        mistaken for a similar class, by the class map of the data set
asymmetric:MAP:RATE    the same with a class map from `CLASS_MAPS`
instance:RATE          wrong where the sample is hard, at this mean rate
human:NAME             a set of labels by human annotators
weights:W,W,...        one instance's label distribution, the largest weight at its true class
FILE.csv, FILE.npy     a transition matrix; row i holds the labels that class i is given;
                       FILE.csv@HASH is the same file, checked by the hash of its numbers
====================== =====================================================================
"""

import csv
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from ..errors import SpecError, extra, unknown
from ..text import csv_text, from_csv_cell
from .transition import CLASS_MAPS, asymmetric, pair, symmetric, transition

FILES = (".csv", ".npy")


@dataclass(frozen=True)
class Kind:
    """One kind of noise; to add a kind, add its line to `KINDS`.

    Args:
        form: How it is written.
        matrix: The transition matrix for a number of classes, a rate and a class map; None for
            labels that no matrix describes.
        limit: The rate at which a class's true label stops being its most frequent label.
    """

    form: str
    matrix: Callable[[int, float, str], Tensor] | None = None
    limit: Callable[[int], float] | None = None


KINDS = {
    "clean": Kind("clean", lambda classes, rate, class_map: symmetric(classes, 0.0)),
    "given": Kind("given"),
    "symmetric": Kind(
        "symmetric:RATE",
        lambda classes, rate, class_map: symmetric(classes, rate),
        lambda classes: (classes - 1) / classes,
    ),
    "pair": Kind(
        "pair:RATE", lambda classes, rate, class_map: pair(classes, rate), lambda classes: 0.5
    ),
    "asymmetric": Kind(
        "asymmetric:[MAP:]RATE",
        lambda classes, rate, class_map: asymmetric(class_map, rate, num_classes=classes),
        lambda classes: 0.5,
    ),
    "instance": Kind("instance:RATE"),
    "human": Kind("human:NAME"),
    "weights": Kind("weights:W,W,..."),
    "matrix": Kind("FILE.csv or FILE.npy with a transition matrix"),
}
_PRINTED = re.compile(r"(.+\.(?:csv|npy))@([0-9a-f]{8})", re.IGNORECASE)
_ALIASES = {"dependent": "instance"}
FORMS = ", ".join(kind.form for kind in KINDS.values())


@dataclass(frozen=True)
class NoiseSpec:
    """A label noise, read once.

    Args:
        kind: A key of `KINDS`.
        rate: The share of wrong labels, where the kind has one.
        name: The class map of asymmetric noise, the label set of human noise, or the file of a
            matrix with the hash of its numbers.
        weights: (K, K) of a matrix, (K,) of one instance.
        classes: The names of the classes, if the file had them.

    Example:
        >>> NoiseSpec.parse("symmetric:0.40")
        NoiseSpec('symmetric:0.4')
    """

    kind: str
    rate: float | None = None
    name: str | None = None
    weights: Tensor | None = field(default=None, compare=False)
    classes: tuple[str, ...] | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: "str | NoiseSpec") -> "NoiseSpec":
        """Read a noise from text; for a matrix, read its file."""
        if isinstance(text, NoiseSpec):
            return text
        if not isinstance(text, str):
            raise TypeError(f"noise must be text such as 'symmetric:0.4', got {text!r}")
        if Path(text).suffix.lower() in FILES:
            return cls._from_file(Path(text))
        if printed := _PRINTED.fullmatch(text):
            found = cls._from_file(Path(printed[1]))
            if str(found).rpartition("@")[2] != printed[2]:
                raise SpecError(f"{printed[1]} was changed: it is not the matrix {text}")
            return found
        word, colon, detail = text.strip().partition(":")
        kind = _ALIASES.get(word.lower(), word.lower())
        if kind == "matrix" or kind not in KINDS:
            words = [word for word in KINDS if word != "matrix"]
            raise unknown("noise", text, words, f"noise must be one of {FORMS}")
        if kind in ("clean", "given"):
            if colon:
                raise SpecError(f"{kind} takes no rate, got {text!r}")
            return cls(kind, 0.0 if kind == "clean" else None)
        if kind == "human":
            return cls(kind, name=detail or None)
        if kind == "weights":
            weights = _weights(text, detail)
            return cls(kind, name=",".join(map(repr, weights.tolist())), weights=weights)
        name, _, rate = detail.rpartition(":") if kind == "asymmetric" else ("", "", detail)
        if name and name not in CLASS_MAPS:
            raise unknown("class map", name, CLASS_MAPS)
        return cls(kind, _rate(text, rate, kind) if rate or colon else None, name or None)

    @classmethod
    def _from_file(cls, path: Path) -> "NoiseSpec":
        weights, classes = read_matrix(path)
        if weights.ndim == 2 and len(weights) == 1:
            weights = weights[0]
        digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:8]
        return cls("matrix", None, f"{path.name}@{digest}", weights, classes)

    def __str__(self) -> str:
        """The canonical text, which names a run."""
        if self.kind == "matrix":
            return str(self.name)
        if self.rate is None or self.kind == "clean":
            rate = None
        else:
            rate = repr(self.rate).removesuffix(".0")
        return ":".join(part for part in (self.kind, self.name, rate) if part is not None)

    def __repr__(self) -> str:
        return f"NoiseSpec({str(self)!r})"

    @property
    def is_clean(self) -> bool:
        """Whether no label is wrong."""
        return self.rate == 0

    def limit(self, num_classes: int) -> float | None:
        """Return the rate at which a class's true label stops being its most frequent label.

        Args:
            num_classes: K.

        Returns:
            None for a kind without such a rate.
        """
        limit = KINDS[self.kind].limit
        return None if limit is None else limit(num_classes)

    def transition(self, num_classes: int | None = None, class_map: str | None = None) -> Tensor:
        """Return the (K, K) transition matrix, or the (K,) weights of one instance.

        Args:
            num_classes: K; not needed where a matrix, weights or a class map say it.
            class_map: The class map of asymmetric noise that names none, see `CLASS_MAPS`.
        """
        if self.weights is not None:
            found = self.weights
        else:
            found = self._of_kind(num_classes, self.name or class_map)
        if num_classes is not None and found.shape[-1] != num_classes:
            raise SpecError(f"{self} is over {found.shape[-1]} classes, not {num_classes}")
        return transition(found) if found.ndim == 2 else found

    def _of_kind(self, num_classes: int | None, class_map: str | None) -> Tensor:
        matrix = KINDS[self.kind].matrix
        if matrix is None:
            raise SpecError(
                f"{self} is not described by a transition matrix: which labels are wrong depends "
                "on the samples"
            )
        if self.rate is None:
            raise SpecError(f"{self.kind} noise needs a rate, such as {self.kind}:0.4")
        if self.kind == "asymmetric" and class_map is None:
            maps = ", ".join(f"asymmetric:{known}:{self.rate:g}" for known in CLASS_MAPS)
            raise SpecError(
                f"{self} needs a class map: name the data set (--data digits), or write {maps}; "
                "for other classes give the matrix as a .csv file"
            )
        known = CLASS_MAPS.get(class_map or "")
        count = num_classes or (known.num_classes if known else None)
        if count is None:
            raise SpecError(f"{self} needs the number of classes: --noise {self} --classes 10")
        return matrix(count, self.rate, class_map or "")


def _rate(text: str, word: str, kind: str) -> float:
    try:
        rate = float(word)
    except ValueError:
        raise SpecError(
            f"{kind} noise must be {KINDS[kind].form}, as in {kind}:0.4; got {text!r}"
        ) from None
    if not 0 <= rate <= 1:
        raise SpecError(f"the rate of noise must be in [0, 1], got {text!r}")
    return rate


def _weights(text: str, detail: str) -> Tensor:
    try:
        numbers = [float(word) for word in detail.split(",")]
    except ValueError:
        raise SpecError(
            f"weights must be numbers, as in weights:0.6,0.3,0.1; got {text!r}"
        ) from None
    return torch.tensor(numbers, dtype=torch.float64)


def read_matrix(path: Path) -> tuple[Tensor, tuple[str, ...] | None]:
    """Read numbers in float64, and the names of the classes if the file has them.

    Nothing in the file is executed.

    Args:
        path: A .npy file of one array, or a CSV file with one line for each row. The CSV may have
            class names in a header row and in its first column.
    """
    if path.suffix.lower() == ".npy":
        return _read_npy(path), None
    if path.suffix.lower() != ".csv":
        raise SpecError(f"a matrix must be a .csv or .npy file, got {str(path)!r}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [
            [from_csv_cell(cell.strip()) for cell in line]
            for line in csv.reader(file)
            if any(map(str.strip, line))
        ]
    if not lines:
        raise ValueError(f"{path} is empty")
    lines, classes = _split_names(path, lines)
    for place, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"rows of {path} must be equally long, got {len(lines[0])} numbers in row 0 "
                f"and {len(line)} in row {place}"
            )
    rows = [[_number(cell, place, path) for cell in line] for place, line in enumerate(lines)]
    return torch.tensor(rows, dtype=torch.float64), classes


def matrix_csv(weights: Tensor, classes: Sequence[str] | None = None) -> str:
    """Write a matrix as CSV from which `read_matrix` reads the same bits.

    Args:
        weights: (K, K) numbers.
        classes: The names of the classes, written in a header row and in the first column.
    """
    rows = weights.tolist()
    if classes is not None:
        named = zip(classes, rows, strict=True)
        rows = [["", *classes], *([name, *row] for name, row in named)]
    return csv_text(rows)


def _read_npy(path: Path) -> Tensor:
    try:
        found = extra("numpy", "bench").load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be a .npy file of numbers: {error}") from None
    if getattr(found, "dtype", None) is None or found.dtype.kind not in "fiu":
        raise ValueError(f"{path} must hold one array of real numbers")
    return torch.as_tensor(found.astype("float64"))


def _split_names(
    path: Path, lines: list[list[str]]
) -> tuple[list[list[str]], tuple[str, ...] | None]:
    """Split off a header row and a first column of names, if the file has both."""
    header, *rest = lines
    # the corner above the first column is empty or a word, also where classes are called 0, 1, 2
    if _is_number(header[0]) or len(lines) != len(header):
        return lines, None
    columns, rows = tuple(header[1:]), tuple(line[0] for line in rest)
    if columns != rows:
        wrong = next(
            i for i, pair in enumerate(zip(columns, rows, strict=True)) if len({*pair}) > 1
        )
        raise ValueError(
            f"{path} must name the classes in the same order in its header and its first column, "
            f"got {columns[wrong]!r} and {rows[wrong]!r} for class {wrong}"
        )
    return [line[1:] for line in rest], columns


def _number(cell: str, place: int, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"row {place} of {path} must hold numbers alone, got {cell!r}") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

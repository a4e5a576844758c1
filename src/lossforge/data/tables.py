"""Users' own tables: a text or feature columns, and a label.

A table is read as columns of Python values that know their place in the file, for errors. Feature
columns become numbers: measurements are standardised, categories one-hot. Missing numbers become
the mean, missing categories are all zeros. A cell is missing if it is blank; in a column of
numbers, so is one that says so in a word, such as NA.
"""

import csv
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from ..errors import extra
from .dataset import Dataset, Split, stratify
from .features import featurise, moments
from .source import PathLike

MOST_CATEGORIES = 1000
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Columns:
    """Values by column name, and for each row the place to name in an error."""

    path: Path
    values: Mapping[str, Sequence[Any]]
    where: Callable[[int], str] = field(repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.values.values()), ()))

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self.values:
            there = ", ".join(repr(name) for name in self.values)
            raise ValueError(f"{self.path} has no column {name!r}; it has {there}")
        return self.values[name]

    def take(self, index: Tensor) -> "Columns":
        """Take some of the rows, which keep their places."""
        rows = index.tolist()
        values = {name: [column[row] for row in rows] for name, column in self.values.items()}
        return Columns(self.path, values, lambda row: self.where(rows[row]))

    def place(self, row: int) -> str:
        """Return the place of a row, by the name of the file without its folder."""
        return self.where(row).replace(str(self.path), self.path.name, 1)

    def texts(self, name: str, *, complete: bool = True) -> list[str]:
        """Return a column of strings.

        Args:
            name: The column.
            complete: Whether to refuse an empty text; if not, a missing one is empty.
        """
        for row, value in enumerate(self[name]):
            if not complete and is_blank(value):
                continue
            if not isinstance(value, str):
                raise TypeError(f"{self.where(row)}: {name!r} must be text, got {value!r}")
            if complete and not value.strip():
                raise ValueError(f"{self.where(row)}: {name!r} must not be empty")
        return ["" if is_blank(value) else value for value in self[name]]

    def names(self, label: str) -> list[str]:
        """Return a column of labels as strings; an integer of any type is written as one."""
        names = [label_name(value) for value in self[label]]
        for row, name in enumerate(names):
            if not name.strip():
                raise ValueError(f"{self.where(row)}: label {label!r} must not be empty")
        return names

    def labels(self, label: str, classes: Sequence[str]) -> Tensor:
        """Return a column of labels as int64 positions in `classes`."""
        index = {name: position for position, name in enumerate(classes)}
        names = self.names(label)
        for row, name in enumerate(names):
            if name not in index:
                raise ValueError(
                    f"{self.where(row)}: label {label!r} must be one of the "
                    f"{len(classes)} classes of the training part, got {name!r}"
                )
        return torch.tensor([index[name] for name in names], dtype=torch.int64)


def load(
    path: PathLike,
    *,
    label: str = "label",
    text: str | None = None,
    columns: Sequence[str] | None = None,
    test: PathLike | None = None,
    test_fraction: float = 0.2,
    true: str | None = None,
    features: str = "tfidf",
    generator: Generator | None = None,
) -> Dataset:
    """Load a CSV, TSV or Parquet file with a label column and either one text or feature columns.

    Columns of numbers are standardised and columns of strings one-hot, both fitted to the training
    part; missing values are refused. Classes are the labels (given and true) of the file in order,
    by value if all are numbers.

    Args:
        path: The table; CSV and TSV have a header and are UTF-8.
        label: The column of given labels.
        text: The column to make features from by `features`.
        columns: The feature columns, without `text`; by default all but the labels.
        test: A second table, for testing. Without it, rows of the first are set aside.
        test_fraction: How much of each class to set aside.
        true: A column with the true labels, if the training table has one.
        features: "tfidf", "tfidf:SIZE" or "embed:MODEL", for `text`.
        generator: Sets test rows aside at random; without it, they are evenly spaced.
    """
    whole = read_columns(path)
    used = _feature_names(whole, label, true, text, columns)
    tested_on = None if test is None else read_columns(test)
    if text is None:
        for name in used:
            numeric = numbers(whole[name]) is not None
            for part in (whole,) if tested_on is None else (whole, tested_on):
                _check_complete(part, name, numeric=numeric)
    truths = [] if true is None else whole.names(true)
    classes = in_order([*whole.names(label), *truths])
    if len(classes) < 2:
        raise ValueError(f"{path}: {label!r} must have at least two classes, got {classes[0]!r}")
    if tested_on is None:
        rows = stratify(whole.labels(label, classes), test_fraction, generator=generator)
        parts = [whole.take(part) for part in rows]
    else:
        parts = [whole, tested_on]
    if text is None:
        inputs = encode(used, *parts)
    else:
        texts = [part.texts(text) for part in parts]
        name = f"{path}: the training part of column {text!r}"
        inputs = featurise(*texts, features=features, name=name)
    train, tested = (
        Split(
            rows,
            part.labels(label, classes),
            part.labels(true, classes) if true is not None and true in part.values else None,
        )
        for rows, part in zip(inputs, parts, strict=True)
    )
    return Dataset(whole.path.stem, classes, train, {"test": tested})


def _feature_names(
    table: Columns, label: str, true: str | None, text: str | None, columns: Sequence[str] | None
) -> list[str]:
    """Return the feature columns, none of which may be a label column."""
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    if text is not None and columns is not None:
        raise ValueError("a table must be read by text or by columns, got both")
    answers = [name for name in (label, true) if name is not None]
    for name in answers:
        table[name]
    if text is not None:
        names = [text]
    elif columns is not None:
        names = list(columns)
    else:
        names = [name for name in table.values if name not in answers]
        if "" in names:
            raise ValueError(
                f"{table.path} has a column without a name, perhaps row numbers; "
                "name the columns to learn from"
            )
    for name in names:
        table[name]
        if name in answers:
            raise ValueError(f"a feature must not be a label column, got {name!r}")
    if not names:
        raise ValueError(f"{table.path} must have at least one feature column besides {label!r}")
    return names


def read_columns(path: PathLike) -> Columns:
    """Read a table as it is; the suffix gives its type: .csv, .tsv, .parquet or .pq."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _DELIMITERS and kind not in _PARQUET:
        known = ", ".join((*_DELIMITERS, *_PARQUET))
        raise ValueError(f"a table must be a file of type {known}, got {path}")
    if not path.is_file():
        advice = "give a .csv, .tsv or .parquet file whose columns have names"
        what = "not a regular file" if path.exists() else "no such file"
        raise FileNotFoundError(f"{path}: {what}; {advice}")
    table = _read_parquet(path) if kind in _PARQUET else _read_text(path, _DELIMITERS[kind])
    if not len(table):
        raise ValueError(f"{path} must have at least one row below its header")
    return table


def column_names(path: Path) -> list[str]:
    """Read the names of a table's columns, and nothing else."""
    if path.suffix.lower() in _PARQUET:
        return list(extra("pyarrow.parquet", "bench").read_schema(path).names)
    delimiter = _DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return next((row for row in csv.reader(file, delimiter=delimiter) if row), [])


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort class names and drop repetitions: by value if all are numbers, else alphabetically."""
    names = set(names)
    try:
        values = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if not all(math.isfinite(value) for value in values.values()):
        return tuple(sorted(names))
    return tuple(sorted(names, key=lambda name: (values[name], name)))


def label_name(value: object) -> str:
    """Return a label as text; an integer of any type as one, a missing label as nothing."""
    if value is None or value != value:  # NaN differs from itself
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _read_text(path: Path, delimiter: str) -> Columns:
    rows: list[list[str]] = []
    lines: list[int] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        begin = 1
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(begin)
                if row and len(row) != len(rows[0]):
                    raise ValueError(
                        f"{path}:{begin}: expected {len(rows[0])} fields as in the header, "
                        f"got {len(row)}"
                    )
                begin = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(f"{path}:{begin}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(_encoding(path)) from error
    header = rows[0] if rows else []
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{path}:{lines[0]}: column names must differ, got {twice!r} twice")
    values = dict(zip(header, zip(*rows[1:], strict=True), strict=False))
    return Columns(path, values, lambda row: f"{path}:{lines[row + 1]}")


def _encoding(path: Path) -> str:
    """Say what to do about a text file that is not UTF-8."""
    raw = path.read_bytes()
    kind = "UTF-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "LATIN1"
    lines = raw.split(b"\n")
    bad = [number for number, line in enumerate(lines, 1) if not _is_utf8(line)]
    if kind == "LATIN1" and any(_is_utf8(line) and not line.isascii() for line in lines):
        return (
            f"{path}:{bad[0]} is not UTF-8 text, as other lines are; the file has mixed encodings: "
            f"repair this line{f' and {len(bad) - 1} more' if len(bad) > 1 else ''}"
        )
    return (
        f"{path} is not UTF-8 text; convert it first, for example with "
        f"`iconv -f {kind} -t UTF-8 {shlex.quote(str(path))} > utf8.csv`"
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_parquet(path: Path) -> Columns:
    parquet = extra("pyarrow.parquet", "bench")
    try:
        values = parquet.read_table(path).to_pydict()
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise ValueError(f"{path} is not readable as Parquet: {error}") from error
    return Columns(path, values, lambda row: f"{path}, row {row + 1}")


@dataclass(frozen=True)
class Encoder:
    """How a column becomes numbers, fitted to training rows.

    Args:
        name: The column.
        mean: Of its numbers.
        deviation: Of its numbers; 1 for a constant.
        categories: Its values, one-hot in this order; None for numbers.
    """

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def fit(cls, name: str, train: Columns, whole: Columns | None = None) -> "Encoder":
        """Fit a column: numeric if all known values are numbers, otherwise categorical.

        A column without a value in the training rows is categorical, without categories.

        Args:
            name: The column.
            train: The training rows.
            whole: The table they are of, if its other rows are to be encoded, too; it decides.
        """
        if numbers((train if whole is None else whole)[name]) is not None:
            values = _measured(train, name)
            known = values[~values.isnan()]
            if not len(known):
                return cls(name, categories=())
            mean, deviation = moments(known[:, None])
            return cls(name, float(mean), float(deviation))
        seen = sorted({value for value in _categories(train, name) if value is not None})
        if len(seen) > MOST_CATEGORIES:
            raise ValueError(
                f"{train.path}: column {name!r} must have at most {MOST_CATEGORIES} categories, "
                f"got {len(seen)}; is it a text, or to be left out? Name the columns to learn from"
            )
        return cls(name, categories=tuple(seen))

    def __call__(self, part: Columns) -> Tensor:
        """Encode the column of a table as float32.

        A missing number is 0, the mean; a missing or unseen category is a row of zeros.
        """
        if self.categories is None:
            values = _measured(part, self.name)
            values = values.where(~values.isnan(), self.mean)
            return ((values - self.mean) / self.deviation)[:, None].to(torch.float32)
        index: dict[str | None, int] = {
            value: position for position, value in enumerate(self.categories)
        }
        count = len(self.categories)
        table = torch.eye(count + 1, count, dtype=torch.float32)  # the last row is all zeros
        return table[[index.get(value, count) for value in _categories(part, self.name)]]


def encode(names: Sequence[str], train: Columns, *others: Columns) -> list[Tensor]:
    """Encode the named columns as float32 features, fitted to the first table.

    A column whose values there are all numbers is standardised; any other is one-hot over the
    values seen there, and a value seen first elsewhere is a row of zeros.
    """
    encoders = [Encoder.fit(name, train) for name in names]
    return [torch.cat([encoder(part) for encoder in encoders], 1) for part in (train, *others)]


def missing_rows(table: Columns, name: str, *, numeric: bool) -> list[int]:
    """Return the rows in which a column of numbers, or of categories, has no value."""
    if numeric:
        return _measured(table, name).isnan().nonzero()[:, 0].tolist()
    return [row for row, value in enumerate(_categories(table, name)) if value is None]


def _check_complete(table: Columns, name: str, *, numeric: bool) -> None:
    if rows := missing_rows(table, name, numeric=numeric):
        raise ValueError(
            f"{table.path}: column {name!r} must have no missing value, got {len(rows)}, "
            f"the first at {table.where(rows[0])}"
        )


def numbers(values: Sequence[object]) -> Tensor | None:
    """Return the values as float64, NaN where missing; None if one is not a number."""
    try:
        fast = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        slow = [_number(value) for value in values]
        return None if None in slow else torch.tensor(slow, dtype=torch.float64)
    return torch.from_numpy(fast) if fast.ndim == 1 else None


def _number(value: object) -> float | None:
    if isinstance(value, Real):
        return float(value)
    if value is None or (isinstance(value, str) and value.strip().lower() in _MISSING):
        return math.nan
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _measured(part: Columns, name: str) -> Tensor:
    """Return the values of a column as float64, NaN where missing."""
    values = numbers(part[name])
    if values is None:
        row = next(row for row, value in enumerate(part[name]) if _number(value) is None)
        raise ValueError(
            f"{part.where(row)}: {name!r} must be a number, as all are in the training part, "
            f"got {part[name][row]!r}"
        )
    if values.isinf().any():
        row = int(values.isinf().nonzero()[0])
        raise ValueError(f"{part.where(row)}: {name!r} must be finite, got {part[name][row]!r}")
    return values


def _categories(part: Columns, name: str) -> list[str | None]:
    """Return the values of a column as text, None where missing."""
    for row, value in enumerate(part[name]):
        if not isinstance(value, str | Real | None):
            raise TypeError(
                f"{part.where(row)}: {name!r} must hold numbers or strings, got {value!r}"
            )
    return [None if is_blank(value) else str(value) for value in part[name]]


def is_blank(value: object) -> bool:
    """Return whether a cell has nothing in it."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value != value  # NaN differs from itself

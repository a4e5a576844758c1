"""Tables as columns of Python values, each of which knows where it was written."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import extra
from .roots import PathLike

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
        """Some of the rows, which keep their places."""
        rows = index.tolist()
        values = {name: [column[row] for row in rows] for name, column in self.values.items()}
        return Columns(self.path, values, lambda row: self.where(rows[row]))

    def texts(self, name: str) -> list[str]:
        """A column of strings, none of them empty."""
        for row, value in enumerate(self[name]):
            if not isinstance(value, str):
                raise TypeError(f"{self.where(row)}: {name!r} must be text, got {value!r}")
            if not value.strip():
                raise ValueError(f"{self.where(row)}: {name!r} must not be empty")
        return list(self[name])

    def names(self, label: str) -> list[str]:
        """A column of labels as strings; an integer of any type is written as one."""
        names = [_name(value) for value in self[label]]
        for row, name in enumerate(names):
            if not name.strip():
                raise ValueError(f"{self.where(row)}: label {label!r} must not be empty")
        return names

    def labels(self, label: str, classes: Sequence[str]) -> Tensor:
        """A column of labels as int64 positions in `classes`."""
        index = {name: position for position, name in enumerate(classes)}
        names = self.names(label)
        for row, name in enumerate(names):
            if name not in index:
                raise ValueError(
                    f"{self.where(row)}: label {label!r} must be one of the "
                    f"{len(classes)} classes of the training part, got {name!r}"
                )
        return torch.tensor([index[name] for name in names], dtype=torch.int64)


def read_columns(path: PathLike) -> Columns:
    """Read a table; its type is told by the file's name: .csv, .tsv, .parquet or .pq."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _DELIMITERS and kind not in _PARQUET:
        known = ", ".join((*_DELIMITERS, *_PARQUET))
        raise ValueError(f"a table must be a file of type {known}, got {path}")
    if not path.is_file():
        advice = "give a .csv, .tsv or .parquet file whose columns have names"
        raise FileNotFoundError(f"{path}: no such file; {advice}")
    table = _read_parquet(path) if kind in _PARQUET else _read_text(path, _DELIMITERS[kind])
    if not len(table):
        raise ValueError(f"{path} must have at least one row below its header")
    return table


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Class names without repetition: by value if all are numbers, else alphabetically."""
    names = set(names)
    try:
        values = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if not all(math.isfinite(value) for value in values.values()):
        return tuple(sorted(names))
    return tuple(sorted(names, key=lambda name: (values[name], name)))


def _name(value: object) -> str:
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
            raise ValueError(f"{path} must be UTF-8 text: {error}") from error
    header = rows[0] if rows else []
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{path}:{lines[0]}: column names must differ, got {twice!r} twice")
    values = dict(zip(header, zip(*rows[1:], strict=True), strict=False))
    return Columns(path, values, lambda row: f"{path}:{lines[row + 1]}")


def _read_parquet(path: Path) -> Columns:
    parquet = extra("pyarrow.parquet", "bench")
    try:
        values = parquet.read_table(path).to_pydict()
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise ValueError(f"{path} is not readable as Parquet: {error}") from error
    return Columns(path, values, lambda row: f"{path}, row {row + 1}")

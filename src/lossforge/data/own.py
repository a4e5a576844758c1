"""A user's own data in every command: a table, a folder of images, or arrays.

A table's label column and the roles of the others are found by name and content; all of it can be
said instead.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from ..errors import SpecError
from .dataset import Dataset, Split, stratify, subset
from .folders import load as load_folder
from .patches import read_atoms
from .pipeline import (
    INPUTS,
    ArrayPipeline,
    ImagePipeline,
    Pipeline,
    TablePipeline,
    as_inputs,
    pick,
    read_arrays,
)
from .registry import names as data_names
from .source import PathLike
from .tables import Columns, check_complete, in_order, numbers, read_columns

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
ARRAYS = ".npz"
SIZE = 32
FEATURES = "patches:100"  # more atoms are worse for a few thousand images
TEST_FRACTION = 0.2
# in order of preference; compared in lower case
LABEL_NAMES = (
    *("label", "labels", "given_label", "noisy_label", "class", "target", "category", "intent"),
    *("y", "species", "sentiment", "topic", "tag", "diagnosis", "outcome"),
)
WEIGHT = "label_weight"  # a column that `lossforge clean` writes
TRUE_NAMES = ("true", "y_true", "true_labels")
_ID = re.compile(r"(?i:(?:^|[\W_])(?:id|uid|uuid|guid)$)|[a-z]I[dD]$")
_NO_LABEL = frozenset(("", "n/a", "nan", "null"))  # "none" and "?" may be classes


def is_name(data: str) -> bool:
    """Check whether this is the name of a data set rather than a path."""
    return data.lower() in data_names() and Path(data).name == data


@dataclass(frozen=True)
class OwnData:
    """A user's own data as a run describes them.

    Args:
        name: The file's name, or that of the folder with a slash behind it.
        place: The absolute path.
        options: What `load` takes, and the hash of the content.
    """

    name: str
    place: str
    options: dict[str, Any] = field(default_factory=dict)


def describe(path: PathLike, **options: Any) -> OwnData:
    """Describe a table, folder or file of arrays; options that are None are left out.

    Args:
        path: The data.
        options: Of `load`.
    """
    place = Path(path)
    if not place.exists():
        raise SpecError(
            f"{str(path)!r} is neither a data set that `lossforge data list` shows nor a file or "
            f"folder ({', '.join((*SUFFIXES, ARRAYS))})"
        )
    if not place.is_dir() and place.suffix.lower() not in (*SUFFIXES, ARRAYS):
        known = ", ".join((*SUFFIXES, ARRAYS))
        raise SpecError(f"own data must be a folder or a file of type {known}, got {str(path)!r}")
    given = {name: value for name, value in options.items() if value is not None}
    place = place.resolve()
    name = f"{place.name}/" if place.is_dir() else place.name
    return OwnData(name, str(place), {**given, "hash": content_hash(place)})


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder that of the names and hashes of its files."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    whole = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            name = os.fsencode(file.relative_to(path).as_posix())  # it need not be UTF-8
            whole.update(name + f"\0{content_hash(file)}\n".encode())
    return whole.hexdigest()


def load(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    true: str | None = None,
    size: int = SIZE,
    features: str = FEATURES,
    test_fraction: float = TEST_FRACTION,
    hash: str | None = None,
) -> Dataset:
    """Load a user's own data, a part of each class set aside for testing.

    Given labels are those of the file. Features are fitted to the training part.

    Args:
        path: A table (.csv, .tsv, .parquet), a folder of class folders with images, with test
            folders or without, or a .npz file with inputs x and labels y.
        label: The column, or array, of labels; if None, guessed from its name or its values.
        columns: The columns of a table to learn from; if None, all that look useful.
        true: The column, or array, of true labels, which testing then uses.
        size: Height and width that images are resized to.
        features: Of images, "patches:ATOMS".
        test_fraction: How much of each class is set aside, unless there are test folders.
        hash: What `content_hash` must return.
    """
    place = Path(path)
    if hash is not None and (found := content_hash(place)) != hash:
        raise SpecError(f"{place} has changed: its SHA-256 must be {hash}, got {found}")
    if place.is_dir():
        for what, value in (("label", label), ("columns", columns), ("true", true)):
            if value is not None:
                raise SpecError(f"a folder has its labels as folders, got {what}={value!r}")
        return _load_folder(place, size, features, test_fraction)
    if place.suffix.lower() == ARRAYS:
        if columns is not None:
            raise SpecError(f"only a table has columns, got columns={columns!r}")
        return _load_arrays(place, label, true, features, test_fraction)
    found_table = read_own_table(place, label=label, columns=columns, true=true)
    table = found_table.table
    rows = stratify(found_table.given, test_fraction)
    pipeline = TablePipeline.fit(table.take(rows[0]), found_table.texts, found_table.others)
    whole = Split(pipeline.encode(table), found_table.given, found_table.true)
    return _divided(place.name, found_table.classes, whole, rows, pipeline)


def _divided(
    name: str, classes: tuple[str, ...], whole: Split, rows: Sequence[Tensor], pipeline: Pipeline
) -> Dataset:
    train, test = (subset(whole, part) for part in rows)
    return Dataset(name, classes, train, {"test": test}, pipeline=pipeline)


def _load_folder(path: Path, size: int, features: str, test_fraction: float) -> Dataset:
    chance = Generator().manual_seed(0)
    found = load_folder(path, size=size, test_fraction=test_fraction, generator=chance)
    pipeline = ImagePipeline.fit(found.train.inputs, read_atoms(features), size)

    def encoded(split: Split) -> Split:
        return Split(pipeline.encode(split.inputs), split.given, split.true)

    tests = {name: encoded(split) for name, split in found.tests.items()}
    name = f"{path.resolve().name}/"
    return Dataset(name, found.classes, encoded(found.train), tests, pipeline=pipeline)


def _load_arrays(
    path: Path, label: str | None, true: str | None, features: str, test_fraction: float
) -> Dataset:
    inputs, classes, given, truth = read_own_arrays(path, label=label, true=true)
    rows = stratify(given, test_fraction)
    pipeline: ImagePipeline | ArrayPipeline
    if inputs.ndim == 2:
        pipeline = ArrayPipeline.fit(inputs[rows[0]])
    else:
        pipeline = ImagePipeline.fit(inputs[rows[0]], read_atoms(features), inputs.shape[-1])
    return _divided(
        path.name, classes, Split(pipeline.encode(inputs), given, truth), rows, pipeline
    )


def read_own_arrays(
    path: PathLike, *, label: str | None = None, true: str | None = None
) -> tuple[Tensor, tuple[str, ...], Tensor, Tensor | None]:
    """Read inputs, class names, given labels and true ones (or None) of a .npz file."""
    arrays = read_arrays(path)
    inputs = as_inputs(pick(arrays, INPUTS, path, "inputs"), path)
    texts = [_label_texts(arrays, [label] if label else LABEL_NAMES, path, len(inputs))]
    if true is not None or any(name in arrays for name in TRUE_NAMES):
        texts.append(_label_texts(arrays, [true] if true else TRUE_NAMES, path, len(inputs)))
    classes = in_order(name for part in texts for name in part)
    if len(classes) < 2:
        raise ValueError(f"{path}: labels must have two classes or more, got only {classes[0]!r}")
    index = {name: position for position, name in enumerate(classes)}
    given, *truth = (torch.tensor([index[name] for name in part]) for part in texts)
    return inputs, classes, given, truth[0] if truth else None


def _label_texts(
    arrays: dict[str, Any], names: Sequence[str], path: PathLike, count: int
) -> list[str]:
    found = pick(arrays, names, path, "labels")
    if found.dtype.kind not in "iubUS" or found.shape != (count,):
        raise ValueError(
            f"{path}: labels must be {count} whole numbers or texts, got {found.dtype} of shape "
            f"{found.shape}"
        )
    return [one.decode() if isinstance(one, bytes) else str(one) for one in found.tolist()]


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A user's table, with the roles of its columns.

    Args:
        table: The rows.
        label: The column of labels.
        classes: The class names.
        given: (N,) the labels.
        true: (N,) the true labels, if a column of them was named.
        texts: The columns of sentences.
        others: The columns of numbers and categories.
        ids: Unused columns with a different value in nearly every row, which identify rows.
        notes: What was guessed or left out.
    """

    table: Columns
    label: str
    classes: tuple[str, ...]
    given: Tensor
    true: Tensor | None
    texts: tuple[str, ...]
    others: tuple[str, ...]
    ids: tuple[str, ...]
    notes: tuple[str, ...]


def read_own_table(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    true: str | None = None,
) -> OwnTable:
    """Read a CSV, TSV or Parquet file, and find the roles of its columns.

    Args:
        path: The file; CSV and TSV have a header and are UTF-8.
        label: The label column; if None, guessed from its name or else from its values.
        columns: The feature columns; if None, all columns except the labels, row numbers and
            columns with a different value in nearly every row.
        true: A column of true labels.
    """
    table = read_columns(path)
    notes = []
    if label is None:
        label, why = _guess_label(table, true)
        notes.append(f"label column {label!r}, guessed from {why}; label= names another")
    else:
        notes.append(f"label column {label!r}")
    answers = [label] if true is None else [label, true]
    for name in answers:
        _check_labels(table, name)
    classes = in_order(name for answer in answers for name in table.names(answer))
    if len(classes) < 2:
        raise ValueError(
            f"{path}: {label!r} must have two classes or more, got only {classes[0]!r}; "
            "label= names another column"
        )
    if len(classes) > len(table) / 2:
        raise ValueError(
            f"{path}: {label!r} has {len(classes)} different values in {len(table)} rows, too "
            "many for classes; label= names another column"
        )
    texts, others, left_out = _roles(table, answers, columns)
    for names, what in ((texts, "text"), (others, "numbers and categories")):
        if names:
            notes.append(f"{what}: {_listed(names)}")
    notes += [
        f"left out: {name!r} {why}; columns= names what to learn from" for name, why in left_out
    ]
    try:
        check_complete(others, table)
    except ValueError as error:
        advice = "fill it, remove the row, or name the columns to learn from by columns="
        raise ValueError(f"{error}; {advice}") from None
    ids = _ids(table, {*answers, *texts, *others})
    notes += [note for name in ids for note in _repeats(table, name)]
    return OwnTable(
        table,
        label,
        classes,
        table.labels(label, classes),
        None if true is None else table.labels(true, classes),
        tuple(texts),
        tuple(others),
        ids,
        tuple(notes),
    )


def _guess_label(table: Columns, true: str | None = None) -> tuple[str, str]:
    """Return the column that is most likely the label, and the reason."""
    names = {name.strip().lower(): name for name in table.values if name != true}
    known = [names[name] for name in LABEL_NAMES if name in names]
    if known:
        return known[0], "its name"
    last = [name for name in table.values if name != true or len(table.values) == 1][-1]
    distinct = len(set(table[last]))
    if len(table.values) > 1 and 2 <= distinct <= max(2, len(table) // 10):
        return last, f"its position and its {distinct} different values"
    if len(table.values) == 1 and ";" in last:
        raise ValueError(f"{table.path} is separated by semicolons; write it with commas")
    raise ValueError(
        f"{table.path}: cannot guess the label column; name it by label=; "
        f"the columns are {_listed([*table.values])}"
    )


def _check_labels(table: Columns, label: str) -> None:
    missing = [row for row, value in enumerate(table[label]) if _is_missing(value)]
    if missing:
        rows = "row has" if len(missing) == 1 else "rows have"
        raise ValueError(
            f"{table.path}: {len(missing)} {rows} no label in {label!r}, the first at "
            f"{table.where(missing[0])}; label or remove them"
        )


def _roles(
    table: Columns, answers: Sequence[str], columns: Sequence[str] | None
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Split columns into texts, other features, and those left out with the reason."""
    label = answers[0]
    names = (
        [name for name in table.values if name not in answers] if columns is None else [*columns]
    )
    texts, others, left_out = [], [], []
    for name in names:
        if name in answers:
            raise ValueError(f"the feature columns must not include the label column {name!r}")
        values = table[name]
        distinct = len({str(value) for value in values})
        numeric = numbers(values) is not None
        if columns is None and name == WEIGHT:
            left_out.append((name, "holds weights of labels, which training here does not use"))
        elif not numeric and _is_text(values, distinct):
            texts.append(name)
        elif columns is None and _numbers_rows(values):
            left_out.append((name, "numbers the rows"))
        elif columns is None and _ID.search(name) and distinct > len(values) / 2:
            left_out.append((name, "identifies rows"))
        elif columns is None and distinct == 1:
            left_out.append((name, "has the same value in all rows"))
        elif not numeric and distinct > len(values) / 2:
            if columns is None:
                left_out.append((name, "has a different value in nearly every row"))
            else:
                texts.append(name)
        else:
            others.append(name)
    if not texts and not others:
        raise ValueError(
            f"{table.path}: there are no features besides {label!r}; "
            "an audit needs a text column or feature columns"
        )
    return texts, others, left_out


def _ids(table: Columns, used: Collection[str]) -> tuple[str, ...]:
    """Return the unused columns that identify rows."""
    return tuple(
        name
        for name, values in table.values.items()
        if name not in used and len({str(value) for value in values}) > len(values) / 2
    )


def _repeats(table: Columns, name: str) -> Iterator[str]:
    """Note values that do not identify one row; rows are then told apart by their numbers."""
    counts = Counter(map(str, table[name]))
    twice = [value for value, count in counts.items() if count > 1]
    if twice:
        yield f"{name!r} repeats {len(twice)} of its values, the first {twice[0]!r}"


def _is_text(values: Sequence[object], distinct: int) -> bool:
    """Check whether most values have several words, and few values repeat."""
    several = sum(isinstance(value, str) and len(value.split()) > 1 for value in values)
    return several > len(values) / 2 and distinct > len(values) / 4


def _numbers_rows(values: Sequence[object]) -> bool:
    """Check whether each value is one more than the previous one."""
    found = numbers(values)
    return found is not None and len(found) > 2 and bool((found.diff() == 1).all())


def _is_missing(value: object) -> bool:
    if value is None or value != value:  # NaN differs from itself
        return True
    return isinstance(value, str) and value.strip().lower() in _NO_LABEL


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")

"""Read a user's table: find the label column, and encode texts, numbers and categories."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import torch

from ..data import Dataset, Split
from ..data.features import featurise
from ..data.source import PathLike
from ..data.tables import Columns, check_complete, encode, in_order, numbers, read_columns
from .subject import Subject

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
# in order of preference; compared in lower case
LABEL_NAMES = (
    *("label", "labels", "given_label", "noisy_label", "class", "target", "category", "intent"),
    *("y", "species", "sentiment", "topic", "tag", "diagnosis", "outcome"),
)
_NO_LABEL = frozenset(("", "n/a", "nan", "null"))  # "none" and "?" may be classes
_SHOWN = 160  # characters of a text


def read_table(
    path: PathLike, *, label: str | None = None, columns: Sequence[str] | None = None
) -> Subject:
    """Read all rows of a CSV, TSV or Parquet file.

    Columns of sentences become TF-IDF features (joined, if there are several), numbers are
    standardised and categories one-hot encoded. All are fitted to all rows, without the labels.

    Args:
        path: The file; CSV and TSV have a header and are UTF-8.
        label: The label column; if None, guessed from its name or else from its values.
        columns: The feature columns; if None, all columns except the label, row numbers and
            columns with a different value in nearly every row.
    """
    table = _read(Path(path))
    notes = []
    if label is None:
        label, why = _guess_label(table)
        notes.append(f"label column {label!r}, guessed from {why}; label= names another")
    else:
        notes.append(f"label column {label!r}")
    _check_labels(table, label)
    classes = in_order(table.names(label))
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
    texts, others, left_out = _roles(table, label, columns)
    for names, what in ((texts, "text"), (others, "numbers and categories")):
        if names:
            notes.append(f"{what}: {_listed(names)}")
    notes += [
        f"left out: {name!r} {why}; columns= names what to learn from" for name, why in left_out
    ]
    inputs = _features(table, texts, others)
    dataset = Dataset(table.path.stem, classes, Split(inputs, table.labels(label, classes)), {})
    shown = texts or others

    def text(row: int) -> str:
        if texts:
            words = " ".join(str(table[name][row]) for name in texts)
        else:
            words = ", ".join(f"{name}={table[name][row]}" for name in shown)
        words = " ".join(words.split())
        return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"

    return Subject(
        table.path.name,
        "table",
        dataset,
        where=lambda row: table.where(row).replace(str(table.path), table.path.name, 1),
        text=text,
        notes=tuple(notes),
    )


def _read(path: Path) -> Columns:
    try:
        return read_columns(path)
    except ValueError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise ValueError(
                f"{path} is not UTF-8 text; convert it first, for example with "
                f"`iconv -f LATIN1 -t UTF-8 {shlex.quote(str(path))} > utf8.csv`"
            ) from error
        raise


def _guess_label(table: Columns) -> tuple[str, str]:
    """Return the column that is most likely the label, and the reason."""
    names = {name.strip().lower(): name for name in table.values}
    known = [names[name] for name in LABEL_NAMES if name in names]
    if known:
        return known[0], "its name"
    last = [*table.values][-1]
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
    table: Columns, label: str, columns: Sequence[str] | None
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Split columns into texts, other features, and those left out with the reason."""
    names = [name for name in table.values if name != label] if columns is None else [*columns]
    texts, others, left_out = [], [], []
    for name in names:
        if name == label:
            raise ValueError(f"the feature columns must not include the label column {label!r}")
        values = table[name]
        distinct = len({str(value) for value in values})
        numeric = numbers(values) is not None
        if not numeric and _is_text(values, distinct):
            texts.append(name)
        elif columns is None and _numbers_rows(values):
            left_out.append((name, "numbers the rows"))
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


def _features(table: Columns, texts: Sequence[str], others: Sequence[str]) -> torch.Tensor:
    blocks = []
    if texts:
        columns = [table.texts(name) for name in texts]
        joined = [" ".join(words) for words in zip(*columns, strict=True)]
        blocks += featurise(joined, name=f"{table.path}: {_listed(texts)}")
    if others:
        try:
            check_complete(others, table)
        except ValueError as error:
            advice = "fill it, remove the row, or name the columns to learn from by columns="
            raise ValueError(f"{error}; {advice}") from None
        blocks += encode(others, table)
    return torch.cat(blocks, 1)


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

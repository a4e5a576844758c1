"""A user's table: which column holds the labels, and what the others are for.

The label column and the roles of the others are found by name and content; all of it can be said
instead.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from torch import Tensor

from .source import PathLike
from .tables import Columns, in_order, is_blank, missing_rows, numbers, read_columns

# in order of preference; compared in lower case
LABEL_NAMES = (
    *("label", "labels", "given_label", "noisy_label", "class", "target", "category", "intent"),
    *("y", "species", "sentiment", "topic", "tag", "diagnosis", "outcome"),
)
WEIGHT = "label_weight"  # a column that `lossforge clean` writes
_ID = re.compile(r"(?i:(?:^|[\W_])(?:id|uid|uuid|guid)$)|[a-z]I[dD]$")
_NO_LABEL = frozenset(("n/a", "nan", "null"))  # "none" and "?" may be classes


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
        notes: What was guessed, left out or missing.
        weights: (N,) the weights of the samples in training, if a column of them was named.
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
    weights: Tensor | None = None


def read_own_table(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    true: str | None = None,
    weight: str | None = None,
    bare: bool = False,
) -> OwnTable:
    """Read a CSV, TSV or Parquet file, and find the roles of its columns.

    Args:
        path: The file; CSV and TSV have a header and are UTF-8.
        label: The label column; if None, guessed from its name or else from its values.
        columns: The feature columns; if None, all columns except the labels, row numbers, dates
            and times, and columns with a different value in nearly every row.
        true: A column of true labels.
        weight: A column of weights, one for each row, of 0 or more.
        bare: Whether the features come from elsewhere, so that the table need not have any.
    """
    table = read_columns(path)
    notes = []
    if label is None:
        label, why = _guess_label(table, true, weight)
        notes.append(f"label column {label!r}, guessed from {why}")
    else:
        notes.append(f"label column {label!r}")
    if label == true:
        raise ValueError(f"{path}: given and true labels must be two columns, got {label!r} twice")
    answers = [label] if true is None else [label, true]
    for name in answers:
        _check_labels(table, name)
    classes = in_order(name for answer in answers for name in table.names(answer))
    if len(classes) < 2:
        raise ValueError(
            f"{path}: {label!r} must have two classes or more, got only {classes[0]!r}; "
            "name another column by `label`"
        )
    if len(classes) > len(table) / 2:
        raise ValueError(
            f"{path}: {label!r} has {len(classes)} different values in {len(table)} rows, too "
            "many for classes; name another column by `label`"
        )
    texts, others, left_out = _roles(table, answers, columns, weight)
    weights = None if weight is None else _weights(table, weight)
    if bare:  # nothing is learnt from the columns, which only show the rows
        left_out = []
    elif not texts and not others:
        raise ValueError(
            f"{path}: there are no features besides {label!r}; "
            "a text column or feature columns are needed"
        )
    for names, what in ((texts, "text"), (others, "numbers and categories")):
        if names and not bare:
            notes.append(f"{what}: {_listed(names)}")
    if not bare:
        notes += gaps(table, texts, {name: numbers(table[name]) is not None for name in others})
    notes += [f"left out: {name!r} {why}" for name, why in left_out]
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
        weights,
    )


def gaps(table: Columns, texts: Sequence[str], others: Mapping[str, bool]) -> Iterator[str]:
    """Note the cells without a value, and what they count as.

    Args:
        table: The rows.
        texts: The columns of sentences.
        others: The other columns, and whether they hold numbers.
    """
    for name in texts:
        if empty := sum(map(is_blank, table[name])):
            yield f"{name!r} is empty in {empty:,} of {len(table):,} rows"
    for name, numeric in others.items():
        if rows := missing_rows(table, name, numeric=numeric):
            yield (
                f"{name!r} is missing in {len(rows):,} of {len(table):,} rows, the first at "
                f"{table.place(rows[0])}; it counts as "
                f"{'the mean' if numeric else 'none of its values'} there"
            )


def _weights(table: Columns, name: str) -> Tensor:
    found = numbers(table[name])
    if found is None:
        raise ValueError(f"{table.path}: the weights in {name!r} must be numbers")
    return check_weights(found, str(table.path), name, table.where)


def check_weights(
    weights: Tensor, path: str, name: str, where: Callable[[int], str] | None = None
) -> Tensor:
    """Return weights (N,); raise unless all are finite and 0 or more, and one is positive.

    Args:
        weights: One for each sample.
        path: The file, for an error.
        name: The column or array, likewise.
        where: The place of a row, likewise.
    """
    bad = ~(weights.isfinite() & (weights >= 0))
    if bad.any():
        row = int(bad.nonzero()[0])
        place = f"{path}, row {row}" if where is None else where(row)
        raise ValueError(
            f"{place}: the weight in {name!r} must be a number of 0 or more, got "
            f"{float(weights[row]):g}"
        )
    if not (weights > 0).any():
        raise ValueError(f"{path}: a weight in {name!r} must be positive, all are 0")
    return weights


def _guess_label(
    table: Columns, true: str | None = None, weight: str | None = None
) -> tuple[str, str]:
    """Return the column that is most likely the label, and the reason."""
    others = (true, weight, WEIGHT)
    names = {name.strip().lower(): name for name in table.values if name not in others}
    known = [names[name] for name in LABEL_NAMES if name in names]
    if known:
        return known[0], "its name"
    last = ([name for name in table.values if name not in others] or [*table.values])[-1]
    distinct, complete = len(set(table[last])), not any(map(_is_missing, table[last]))
    if len(table.values) > 1 and complete and 2 <= distinct <= max(2, len(table) // 10):
        return last, f"its position and its {distinct} different values"
    if len(table.values) == 1 and ";" in last:
        raise ValueError(f"{table.path} is separated by semicolons; write it with commas")
    raise ValueError(
        f"{table.path}: cannot guess the label column; name it by `label`; "
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
    table: Columns,
    answers: Sequence[str],
    columns: Sequence[str] | None,
    weight: str | None,
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Split columns into texts, other features, and those left out with the reason."""
    names = (
        [name for name in table.values if name not in answers] if columns is None else [*columns]
    )
    texts, others, left_out = [], [], []
    for name in names:
        if name in answers:
            raise ValueError(f"the feature columns must not include the label column {name!r}")
        values = table[name]
        found = numbers(values)
        gone = [is_blank(one) for one in values] if found is None else found.isnan().tolist()
        known = [value for value, missing in zip(values, gone, strict=True) if not missing]
        distinct = len({str(value) for value in known})
        if not known:
            left_out.append((name, "has no value"))
        elif name == weight or (columns is None and name == WEIGHT):
            left_out.append((name, "holds weights of labels"))
        elif columns is None and found is None and _holds_times(values):
            left_out.append((name, "holds dates or times"))
        elif found is None and _is_text(known, distinct):
            texts.append(name)
        elif columns is None and found is not None and _numbers_rows(found):
            left_out.append((name, "numbers the rows"))
        elif columns is None and _ID.search(name) and distinct > len(known) / 2:
            left_out.append((name, "identifies rows"))
        elif columns is None and distinct == 1 and (found is not None or len(known) == len(values)):
            left_out.append((name, "has only one value"))
        elif found is None and distinct > max(1, len(known) / 2):
            if columns is None:
                row = "row" if len(known) == len(values) else "row that has one"
                left_out.append((name, f"has a different value in nearly every {row}"))
            else:
                texts.append(name)
        else:
            others.append(name)
    return texts, others, left_out


def _ids(table: Columns, used: Collection[str]) -> tuple[str, ...]:
    """Return the unused columns that identify rows; times may repeat by chance."""
    known = {
        name: [value for value in values if not is_blank(value)]
        for name, values in table.values.items()
        if name not in used
    }
    return tuple(
        name
        for name, values in known.items()
        if len({str(value) for value in values}) > len(values) / 2 and not _holds_times(values)
    )


def _repeats(table: Columns, name: str) -> Iterator[str]:
    """Note values that do not identify one row; rows are then told apart by their numbers."""
    counts = Counter(str(value) for value in table[name] if not is_blank(value))
    twice = [value for value, count in counts.items() if count > 1]
    if twice:
        yield f"{name!r} repeats {len(twice)} of its values, the first {twice[0]!r}"


def _is_text(values: Sequence[object], distinct: int) -> bool:
    """Check whether most values have several words, and few values repeat."""
    several = sum(isinstance(value, str) and len(value.split()) > 1 for value in values)
    return several > len(values) / 2 and distinct > len(values) / 4


def _holds_times(values: Sequence[object]) -> bool:
    """Check whether all values that are there are dates, with or without times of day."""
    found = [value for value in values if not _is_missing(value)]
    return bool(found) and all(map(_is_time, found))


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, date)
    try:
        return value.strip()[4:5] == "-" and bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


def _numbers_rows(values: Tensor) -> bool:
    """Check whether the known values increase by one per row."""
    rows = (~values.isnan()).nonzero()[:, 0]
    return len(rows) > 2 and bool((values[rows].diff() == rows.diff()).all())


def _is_missing(value: object) -> bool:
    return is_blank(value) or (isinstance(value, str) and value.strip().lower() in _NO_LABEL)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")

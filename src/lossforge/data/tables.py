"""Anybody's own table: a text or feature columns, and a label."""

from collections.abc import Sequence

from torch import Generator

from .columns import Columns, in_order, read_columns
from .dataset import Dataset, Split
from .encode import check_complete, encode
from .features import featurise
from .partition import stratify
from .roots import PathLike


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
    """A CSV, TSV or Parquet file with a label column and either one text or feature columns.

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
    if text is None:
        check_complete(used, whole)
    truths = [] if true is None else whole.names(true)
    classes = in_order([*whole.names(label), *truths])
    if len(classes) < 2:
        raise ValueError(f"{path}: {label!r} must have at least two classes, got {classes[0]!r}")
    if test is None:
        rows = stratify(whole.labels(label, classes), test_fraction, generator=generator)
        parts = [whole.take(part) for part in rows]
    else:
        parts = [whole, read_columns(test)]
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
    """The columns to learn from, none of which may be an answer."""
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
                "name the feature columns by columns="
            )
    for name in names:
        table[name]
        if name in answers:
            raise ValueError(f"a feature must not be a label column, got {name!r}")
    if not names:
        raise ValueError(f"{table.path} must have at least one feature column besides {label!r}")
    return names

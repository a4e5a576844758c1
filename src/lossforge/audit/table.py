"""A user's table as the subject of an audit."""

from collections.abc import Sequence

import torch

from ..data import Dataset, Split
from ..data.own import sentences_of
from ..data.own_table import read_own_table
from ..data.pipeline import TablePipeline
from ..data.source import PathLike, content_hash
from ..data.tables import is_blank
from .subject import Subject

_SHOWN = 1000  # characters of a text


def read_table(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    features: str | None = None,
    bare: bool = False,
) -> Subject:
    """Read all rows of a CSV, TSV or Parquet file.

    Columns of sentences become TF-IDF features (joined, if there are several), numbers are
    standardised and categories one-hot encoded. All are fitted to all rows, without the labels.

    Args:
        path: The file; CSV and TSV have a header and are UTF-8.
        label: The label column; if None, guessed from its name or else from its values.
        columns: The feature columns; if None, all columns except the label, row numbers and
            columns with a different value in nearly every row.
        features: "sentence-transformers:MODEL" for embeddings of sentences in place of TF-IDF.
        bare: Whether to read the labels alone, as the features come from elsewhere.
    """
    found = read_own_table(path, label=label, columns=columns, bare=bare)
    table, texts, others = found.table, found.texts, found.others
    if bare:
        inputs = torch.empty(len(found.given), 0)
    else:
        sentences = sentences_of(features)
        inputs = TablePipeline.fit(table, texts, others, sentences).encode(table)
    dataset = Dataset(table.path.stem, found.classes, Split(inputs, found.given), {})

    def text(row: int) -> str:
        words = " ".join(_shown(table[name][row]) for name in texts)
        if not words.strip():
            words = ", ".join(f"{name}={_shown(table[name][row])}" for name in others)
        words = " ".join(words.split())
        return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"

    return Subject(
        table.path.name,
        "table",
        dataset,
        where=table.place,
        text=text,
        notes=found.notes if features is None else (*found.notes, f"features {features}"),
        ids=lambda row: {name: _shown(table[name][row]) for name in found.ids},
        label=found.label,
        sha256=content_hash(table.path),
        path=table.path,
    )


def _shown(value: object) -> str:
    return "" if is_blank(value) else str(value)

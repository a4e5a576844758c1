"""Probabilities that the user has: out of sample, one row for each sample, one column for a class.

They take the place of the cross-validation, as in cleanlab.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.embeddings import read_array
from ..data.own import SUFFIXES
from ..data.source import PathLike
from ..data.tables import numbers, read_columns
from .subject import Subject

TOLERANCE = 1e-3  # of a row's sum: half precision has three digits
Probs = PathLike | Tensor | np.ndarray[Any, Any]


def with_probs(subject: Subject, probs: Probs, classes_file: PathLike | None = None) -> Subject:
    """Return a subject with the user's probabilities, checked and in the order of its classes.

    Args:
        subject: The labelled samples.
        probs: (N, K), or a file of them: .npy, whose columns are the classes as the subject sorts
            them or as `classes_file` lists them; or a table whose columns have their names.
        classes_file: A text file with the name of a class on each line, in the order of the
            columns.
    """
    classes, count = subject.dataset.classes, len(subject.given)
    named: Sequence[str] | None = None
    name = "pred_probs"
    if isinstance(probs, str | os.PathLike):
        name = str(probs)
        if Path(probs).suffix.lower() in SUFFIXES:
            named, found = _read_table(probs)
            if classes_file is not None:
                raise ValueError(f"{name} names its columns itself, got classes_file as well")
        else:
            found = torch.from_numpy(_numbers(read_array(probs), name))
    elif isinstance(probs, Tensor):
        found = probs.detach().cpu().double()
    else:
        found = torch.from_numpy(_numbers(np.asarray(probs), name))
    if classes_file is not None:
        named = _read_names(Path(classes_file))
    _check_shape(found, count, classes, named, name)
    if named is not None:
        found = found[:, [named.index(one) for one in classes]]
    found = _normalised(found, name)
    notes = [f"probabilities from {Path(name).name}" if name != "pred_probs" else "probabilities"]
    notes[0] += ": no network is trained, so that losses are compared by certificate alone"
    if bool((found.argmax(1) == subject.given).all()):
        notes.append(
            "they predict every label: a model that was trained on the same samples does, and "
            "finds no wrong label; take those of a model that was not (cross-validation)"
        )
    return replace(subject, probs=found, notes=(*subject.notes, *notes))


def _numbers(found: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    if found.dtype.kind not in "fiub":
        raise ValueError(f"{name}: probabilities must be numbers, got {found.dtype}")
    return found.astype(np.float64)


def _read_table(path: PathLike) -> tuple[list[str], Tensor]:
    """Read the names of a table's columns and their numbers (N, K)."""
    table = read_columns(path)
    columns = []
    for name, values in table.values.items():
        column = numbers(values)
        if column is None:
            raise ValueError(
                f"{path}: every column must hold the probabilities of a class, {name!r} has no "
                "numbers"
            )
        columns.append(column)
    return [*table.values], torch.stack(columns, 1)


def _read_names(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    names = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    return [name for name in names if name]


def _check_shape(
    found: Tensor,
    count: int,
    classes: Sequence[str],
    named: Sequence[str] | None,
    name: str,
) -> None:
    if found.ndim != 2 or len(found) != count:
        raise ValueError(
            f"{name}: probabilities must have a row for each of the {count:,} labelled samples, in "
            f"the same order, got shape {tuple(found.shape)}"
        )
    if named is not None:
        if len(set(named)) < len(named) or set(named) != set(classes):
            strange = sorted(set(named) - set(classes)) or sorted(set(classes) - set(named))
            told = "are unknown" if set(named) - set(classes) else "are missing"
            what = f"{', '.join(map(repr, strange[:3]))} {told}" if strange else "one comes twice"
            raise ValueError(
                f"{name}: the columns must be the {len(classes)} classes of the labels, {what}"
            )
        if found.shape[1] != len(named):
            raise ValueError(f"{name} must have {len(named)} columns, got {found.shape[1]}")
    elif found.shape[1] != len(classes):
        shown = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"{name}: probabilities must have a column for each of the {len(classes)} classes of "
            f"the labels ({shown}), got {found.shape[1]}; a class without any label has to be left "
            "out"
        )


def _normalised(found: Tensor, name: str) -> Tensor:
    """Return rows that sum to 1 exactly; raise unless they nearly do."""
    wrong = ~((found >= 0) & (found <= 1 + TOLERANCE)).all(1)
    sums = found.sum(1)
    wrong |= ~((sums - 1).abs() <= TOLERANCE)
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"{name}: rows must be probabilities that sum to 1, row {row} (counted from 0) sums to "
            f"{float(sums[row]):.4g}, with a least value of {float(found[row].min()):.4g}; of "
            "logits take the softmax"
        )
    return found / sums[:, None]

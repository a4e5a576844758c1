"""Feature columns of a table as numbers: measurements standardised, categories one-hot."""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from .columns import Columns
from .features import standardise

MOST_CATEGORIES = 1000
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))


def encode(names: Sequence[str], train: Columns, *others: Columns) -> list[Tensor]:
    """Float32 features of the named columns, fitted to the first table.

    A column whose values there are all numbers is standardised; any other is one-hot over the
    values seen there, and a value seen first elsewhere is a row of zeros.
    """
    parts = (train, *others)
    blocks = []
    for name in names:
        if numbers(train[name]) is not None:
            block = standardise(*(_measured(part, name) for part in parts))
        else:
            block = _one_hot([_categories(part, name) for part in parts], train, name)
        blocks.append(block)
    return [torch.cat(columns, 1) for columns in zip(*blocks, strict=True)]


def check_complete(names: Sequence[str], table: Columns) -> None:
    """Raise if a value is missing, with the count over the whole table."""
    for name in names:
        if numbers(table[name]) is not None:
            _measured(table, name)
        else:
            _categories(table, name)


def numbers(values: Sequence[object]) -> Tensor | None:
    """The values as float64, NaN where missing; None if one of them is no number."""
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
    values = numbers(part[name])
    if values is None:
        row = next(row for row, value in enumerate(part[name]) if _number(value) is None)
        raise ValueError(
            f"{part.where(row)}: {name!r} must be a number, as all are in the training part, "
            f"got {part[name][row]!r}"
        )
    _refuse_missing(part, name, (~values.isfinite()).tolist())
    return values[:, None]


def _categories(part: Columns, name: str) -> list[str]:
    for row, value in enumerate(part[name]):
        if not isinstance(value, str | Real | None):
            raise TypeError(
                f"{part.where(row)}: {name!r} must hold numbers or strings, got {value!r}"
            )
    _refuse_missing(part, name, [value is None or value == "" for value in part[name]])
    return [str(value) for value in part[name]]


def _refuse_missing(part: Columns, name: str, missing: list[bool]) -> None:
    if any(missing):
        raise ValueError(
            f"{part.path}: column {name!r} must have no missing or infinite value, "
            f"got {sum(missing)}, the first at {part.where(missing.index(True))}"
        )


def _one_hot(parts: list[list[str]], train: Columns, name: str) -> list[Tensor]:
    seen = sorted(set(parts[0]))
    if len(seen) > MOST_CATEGORIES:
        raise ValueError(
            f"{train.path}: column {name!r} must have at most {MOST_CATEGORIES} categories, got "
            f"{len(seen)}; is it a text (text={name!r}), or one to leave out (columns=...)?"
        )
    index = {value: position for position, value in enumerate(seen)}
    table = torch.eye(len(seen) + 1, len(seen), dtype=torch.float32)  # the last row is all zeros
    return [table[[index.get(value, len(seen)) for value in part]] for part in parts]

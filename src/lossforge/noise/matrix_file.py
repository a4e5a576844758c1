"""Reading a transition matrix from a CSV or .npy file; nothing in a file is ever run."""

import csv
from pathlib import Path

import torch
from torch import Tensor

from ..errors import SpecError, extra


def read_matrix(path: Path) -> tuple[Tensor, tuple[str, ...] | None]:
    """Read numbers in float64, and the names of the classes if the file has them.

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
            [cell.strip() for cell in line]
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
    """Take a header row and a first column of names off, if the file has both."""
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

"""All finished runs of a store in one small file, to be kept and compared with."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..files import write_atomically
from .packing import columns, encode, unpack
from .record import Grid, Record
from .records import read_grids, read_records

__all__ = ["differences", "pack", "unpack"]


def pack(store: Path, path: Path, *, grid: Grid | None = None) -> Grid:
    """Write the finished runs of a store into one file, gzip of JSON lines.

    Equal runs make equal bytes. `lossforge.benchmark.records.read_records` reads the file as it
    reads the folder, less the metrics that `unpack` tells of.

    Args:
        store: The folder that `lossforge bench` wrote.
        path: The file, such as results/digits.jsonl.gz.
        grid: What the runs are of, and which of them to keep in which order. By default all runs
            of the store, which must then be of one grid.

    Returns:
        The grid as the file knows it.
    """
    found = {record.id: record for record in read_records(store)}
    grid = grid or _whole(store, list(found))
    kept = [found[run] for run in grid.runs if run in found]
    if not kept:
        raise ValueError(f"there is no finished run of {grid.name} in {store}")
    write_atomically(path, encode(grid, kept))
    return grid


def _whole(store: Path, runs: Sequence[str]) -> Grid:
    """The grid of a store, with all runs that are planned or there."""
    grids = read_grids(store)
    names = list(dict.fromkeys(grid.name for grid in grids))
    if len(names) > 1:
        raise ValueError(f"store must be of one grid, {store} is of {', '.join(names)}")
    first = grids[0] if grids else Grid(store.name)
    planned = [run for grid in grids for run in grid.runs]
    return Grid(first.name, first.title, first.table, tuple(dict.fromkeys([*planned, *runs])))


def differences(path: Path, records: Sequence[Record]) -> list[str]:
    """What is not equal, bit for bit, between a file of runs and the same runs done again.

    Weights, accuracies, losses and the noise are compared, times and machines are not.

    Args:
        path: The file that `pack` wrote.
        records: The runs done again.

    Returns:
        A line for every run that is missing, new or other; nothing if all are equal.
    """
    kept = {record.id: record for record in unpack(path)[1]}
    again = {record.id: record for record in records}
    lines = [f"{_name(one)}: missing" for run, one in kept.items() if run not in again]
    lines += [f"{_name(one)}: not in {path.name}" for run, one in again.items() if run not in kept]
    for run, one in kept.items():
        changes = list(_changes(one, again[run])) if run in again else []
        if changes:
            lines.append(f"{_name(one)}: {', '.join(changes)}")
    return lines


def _name(record: Record) -> str:
    names = ("data", "loss", "noise", "seed")
    words = [f"{name} {record.spec[name]}" for name in names if name in record.spec]
    return f"{record.id} ({', '.join(words)})"


def _changes(one: Record, other: Record) -> Iterator[str]:
    if one.parameters != other.parameters:
        yield "other weights"
    for name in ("classes", "noise_rate", "failed"):
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            yield f"{name} {after!r} instead of {before!r}"
    before, after = dict(_flat(columns(one))), dict(_flat(columns(other)))
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            epoch = next(i for i in range(len(old)) if old[i] != new[i])
            yield f"{name} {new[epoch]} instead of {old[epoch]} in epoch {epoch + 1}"
        elif isinstance(old, list) and isinstance(new, list):
            yield f"{name} of {len(new)} epochs instead of {len(old)}"
        else:
            yield f"{name} {new} instead of {old}"


def _flat(kept: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested columns by one name each, such as "test top1"."""
    for name, value in kept.items():
        if isinstance(value, dict):
            yield from _flat(value, prefix if name == "tests" else f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value

"""Finished runs of a store in one small file, to keep and to compare with.

The file is gzip of JSON lines: a header with everything the runs share, then one line for each run.
"""

import gzip
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import write_atomically
from .integrity import sealed
from .records import (
    ARCHIVED,
    FEW_CLASSES,
    FITS,
    FORMAT,
    Grid,
    Record,
    read_grids,
    read_records,
    unpack,
)

__all__ = ["differences", "pack", "unpack"]

# bit-identity depends on these
CIRCUMSTANCES = ("device", "instructions", "kernel", "processes", "versions")


def pack(store: Path, path: Path, *, grid: Grid | None = None, earlier: Path | None = None) -> Grid:
    """Write the finished runs of a store into one file.

    Equal runs make equal bytes. `lossforge.benchmark.records.read_records` reads the file like the
    folder, without the metrics that `unpack` lists as dropped.

    Args:
        store: The folder that `lossforge bench` wrote.
        path: The file, such as results/digits.jsonl.gz.
        grid: The grid of the runs; its ids select and order them. By default all runs of the
            store, which must then belong to one grid.
        earlier: An archive whose runs are taken over where the store lacks them, so that a long
            grid can be done in parts.

    Returns:
        The grid as stored in the file.
    """
    found = {record.id: record for record in read_records(store)}
    grid = grid or _whole(store, list(found))
    taken, seconds = ({}, 0.0) if earlier is None else _taken_over(earlier, found)
    everything = found | taken
    kept = [everything[run] for run in grid.runs if run in everything]
    if not kept:
        raise ValueError(f"there is no finished run of {grid.name} in {store}")
    write_atomically(path, encode(grid, kept, seconds))
    return grid


def _taken_over(path: Path, found: Mapping[str, Record]) -> tuple[dict[str, Record], float]:
    """Return the archived runs that are not found again, and their part of the archive's time."""
    header, records = unpack(path)
    taken = {record.id: record for record in records if record.id not in found}
    return taken, header["seconds"] * len(taken) / len(records)


def _whole(store: Path, runs: Sequence[str]) -> Grid:
    """Describe the grid of a store, with all planned and all finished runs."""
    grids = read_grids(store)
    names = list(dict.fromkeys(grid.name for grid in grids))
    if len(names) > 1:
        raise ValueError(f"store must hold one grid, {store} holds {', '.join(names)}")
    first = grids[0] if grids else Grid(store.name)
    planned = [run for grid in grids for run in grid.runs]
    return Grid(first.name, first.title, first.table, tuple(dict.fromkeys([*planned, *runs])))


def encode(grid: Grid, records: Sequence[Record], seconds: float = 0.0) -> bytes:
    """Return the bytes of an archive; equal runs make equal bytes.

    Args:
        grid: The grid of the runs; its runs without a record count as unfinished.
        records: The finished runs, in the order of the grid.
        seconds: What those runs took whose records do not say it.
    """
    specs = [record.spec for record in records]
    abouts = [{k: r.about[k] for k in CIRCUMSTANCES if k in r.about} for r in records]
    done = {record.id for record in records}
    spec, circumstances = _shared(specs), _shared(abouts)
    header = {
        "format": FORMAT,
        "name": grid.name,
        "title": grid.title,
        "table": grid.table,
        "command": f"lossforge bench {grid.name}",
        "seconds": round(seconds + math.fsum(r.about.get("seconds", 0) for r in records), 1),
        "unfinished": [run for run in grid.runs if run not in done],
        "spec": spec,
        "about": circumstances,
    }
    lines: list[dict[str, Any]] = [header]
    for record, about in zip(records, abouts, strict=True):
        own = {name: getattr(record, name) for name in (*ARCHIVED, "loss_parameters")}
        own["spec"] = _without(record.spec, spec)
        own["about"] = _without(about, circumstances)
        if record.tested_as_given:
            own["tested_as_given"] = True
        lines.append(own | {"metrics": columns(record)})
    text = "".join(f"{_json(sealed(line))}\n" for line in lines)
    stream = io.BytesIO()
    # no time and no file name, so that equal content is equal bytes
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        packed.write(text.encode())
    return stream.getvalue()


def columns(record: Record) -> dict[str, Any]:
    """Select the metrics to keep, as lists over the epochs."""
    epochs = record.metrics
    kept: dict[str, Any] = {
        "loss": [epoch.get("loss") for epoch in epochs],
        "validation": [epoch.get("validation") for epoch in epochs],
        "tests": {
            test: {
                k: record.curve(test, k)
                for k in ("top1", "top5")
                if k == "top1" or record.classes > FEW_CLASSES
            }
            for test in record.tests
        },
    }
    return kept | {name: [epoch.get(name) for epoch in epochs] for name in FITS}


def _shared(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all tables have in common, also in nested tables."""
    found: dict[str, Any] = {}
    for key, value in (tables[0] if tables else {}).items():
        if any(key not in table for table in tables):
            continue
        values = [table[key] for table in tables]
        if len({_json(other) for other in values}) == 1:  # as text, 1 differs from 1.0
            found[key] = value
        elif all(isinstance(other, dict) for other in values):
            found[key] = _shared(values)
    return found


def _without(table: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a table that are not shared."""
    own: dict[str, Any] = {}
    for key, value in table.items():
        if key not in shared:
            own[key] = value
        elif _json(value) != _json(shared[key]):
            own[key] = _without(value, shared[key])
    return own


def _json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def differences(archived: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """Compare archived runs with repeated ones, bit for bit.

    Weights, accuracies, losses and the noise are compared; times and machines are not.

    Args:
        archived: The runs of an archive, see `unpack`.
        records: The repeated runs.

    Returns:
        A line for every run that is missing, new or different; nothing if all are equal.
    """
    kept = {record.id: record for record in archived}
    again = {record.id: record for record in records}
    lines = [f"{name_of(one)}: missing" for run, one in kept.items() if run not in again]
    lines += [f"{name_of(one)}: not archived" for run, one in again.items() if run not in kept]
    for run, one in kept.items():
        changes = list(_changes(one, again[run])) if run in again else []
        if changes:
            lines.append(f"{name_of(one)}: {', '.join(changes)}")
    return lines


def name_of(record: Record) -> str:
    """Name a run by its id and by what a reader knows of it."""
    names = ("data", "loss", "noise", "seed")
    words = [f"{name} {record.spec[name]}" for name in names if name in record.spec]
    return f"{record.id} ({', '.join(words)})"


def _changes(one: Record, other: Record) -> Iterator[str]:
    if one.parameters != other.parameters:
        yield "different weights"
    for name in ("classes", "noise_rate", "failed"):
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            yield f"{name} {after!r} instead of {before!r}"
    before, after = dict(_flat(columns(one))), dict(_flat(columns(other)))
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if name in FITS and old and _has_last_only(old):
            old, new = old[-1], (new or [None])[-1]
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            epoch = next(i for i in range(len(old)) if old[i] != new[i])
            yield f"{name} {new[epoch]} instead of {old[epoch]} in epoch {epoch + 1}"
        elif isinstance(old, list) and isinstance(new, list):
            yield f"{name} of {len(new)} epochs instead of {len(old)}"
        else:
            yield f"{name} {new} instead of {old}"


def _has_last_only(values: list[float | None]) -> bool:
    """Whether an archive of an earlier version kept the value of the last epoch only."""
    *rest, last = values
    return last is not None and not any(value is not None for value in rest)


def _flat(kept: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested columns, under names such as "test top1"."""
    for name, value in kept.items():
        if isinstance(value, dict):
            yield from _flat(value, prefix if name == "tests" else f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value

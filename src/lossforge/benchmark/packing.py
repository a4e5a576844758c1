"""Finished runs as the lines of one compressed file: what they share once, then each run."""

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .record import Grid, Record

FORMAT = "lossforge runs 1"
FEW_CLASSES = 10  # up to here top-5 says little
CIRCUMSTANCES = ("device", "processes", "versions")  # what bit-identity depends on
FINAL = ("noise_fit", "noise_recovered", "clean_fit")  # kept of the last epoch alone
NAMES = ("id", "classes", "noise_rate", "parameters", "failed")


def encode(grid: Grid, records: Sequence[Record]) -> bytes:
    """The content of such a file; equal runs make equal bytes.

    Args:
        grid: What the runs are of; its runs that are not among the records count as unfinished.
        records: The runs, in the order of the grid.
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
        "seconds": round(math.fsum(record.about.get("seconds", 0) for record in records), 1),
        "unfinished": [run for run in grid.runs if run not in done],
        "spec": spec,
        "about": circumstances,
    }
    lines: list[dict[str, Any]] = [header]
    for record, about in zip(records, abouts, strict=True):
        own = {name: getattr(record, name) for name in NAMES}
        own["spec"] = _without(record.spec, spec)
        own["about"] = _without(about, circumstances)
        lines.append(own | {"metrics": columns(record)})
    text = "".join(f"{_json(line)}\n" for line in lines)
    stream = io.BytesIO()
    # neither a time nor a name goes into the file
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        packed.write(text.encode())
    return stream.getvalue()


def unpack(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """Read a file that `lossforge.benchmark.archive.pack` wrote.

    Of every epoch it knows the loss and the accuracies on the tests and on held-out labels; how far
    the noise was learnt it knows of the last epoch. Times and transition matrices are not kept.

    Returns:
        What the runs share (name, title, table and command of the grid, seconds in all, ids of
        unfinished runs), and the runs.
    """
    try:
        content = gzip.decompress(path.read_bytes()).decode()
        header, *lines = [json.loads(line) for line in content.splitlines()]
        if header["format"] != FORMAT:
            raise ValueError(f"expected {FORMAT!r}, got {header['format']!r}")
        return header, [_record(header, line) for line in lines]
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of packed runs, or damaged: {error}") from None


def packed_grid(path: Path) -> Grid:
    """The grid that the runs of such a file are of."""
    header, records = unpack(path)
    runs = [*(record.id for record in records), *header["unfinished"]]
    return Grid(header["name"], header["title"], header["table"], tuple(runs))


def columns(record: Record) -> dict[str, Any]:
    """What is kept of a run's metrics: lists over the epochs, and values of the last epoch."""
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
    return kept | {name: epochs[-1].get(name) if epochs else None for name in FINAL}


def _record(header: Mapping[str, Any], line: dict[str, Any]) -> Record:
    return Record(
        **{name: line[name] for name in NAMES},
        spec=_merged(header["spec"], line["spec"]),
        about=_merged(header["about"], line["about"]),
        metrics=list(_epochs(line["metrics"])),
    )


def _epochs(kept: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    last = len(kept["loss"])
    for i, (loss, validation) in enumerate(zip(kept["loss"], kept["validation"], strict=True)):
        tests = {
            test: {"top1": lists["top1"][i], "top5": lists["top5"][i] if "top5" in lists else None}
            for test, lists in kept["tests"].items()
        }
        final = {name: kept[name] if i + 1 == last else None for name in FINAL}
        yield {"epoch": i + 1, "loss": loss, "validation": validation, "tests": tests, **final}


def _shared(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all tables have in common, also within tables in them."""
    found: dict[str, Any] = {}
    for key, value in (tables[0] if tables else {}).items():
        if any(key not in table for table in tables):
            continue
        values = [table[key] for table in tables]
        if len({_json(other) for other in values}) == 1:  # where 1 is not 1.0
            found[key] = value
        elif all(isinstance(other, dict) for other in values):
            found[key] = _shared(values)
    return found


def _without(table: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """What a table has beyond what is shared."""
    own: dict[str, Any] = {}
    for key, value in table.items():
        if key not in shared:
            own[key] = value
        elif _json(value) != _json(shared[key]):
            own[key] = _without(value, shared[key])
    return own


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The table that `_without` took apart, in the order in which a store writes it."""
    both = {**shared, **own}
    for key in shared.keys() & own.keys():
        both[key] = _merged(shared[key], own[key])
    return dict(sorted(both.items()))


def _json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

"""Reading finished runs, from a store or from an archive: plain data, nothing that trains."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from .record import Grid, K, Measure, Record

__all__ = [
    "Grid",
    "K",
    "Measure",
    "Record",
    "paper_results",
    "read_grids",
    "read_record",
    "read_records",
]

FORMAT = "lossforge runs 1"
ARCHIVED = ("id", "classes", "noise_rate", "parameters", "failed")  # fields kept as they are
FINAL = ("noise_fit", "noise_recovered", "clean_fit")  # kept for the last epoch only


def read_records(store: Path) -> list[Record]:
    """Read all finished runs of a store, in the order in which their grids list them.

    Runs that no grid file lists follow in the order in which they were begun. Unfinished runs are
    left out.

    Args:
        store: The folder that `lossforge bench` writes, or a file of its runs, packed.
    """
    if store.is_file():
        return unpack(store)[1]
    if not store.is_dir():
        raise FileNotFoundError(
            f"there is no folder {store}; `lossforge bench GRID --store {store}` would make it"
        )
    places: dict[str, int] = {}
    for grid in read_grids(store):
        for run in grid.runs:
            places.setdefault(run, len(places))
    records = [_read_record(path) for path in store.glob("*/record.json")]
    return sorted(records, key=_order(places))


def read_record(folder: Path) -> Record:
    """Read the record of one finished run from its folder."""
    return _read_record(folder / "record.json")


def _order(places: dict[str, int]) -> Callable[[Record], tuple[int, int, str]]:
    def key(record: Record) -> tuple[int, int, str]:
        spec = record.folder / "spec.json" if record.folder else None
        begun = spec.stat().st_mtime_ns if spec and spec.exists() else 0
        return places.get(record.id, len(places)), begun, record.id

    return key


def read_grids(store: Path) -> list[Grid]:
    """Read the files `grid-*.json` of a store; each holds the fields of `Grid`.

    Args:
        store: The folder, or a file of its runs, packed.
    """
    if store.is_file():
        return [_packed_grid(store)]
    grids = []
    for path in sorted(store.glob("grid-*.json")):
        content = _read_json(path)
        grids.append(
            Grid(
                name=str(content.get("name", path.stem.removeprefix("grid-"))),
                title=str(content.get("title") or ""),
                table=content.get("table"),
                runs=tuple(content.get("runs", ())),
            )
        )
    return grids


def paper_results(table: str) -> dict[str, Any] | None:
    """The paper's own numbers of one of its tables, or None if it has no such table.

    Args:
        table: E.g. "cifar10"; a preset's name such as "paper/cifar10" serves too.

    Returns:
        Its caption, its source, and its rows: one for every number, with the loss, the data, the
        noise, the test, k ("top1", "top5"), the mean and the standard deviation (or None).
    """
    source = resources.files(__package__) / "paper_results.json"
    if not source.is_file():
        return None
    content = json.loads(source.read_text(encoding="utf-8"))
    found = content["tables"].get(table.removeprefix("paper/"))
    if found is None:
        return None
    rows = [
        {"loss": row["loss"], **column, "mean": cell["mean"], "std": cell["std"]}
        for row in found["rows"]
        for column, cell in zip(found["columns"], row["cells"], strict=True)
    ]
    return {"caption": found["caption"], "source": content["source"], "rows": rows}


def _read_record(path: Path) -> Record:
    content = _read_json(path)
    about = path.with_name("about.json")
    names = ("id", "spec", "metrics", "classes", "noise_rate", "parameters")
    missing = [name for name in names if name not in content]
    if missing:
        raise ValueError(f"{path} is not a record: it has no {', '.join(missing)}")
    return Record(
        **{name: content[name] for name in names},
        about=_read_json(about) if about.exists() else {},
        transition=content.get("transition"),
        failed=content.get("failed"),
        folder=path.parent,
        loss_parameters=content.get("loss_parameters"),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: expected an object, got {type(content).__name__}")
    return content


def unpack(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """Read an archive, a file that `lossforge.benchmark.archive.pack` wrote.

    It holds the loss and the accuracies on test sets and held-out labels for every epoch, and how
    much of the noise was learnt for the last one. Times and transition matrices are dropped.

    Returns:
        The header (name, title, table and command of the grid, total seconds, ids of unfinished
        runs), and the runs.
    """
    try:
        content = gzip.decompress(path.read_bytes()).decode()
        header, *lines = [json.loads(line) for line in content.splitlines()]
        if header["format"] != FORMAT:
            raise ValueError(f"expected {FORMAT!r}, got {header['format']!r}")
        return header, [_record(header, line) for line in lines]
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of packed runs, or is damaged: {error}") from None


def _packed_grid(path: Path) -> Grid:
    """Read the description of the grid from an archive."""
    header, records = unpack(path)
    runs = [*(record.id for record in records), *header["unfinished"]]
    return Grid(header["name"], header["title"], header["table"], tuple(runs))


def _record(header: Mapping[str, Any], line: dict[str, Any]) -> Record:
    return Record(
        **{name: line[name] for name in ARCHIVED},
        spec=_merged(header["spec"], line["spec"]),
        about=_merged(header["about"], line["about"]),
        metrics=list(_epochs(line["metrics"])),
        loss_parameters=line.get("loss_parameters"),
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


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Join shared and own entries again, in the order in which a store writes them."""
    both = {**shared, **own}
    for key in shared.keys() & own.keys():
        both[key] = _merged(shared[key], own[key])
    return dict(sorted(both.items()))

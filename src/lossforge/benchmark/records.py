"""Finished runs as they are read back: plain data, nothing that trains."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from .packing import packed_grid, unpack
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
        return [packed_grid(store)]
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
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: expected an object, got {type(content).__name__}")
    return content

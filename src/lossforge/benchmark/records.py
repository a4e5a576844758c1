"""Finished runs as they are read back: plain data, nothing that trains."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

Measure = Literal["last", "mean10", "selected"]
K = Literal["top1", "top5"]


@dataclass(frozen=True)
class Record:
    """One finished run.

    Args:
        id: The hash of the spec, which is also the name of the run's folder.
        spec: What was run, see `lossforge.benchmark.spec.RunSpec`.
        metrics: One dictionary for every epoch.
        classes: How many there are.
        noise_rate: Share of the training labels that are wrong.
        parameters: SHA-256 of the final weights.
        about: When, where and how it was run; nothing that the result depends on.
        transition: How many samples of each true class (rows) were given each label, if kept.
        failed: Why training broke off, if it did; such a run has no accuracy.
        folder: Where the record lies, and beside it what else the run kept.
    """

    id: str
    spec: dict[str, Any]
    metrics: list[dict[str, Any]]
    classes: int
    noise_rate: float | None
    parameters: str
    about: dict[str, Any] = field(default_factory=dict)
    transition: list[list[float]] | None = None
    failed: str | None = None
    folder: Path | None = None

    @property
    def tests(self) -> list[str]:
        """Names of the test sets."""
        return list(self.metrics[-1]["tests"]) if self.metrics else []

    @property
    def selected_epoch(self) -> int | None:
        """The first epoch that is best on held-out noisy labels; None if none were held out."""
        held_out = [epoch.get("validation") for epoch in self.metrics]
        known = [value for value in held_out if value is not None]
        return 1 + held_out.index(max(known)) if known else None

    def curve(self, test: str = "test", k: K = "top1") -> list[float | None]:
        """Accuracy after every epoch in %."""
        return [epoch["tests"].get(test, {}).get(k) for epoch in self.metrics]

    def last(self, test: str = "test", k: K = "top1") -> float | None:
        """Accuracy after the last epoch in %; None if this test or k is not there."""
        return self.mean_last(1, test, k)

    def mean_last(self, epochs: int = 10, test: str = "test", k: K = "top1") -> float | None:
        """Mean accuracy of the last epochs in %, of all if there are fewer."""
        curve = [] if self.failed else self.curve(test, k)[-epochs:]
        known = [value for value in curve if value is not None]
        return math.fsum(known) / len(known) if known else None

    def selected(self, test: str = "test", k: K = "top1") -> float | None:
        """Accuracy after the epoch that held-out noisy labels select."""
        epoch = self.selected_epoch
        return None if epoch is None or self.failed else self.curve(test, k)[epoch - 1]

    def measure(self, name: Measure, test: str = "test", k: K = "top1") -> float | None:
        """One of the three accuracies that are reported."""
        if name == "mean10":
            return self.mean_last(10, test, k)
        return self.last(test, k) if name == "last" else self.selected(test, k)


@dataclass(frozen=True)
class Grid:
    """What a grid wrote down about itself: the order of its rows, and the table it makes.

    Args:
        name: As `lossforge bench` takes it.
        title: One line for people.
        table: The table of the paper that it repeats, if it does.
        runs: The ids of its runs, in the order of the spec.
    """

    name: str
    title: str = ""
    table: str | None = None
    runs: tuple[str, ...] = ()


def read_records(store: Path) -> list[Record]:
    """Read all finished runs of a store, in the order in which their grids list them.

    Runs that no grid file lists follow in the order in which they were begun. Unfinished runs are
    left out.

    Args:
        store: The folder that `lossforge bench` writes.
    """
    if not store.is_dir():
        raise FileNotFoundError(f"there is no folder {store}; `lossforge bench --help` makes one")
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
    """Read the files `grid-*.json` of a store; each holds the fields of `Grid`."""
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

"""What a store is to hold, and how long that will take."""

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from ..files import write_atomically
from .grid import GridSpec
from .spec import RunSpec
from .store import RunFolder


def save_grid(store: Path, grid: GridSpec, runs: Sequence[RunSpec]) -> None:
    """Write down which grid a store is about, for reports."""
    store.mkdir(parents=True, exist_ok=True)
    content = {
        "name": grid.name,
        "title": grid.title,
        "table": grid.table,
        "figure": grid.figure,
        "runs": [run.id for run in runs],
    }
    text = json.dumps(content, indent=1) + "\n"
    # another selection of the same grid is another file, and both are wanted
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    path = store / f"grid-{grid.name.replace('/', '-')}-{digest}.json"
    write_atomically(path, text.encode())


def estimate(store: Path, runs: Sequence[RunSpec], workers: int) -> timedelta | None:
    """The time that the unfinished runs will take, from the finished ones; None without any.

    Runs on another data set, network or number of epochs say nothing, so each kind is estimated
    from its own; a kind of which none is finished counts as the mean of the others.
    """
    spent: dict[tuple[str, str, object], list[float]] = {}
    left: list[tuple[str, str, object]] = []
    for run in runs:
        kind = (run.data, run.model, run.training.get("epochs"))
        folder = RunFolder(store, run)
        if not folder.finished:
            left.append(kind)
        elif (about := folder.path / "about.json").exists():
            spent.setdefault(kind, []).append(json.loads(about.read_text())["seconds"])
    if not spent:
        return None
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in spent.items()}
    usual = sum(means.values()) / len(means)
    total = sum(means.get(kind, usual) for kind in left)
    return timedelta(seconds=round(total / workers))

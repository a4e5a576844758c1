"""Which curves some results have."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..benchmark.records import Record
from .curves import Seeds, curves
from .group import Group, Panel, full_label, stem
from .results import Results

FEW = 2  # losses: of so few, settings are the lines and losses the panels


def curve_group(results: Results, kind: str, title: str, caption: str) -> Group:
    """Curves over the epochs, a panel for every setting.

    Args:
        results: The runs.
        kind: "accuracy", or what the metrics of an epoch call it.
        title: The heading.
        caption: What the curves are.
    """
    columns = results.columns
    if kind != "accuracy":  # which is a matter of the training samples, whatever the test
        columns = list({column.key: column for column in reversed(columns)}.values())[::-1]
    found: dict[tuple[str, str], Seeds] = {}
    used: set[str] = set()
    for column in columns:
        for loss in results.losses:
            runs = [run for run in results.runs(loss, column).values() if not run.failed]
            lines = {run.id: _line(run, kind, column.test) for run in runs}
            lines = {name: line for name, line in lines.items() if _is_curve(line)}
            if lines:
                found[loss, full_label(results, column)] = list(lines.values())
                used.update(lines)
    swap = len(results.losses) <= FEW < len(columns)
    labels = [full_label(results, column) for column in columns]
    rows, titles = (labels, results.losses) if swap else (results.losses, labels)
    panels = []
    for name in titles:
        keys = {row: (name, row) if swap else (row, name) for row in rows}
        lines_of = {row: found[key] for row, key in keys.items() if key in found}
        if lines_of:
            unit = "accuracy (%)" if kind == "accuracy" else "share (%)"
            draw = partial(_draw_curves, lines_of, name, unit, rows)
            panels.append(Panel(stem(kind, name), f"{title}: {name}", draw))
    drawn = {key[swap] for key in found}
    names = {row: place for place, row in enumerate(rows) if row in drawn}
    made_of = [record for record in results.records if record.id in used]
    return Group(kind, title, caption, panels, made_of, names)


def _draw_curves(lines: Any, title: str, unit: str, names: Sequence[str], legend: bool) -> Any:
    return curves(lines, title=title, ylabel=unit, names=names, legend=legend)


def _is_curve(line: Sequence[float | None]) -> bool:
    """Whether there is more than one value, unless there is but one epoch.

    Packed runs know the last value alone of what is not an accuracy.
    """
    known = [value for value in line if value is not None]
    return len(known) > 1 or (len(known) == 1 == len(line))


def _line(run: Record, kind: str, test: str) -> list[float | None]:
    if kind == "accuracy":
        return run.curve(test)
    return [epoch.get(kind) for epoch in run.metrics]

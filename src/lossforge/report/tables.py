"""Tables as in the paper: losses in rows, noise in columns, mean and spread over seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..benchmark.records import K, Measure
from .results import OF_THE_LOSS, Column, Results

MEASURES: dict[Measure, str] = {
    "last": "last epoch",
    "mean10": "mean of the last ten epochs",
    "selected": "epoch selected on held-out noisy labels",
}
DIGITS = 2
KS: dict[K, str] = {"top1": "top-1", "top5": "top-5"}


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Args:
        mean: Mean over the seeds in %; None if there is no run.
        std: Standard deviation over the seeds (n - 1); None for fewer than two.
        n: How many seeds there are.
        bold: Whether it is among the two best of its column.
        paper: Mean and standard deviation in the paper, where it has this cell.
    """

    mean: float | None
    std: float | None
    n: int
    bold: bool = False
    paper: tuple[float, float | None] | None = None


@dataclass(frozen=True)
class Table:
    """Accuracies in % on one data set.

    Args:
        data: Name of the data set.
        measure: Which accuracy of a run it shows.
        k: "top1" or "top5".
        losses: The rows.
        columns: The columns.
        cells: One row of cells for every loss.
        seeds: How many seeds a whole cell has.
        digits: How many are shown after the point; what reads the same is equally good.
        notes: What a reader must know about the comparison.
    """

    data: str
    measure: Measure
    k: K
    losses: Sequence[str]
    columns: Sequence[Column]
    cells: Sequence[Sequence[Cell]]
    seeds: int
    notes: Sequence[str] = ()
    digits: int = DIGITS

    @property
    def title(self) -> str:
        spread = f"mean ± std over {self.seeds} seeds" if self.seeds > 1 else "one seed"
        return f"{self.data}: {KS[self.k]} test accuracy (%), {MEASURES[self.measure]}, {spread}"


def tables(
    results: Results,
    measure: Measure = "last",
    paper: Mapping[str, Any] | None = None,
    *,
    digits: int = DIGITS,
) -> list[Table]:
    """All tables of some results: one for every data set, and one more where top-5 counts.

    Args:
        results: The runs.
        measure: Which accuracy of a run to show.
        paper: The paper's own numbers, as `lossforge.benchmark.records.paper_results` gives them.
        digits: How many to show after the point.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}")
    return [
        _table(results, data, measure, k, paper, digits)
        for data in results.data
        for k in results.ks(data)
    ]


def _table(
    results: Results,
    data: str,
    measure: Measure,
    k: K,
    paper: Mapping[str, Any] | None,
    digits: int,
) -> Table:
    columns = [column for column in results.columns if column.data == data]
    losses = [loss for loss in results.losses if any(results.runs(loss, c) for c in columns)]
    by_column = []
    for column in columns:
        cells = [_cell(results.values(loss, column, measure, k)) for loss in losses]
        bold = two_best(cells, digits)
        by_column.append(
            [
                Cell(cell.mean, cell.std, cell.n, marked, _published(paper, loss, column, k))
                for loss, cell, marked in zip(losses, cells, bold, strict=True)
            ]
        )
    rows = list(zip(*by_column, strict=True))
    notes = _notes(results, losses, columns)
    return Table(data, measure, k, losses, columns, rows, len(results.seeds), notes, digits)


def _cell(values: Mapping[int, float]) -> Cell:
    numbers = list(values.values())
    return Cell(
        mean=statistics.fmean(numbers) if numbers else None,
        std=statistics.stdev(numbers) if len(numbers) > 1 else None,
        n=len(numbers),
    )


def two_best(cells: Sequence[Cell], digits: int = DIGITS) -> list[bool]:
    """Which cells of a column are the two best, and those that read the same as the second.

    Only cells with as many seeds as the fullest one compete.
    """
    most = max((cell.n for cell in cells), default=0)
    shown = [
        round(cell.mean, digits) if cell.mean is not None and cell.n == most else None
        for cell in cells
    ]
    ranked = sorted((value for value in shown if value is not None), reverse=True)
    if len(ranked) < 2:
        return [False] * len(cells)
    return [value is not None and value >= ranked[1] for value in shown]


def _published(
    paper: Mapping[str, Any] | None, loss: str, column: Column, k: K
) -> tuple[float, float | None] | None:
    wanted = {"loss": loss, "noise": column.noise, "data": column.data, "test": column.test, "k": k}
    for row in (paper or {}).get("rows", ()):
        if all(row[name] == value for name, value in wanted.items()):
            return row["mean"], row["std"]
    return None


def _notes(results: Results, losses: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """What differs between the losses beside the loss, and which runs broke off."""
    notes = [
        f"{loss}, {column.label}, seed {seed} broke off: {run.failed}"
        for loss in losses
        for column in columns
        for seed, run in results.runs(loss, column).items()
        if run.failed
    ]
    return [*dict.fromkeys(notes), *_decays(results, losses, columns)]


def _decays(results: Results, losses: Sequence[str], columns: Sequence[Column]) -> list[str]:
    decays: dict[str, list[str]] = {}
    for loss in losses:
        runs = [run for column in columns for run in results.runs(loss, column).values()]
        training = runs[0].spec.get("training", {})
        text = ", ".join(f"{name} {training[name]:g}" for name in OF_THE_LOSS if name in training)
        decays.setdefault(text, []).append(loss)
    if len(decays) < 2:
        return []
    usual = max(decays, key=lambda text: len(decays[text]))
    return [
        f"{', '.join(names)}: trained with {text} (the others: {usual})"
        for text, names in decays.items()
        if text != usual
    ]

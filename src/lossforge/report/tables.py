"""Tables of accuracies, differences and ranks: first as numbers, then as texts in sheets."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..benchmark.records import K, Measure
from .results import OF_THE_LOSS, Column, Results
from .statistics import Difference, Ranking

MEASURES: dict[Measure, str] = {
    "last": "last epoch",
    "mean10": "mean of the last ten epochs",
    "selected": "epoch selected on held-out noisy labels",
}
DIGITS = 2
KS: dict[K, str] = {"top1": "top-1", "top5": "top-5"}


@dataclass(frozen=True)
class Cell:
    """One accuracy of a table.

    Args:
        mean: Mean over the seeds in %; None without runs.
        std: Standard deviation over the seeds (n - 1); None for fewer than two.
        n: Number of seeds.
        bold: Whether it is among the two best of its column.
        paper: Mean and standard deviation in the paper, if it has this cell.
    """

    mean: float | None
    std: float | None
    n: int
    bold: bool = False
    paper: tuple[float, float | None] | None = None


@dataclass(frozen=True)
class AccuracyTable:
    """Accuracies in % on one data set: losses in rows, settings in columns.

    Args:
        data: Name of the data set.
        measure: Which accuracy of a run it shows.
        k: "top1" or "top5".
        losses: The rows.
        columns: The columns.
        cells: One row of cells for every loss.
        seeds: Number of seeds of a complete cell.
        digits: Digits shown after the point; accuracies that read the same rank the same.
        notes: Remarks on the comparison.
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


def accuracy_tables(
    results: Results,
    measure: Measure = "last",
    paper: Mapping[str, Any] | None = None,
    *,
    digits: int = DIGITS,
) -> list[AccuracyTable]:
    """Make one table per data set, and another of top-5 accuracies if there are many classes.

    Args:
        results: The runs.
        measure: Which accuracy of a run to show.
        paper: The paper's own numbers, from `lossforge.benchmark.records.paper_results`.
        digits: Digits to show after the point.
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
) -> AccuracyTable:
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
    seeds = len(results.seeds)
    return AccuracyTable(data, measure, k, losses, columns, rows, seeds, notes, digits)


def _cell(values: Mapping[int, float]) -> Cell:
    numbers = list(values.values())
    return Cell(
        mean=statistics.fmean(numbers) if numbers else None,
        std=statistics.stdev(numbers) if len(numbers) > 1 else None,
        n=len(numbers),
    )


def two_best(cells: Sequence[Cell], digits: int = DIGITS) -> list[bool]:
    """Mark the two best cells of a column, and those that read the same as the second.

    Only cells with the most seeds compete.
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
    """Note runs that failed, and training settings that differ between the losses."""
    notes = [
        f"{loss}, {column.label}, seed {seed} failed: {run.failed}"
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


@dataclass(frozen=True)
class Field:
    """One field of a sheet.

    Args:
        text: The main text.
        bold: Whether it is among the best.
        aside: A secondary text, such as the paper's number.
        value: The sort key; None sorts last.
        tone: "better", "worse", "level", "unknown" or nothing.
        code: Whether the text is code, which Markdown sets as such.
    """

    text: str
    bold: bool = False
    aside: str = ""
    value: float | None = None
    tone: str = ""
    code: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of texts, for any format.

    Args:
        title: One line that describes the numbers.
        head: Names of the columns, including that of the row names.
        names: Names of the rows.
        rows: The fields of every row.
        notes: Sentences below the table.
    """

    title: str
    head: Sequence[str]
    names: Sequence[str]
    rows: Sequence[Sequence[Field]]
    notes: Sequence[str] = ()

    @property
    def has_bold(self) -> bool:
        return any(field.bold for row in self.rows for field in row)


def accuracy_sheet(table: AccuracyTable) -> Sheet:
    """Write accuracies as texts."""
    return Sheet(
        title=table.title,
        head=["loss", *(column.label for column in table.columns)],
        names=table.losses,
        rows=[[_accuracy(cell, table.seeds, table.digits) for cell in row] for row in table.cells],
        notes=table.notes,
    )


def _accuracy(cell: Cell, seeds: int, digits: int) -> Field:
    text = _number(cell.mean, cell.std, digits)
    if cell.n != seeds:
        text += f" ({cell.n}/{seeds})"
    aside = f"paper {_number(*cell.paper, digits)}" if cell.paper else ""
    return Field(text, cell.bold, aside, cell.mean)


def _number(mean: float | None, std: float | None, digits: int) -> str:
    if mean is None:
        return "–"
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"


def difference_sheet(results: Results, other: str, differences: Iterable[Difference]) -> Sheet:
    """Write differences to one loss: losses in rows, settings in columns."""
    title = f"Difference to {other} (percentage points), with 95 % interval over paired seeds"
    return _differences(results, title, differences, lambda difference: "")


def best_sheet(results: Results, differences: Iterable[Difference]) -> Sheet:
    """Write differences to the best other loss of each setting."""
    title = "Difference to the best other loss (percentage points), with 95 % interval"
    return _differences(
        results, title, differences, lambda difference: f"against {difference.other}"
    )


def _differences(
    results: Results,
    title: str,
    differences: Iterable[Difference],
    aside: Callable[[Difference], str],
) -> Sheet:
    found = {(one.loss, one.column): one for one in differences}
    names = [loss for loss in results.losses if any(key[0] == loss for key in found)]
    told = any(one.verdict in ("better", "worse") for one in found.values())
    rows = []
    for loss in names:
        row = [found.get((loss, column)) for column in results.columns]
        fields = [_difference(one, aside(one)) if one else Field("–") for one in row]
        rows.append([*_counts(row), *fields] if told else fields)
    pairs = sorted({one.n for one in found.values()})
    several = len(results.data) > 1
    head = [f"{c.data}: {c.label}" if several else c.label for c in results.columns]
    head = ["better", "worse", *head] if told else head
    return Sheet(title, ["loss", *head], names, rows, _pair_notes(pairs, told))


def _counts(row: Sequence[Difference | None]) -> list[Field]:
    """Count the settings in which an interval lies above 0, and in which it lies below."""
    verdicts = [one.verdict for one in row if one]
    return [
        Field(str(count := verdicts.count(verdict)), value=count) for verdict in ("better", "worse")
    ]


def _pair_notes(pairs: Sequence[int], told: bool) -> list[str]:
    """Note how many pairs there are and what is counted.

    Args:
        pairs: All numbers of pairs in increasing order.
        told: Whether any interval lies on one side of 0.
    """
    if not pairs:
        return []
    least, most = pairs[0], pairs[-1]
    notes = [f"n = {least} pairs" if least == most else f"n = {least} to {most} pairs"]
    if least < 2:
        notes.append("a single pair has no interval")
    if told:
        return [*notes, "better, worse: settings whose interval lies above 0, below 0"]
    return [*notes, "every interval contains 0"] if most > 1 else notes


def _difference(difference: Difference, aside: str) -> Field:
    text = f"{difference.mean:+.2f}"
    if difference.low is not None:
        text += f" [{difference.low:+.2f}, {difference.high:+.2f}]"
    return Field(text, aside=aside, value=difference.mean, tone=difference.verdict)


def rank_sheet(ranking: Ranking) -> Sheet:
    """Write mean ranks, with the outcome of the tests."""
    if ranking.p is None:
        verdict = "all losses are tied in every setting"
    else:
        verdict = f"Friedman: chi-squared {ranking.statistic:.2f}, p = {ranking.p:.2g}"
    notes = [
        verdict,
        f"Nemenyi: differences in mean rank below {ranking.critical:.2f} are not significant (5 %)",
        "the tests assume independent settings, which settings of one data set are not quite",
    ]
    if ranking.left_out:
        notes.append(f"not ranked because a setting is missing: {', '.join(ranking.left_out)}")
    return Sheet(
        f"Mean rank over {ranking.settings} settings (1 is best)",
        ["loss", "mean rank"],
        list(ranking.ranks),
        [[Field(f"{rank:.2f}", value=rank)] for rank in ranking.ranks.values()],
        notes,
    )

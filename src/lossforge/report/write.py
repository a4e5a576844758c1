"""A report: its tables and statistics, and the files it is written to."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import style
from ..benchmark.records import Grid, Measure, paper_results, read_grids, read_records
from . import formats
from .page import Section, page
from .panels import figure_groups
from .results import Results
from .statistics import differences_to, differences_to_best, rank_losses
from .tables import (
    MEASURES,
    AccuracyTable,
    Sheet,
    accuracy_sheet,
    accuracy_tables,
    best_sheet,
    difference_sheet,
    rank_sheet,
)

BASELINE = "CE"  # the default loss to compare with, if it was run


@dataclass(frozen=True)
class Report:
    """Tables and statistics of a store.

    Args:
        results: The runs.
        grids: The grids the runs belong to.
        measure: Which accuracy of a run is compared.
        tables: The accuracies.
        differences: Paired differences to the baseline and to the best loss.
        ranking: Ranks over the settings; empty if there are too few.
        paper: The paper's own numbers, if the runs repeat one of its tables.
        damaged: A line for every damaged file, which is left out.
    """

    results: Results
    grids: Sequence[Grid]
    measure: Measure
    tables: Sequence[AccuracyTable]
    differences: Sequence[Sheet]
    ranking: Sequence[Sheet]
    paper: dict[str, Any] | None
    damaged: Sequence[str] = ()

    @property
    def sheets(self) -> list[Sheet]:
        return [*map(accuracy_sheet, self.tables), *self.differences, *self.ranking]

    @property
    def unfinished(self) -> int:
        """Number of runs of the grids that are not finished."""
        planned = {run for grid in self.grids for run in grid.runs}
        return len(planned - {record.id for record in self.results.records})

    @property
    def unsealed(self) -> int:
        """Number of runs of earlier versions, which carry no hash of their contents."""
        return sum(not record.sealed for record in self.results.records)

    def text(self, form: formats.Format, width: int | None = None) -> str:
        """Write all tables in one format; with a terminal's width, the best are bold."""
        if form == "csv":
            return formats.table_csv(self.tables)
        if form == "terminal":
            return "\n\n\n".join(formats.terminal(sheet, width) for sheet in self.sheets) + "\n"
        writers = {"markdown": formats.markdown, "latex": formats.latex}
        if form not in writers:
            raise ValueError(f"format must be one of {', '.join(formats.FORMATS)}, got {form!r}")
        return "\n\n".join(writers[form](sheet) for sheet in self.sheets) + "\n"


def make_report(store: Path, *, baseline: str | None = None, measure: Measure = "last") -> Report:
    """Read finished runs and compare their losses; nothing is trained.

    Damaged runs are left out, and named in `damaged`.

    Args:
        store: The folder that `lossforge bench` writes, or an archive of its runs.
        baseline: The loss that the others are compared with; by default CE, or else the first.
        measure: "last", "mean10" or "selected".
    """
    damaged: list[str] = []
    records = read_records(store, on_damage=damaged.append)
    grids = read_grids(store, on_damage=damaged.append)
    if not records:
        raise FileNotFoundError("; ".join([f"there is no finished run in {store}", *damaged]))
    results = Results(records)
    paper = _paper(grids)
    other = baseline or (BASELINE if BASELINE in results.losses else results.losses[0])
    to_other = differences_to(results, other, measure)
    to_best = differences_to_best(results, measure)
    differences = []
    if to_other:
        differences.append(difference_sheet(results, other, to_other))
    if to_best:
        differences.append(best_sheet(results, to_best))
    ranking = rank_losses(results, measure)
    return Report(
        results,
        grids,
        measure,
        accuracy_tables(results, measure, paper),
        differences,
        [rank_sheet(ranking)] if ranking else [],
        paper,
        damaged,
    )


def _paper(grids: Sequence[Grid]) -> dict[str, Any] | None:
    """Read the paper's numbers, if a grid repeats one of its tables."""
    names = {grid.table for grid in grids if grid.table}
    found = [results for name in sorted(names) if (results := paper_results(name))]
    rows = [row for results in found for row in results["rows"]]
    return {**found[0], "rows": rows} if found else None


def write_report(report: Report, out: Path, command: str) -> Path:
    """Write the page, the tables in every format, and the figures as SVG and PNG.

    Args:
        report: The report.
        out: The folder to write to, created if missing.
        command: The command that makes this report, shown on the page.

    Returns:
        The path of the page.
    """
    figures = out / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    endings: dict[formats.Format, str] = {
        "terminal": "txt",
        "markdown": "md",
        "latex": "tex",
        "csv": "csv",
    }
    for form, ending in endings.items():
        (out / f"tables.{ending}").write_text(report.text(form), encoding="utf-8")
    groups = figure_groups(report.results, report.measure)
    for group in groups:
        for panel in group.panels:
            style.save(panel.draw(True), figures / panel.name)
    text = page(
        report.results,
        _sections(report),
        groups,
        command=command,
        grids=report.grids,
        measure=report.measure,
        source=report.paper["source"] if report.paper else "",
    )
    path = out / "index.html"
    path.write_text(text, encoding="utf-8")
    return path


def _sections(report: Report) -> list[Section]:
    others: list[Measure] = [name for name in MEASURES if name != report.measure]
    folded = [
        table for name in others for table in accuracy_tables(report.results, name, report.paper)
    ]
    known = [t for t in folded if any(cell.n for row in t.cells for cell in row)]
    sections = [
        Section(
            "results",
            "Results",
            "Bold: the two best of each column. A count in brackets is the number of seeds.",
            [accuracy_sheet(table) for table in report.tables],
            [accuracy_sheet(table) for table in known],
        )
    ]
    if report.differences:
        text = (
            "For each seed, all losses had the same initial weights, noisy labels and batch order, "
            "so runs are compared in pairs. Green: the interval lies above 0; red: below."
        )
        sections.append(Section("differences", "Differences", text, report.differences))
    if report.ranking:
        sections.append(Section("ranking", "Ranks over all settings", "", report.ranking))
    return sections

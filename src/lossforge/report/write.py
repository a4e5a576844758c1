"""A report: its tables and statistics, and the files it is written to."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import style
from ..benchmark.records import Grid, Measure, paper_results, read_grids, read_records
from ..text import printable
from . import formats
from .finding import Finding, find, seeds_text
from .page import Section, page
from .panels import figure_groups
from .results import Results
from .statistics import Difference, check_loss, differences_to, differences_to_best, rank_losses
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
ENDINGS: dict[formats.Format, str] = {
    "csv": "csv",
    "latex": "tex",
    "markdown": "md",
    "terminal": "txt",
}


@dataclass(frozen=True)
class Report:
    """Tables and statistics of a store.

    Args:
        results: The runs.
        grids: The grids the runs belong to.
        measure: Which accuracy of a run is compared.
        finding: What the runs show, in sentences.
        strong: Losses whose curves are emphasised.
        tables: The accuracies.
        ranking: Ranks over the settings; empty if there are too few.
        to_baseline: Paired differences to the baseline.
        differences: Tables of paired differences to the baseline and to the best loss.
        paper: The paper's own numbers, if the runs repeat one of its tables.
        damaged: A line for every damaged file, which is left out.
    """

    results: Results
    grids: Sequence[Grid]
    measure: Measure
    finding: Finding
    strong: Sequence[str]
    tables: Sequence[AccuracyTable]
    ranking: Sequence[Sheet]
    to_baseline: Sequence[Difference]
    differences: Sequence[Sheet]
    paper: dict[str, Any] | None
    damaged: Sequence[str] = ()

    @property
    def sheets(self) -> list[Sheet]:
        return [*map(accuracy_sheet, self.tables), *self.ranking, *self.differences]

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
        """Write all tables in one format; with a terminal's width, they fit it."""
        if form == "csv":
            return formats.table_csv(self.tables)
        if form == "terminal":
            return "\n\n\n".join(formats.terminal(sheet, width) for sheet in self.sheets) + "\n"
        writers = {"markdown": formats.markdown, "latex": formats.latex}
        if form not in writers:
            raise ValueError(f"format must be one of {', '.join(formats.FORMATS)}, got {form!r}")
        return "\n\n".join(writers[form](sheet) for sheet in self.sheets) + "\n"

    def closing(self, width: int | None = None) -> list[str]:
        """Say what was seen, how sure it is, and what to try next, a line each.

        Args:
            width: Width of the terminal, if the output is one: longer lines are broken.
        """
        found = self.finding
        sure = " ".join(part for part in (found.certainty, found.hint and f"{found.hint}.") if part)
        seeds = f"--seeds {seeds_text(found.seeds)}" if found.seeds else ""
        more = f"the same `lossforge bench` with {seeds} adds to these runs; " if seeds else ""
        own = "`lossforge audit FILE --label COLUMN` looks for wrong labels in your own data."
        lines = {
            "seen": found.sentence,
            **({"note": found.caveat} if found.caveat else {}),
            "sure": sure or "there is no other loss to compare with.",
            "next": more + own,
        }
        return [
            formats.wrapped(f"{name}  {printable(text)}", width, " " * 6)
            for name, text in lines.items()
        ]


def make_report(
    store: Path,
    *,
    baseline: str | None = None,
    measure: Measure = "last",
    highlight: Sequence[str] = (),
) -> Report:
    """Read finished runs and compare their losses; nothing is trained.

    Damaged runs are left out, and named in `damaged`.

    Args:
        store: The folder that `lossforge bench` writes, or an archive of its runs.
        baseline: The loss that the others are compared with; by default CE, or else the first.
        measure: "last", "mean10" or "selected".
        highlight: Losses whose curves are emphasised beside the best, CE and the baseline.
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
    finding = find(results, ranking, other, to_other, measure)
    return Report(
        results,
        grids,
        measure,
        finding,
        _strong(results, [*finding.leaders, other, BASELINE], highlight),
        accuracy_tables(results, measure, paper),
        [rank_sheet(ranking)] if ranking else [],
        to_other,
        differences,
        paper,
        damaged,
    )


def _strong(results: Results, usual: Sequence[str], highlight: Sequence[str]) -> list[str]:
    """Choose the losses to emphasise, those that the user names among them."""
    for name in highlight:
        check_loss(results, name)
    return [loss for loss in results.losses if loss in (*usual, *highlight)]


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
    for form, ending in ENDINGS.items():
        (out / f"tables.{ending}").write_text(report.text(form), encoding="utf-8")
    groups = figure_groups(
        report.results,
        report.measure,
        strong=report.strong,
        differences=report.to_baseline,
    )
    for group in groups:
        for panel in group.panels:
            style.save(panel.draw(True), figures / panel.name)
    text = page(
        report.results,
        report.finding,
        _sections(report),
        groups,
        command=command,
        files=[f"tables.{ending}" for ending in ENDINGS.values()],
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
    text = "Bold: the two best of each column. A count in brackets is the number of seeds."
    sheets = [accuracy_sheet(table) for table in report.tables]
    others_folded = {"The same tables for other epochs": [accuracy_sheet(table) for table in known]}
    sections = [Section("results", "Results", text, sheets, others_folded)]
    if report.differences:
        folded_sheets = {"The same as tables": report.differences}
        sections.append(Section("differences", "Differences", "", [], folded_sheets, "forest"))
    if report.ranking:
        sections.insert(
            0, Section("ranks", "Ranks", "", [], {"As a table": report.ranking}, "ranks")
        )
    return sections

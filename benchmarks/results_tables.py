"""The tables of the page: accuracies, differences, ranks."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from results_claims import standing_sentence, to_best_other
from results_data import (
    MARK,
    OURS,
    PAGE_MEASURES,
    WORDS,
    Archive,
    Figures,
    bracketed,
    folded,
    listed,
    paper_rows,
    provisional,
    results_of,
    subsets,
)

from lossforge.report.figures import ranks
from lossforge.report.formats import markdown
from lossforge.report.results import Results
from lossforge.report.statistics import Ranking, rank_losses
from lossforge.report.tables import Field, Sheet, accuracy_sheet, accuracy_tables

DIGITS = 1


def accuracy_lines(results: Results, paper: Mapping[str, Any] | None = None) -> list[str]:
    """Write tables of the last and of the selected epoch, where there are any."""
    lines = []
    for measure in PAGE_MEASURES:
        shown = paper if measure == "last" else None
        for table in accuracy_tables(results, measure, shown, digits=DIGITS):
            if table.k == "top1" and any(cell.n for row in table.cells for cell in row):
                sheet = accuracy_sheet(table)
                # the notes concern the runs and would be the same below both tables
                lines += [markdown(sheet if measure == "last" else replace(sheet, notes=())), ""]
    return lines


def difference_sheet(results: Results) -> Sheet | None:
    """Compare BEF and BQF with the best of the others: settings in rows."""
    found = {
        (loss, measure): {d.column: d for d in to_best_other(results, loss, measure)}
        for measure in PAGE_MEASURES
        for loss in OURS
        if loss in results.losses
    }
    found = {key: differences for key, differences in found.items() if differences}
    if not found:
        return None
    rows = []
    for column in results.columns:
        row = []
        for differences in found.values():
            one = differences.get(column)
            text = bracketed(one.mean, one.low, one.high) if one else "–"
            row.append(Field(text, aside=f"against {one.other}" if one else ""))
        rows.append(row)
    pairs = sorted({one.n for differences in found.values() for one in differences.values()})
    count = str(pairs[0]) if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
    notes = [
        f"Mean difference in points and its 95 % t interval over {count} paired seeds"
        f"{' (a single pair has no interval)' if pairs[0] < 2 else ''}. The best "
        f"other loss has the highest mean of all but {listed(OURS)}; it is chosen after the fact, "
        "which favours it."
    ]
    head = ["setting", *(f"{loss}, {WORDS[measure]}" for loss, measure in found)]
    names = [column.label for column in results.columns]
    return Sheet(
        f"{results.data[0]}: BEF and BQF minus the best other loss", head, names, rows, notes
    )


def data_section(archive: Archive, note: str = "") -> list[str]:
    """Write the section of one data set."""
    results = results_of(archive.records)
    lines = [f"## {archive.name}: {archive.header['title']}", "", *([note, ""] if note else [])]
    lines += [*provisional(archive), standing_sentence(results), ""]
    return [*lines, *_folded_tables(results)]


def _folded_tables(results: Results, paper: Mapping[str, Any] | None = None) -> list[str]:
    sheet = difference_sheet(results)
    differences = [markdown(sheet), ""] if sheet else []
    return folded("All accuracies and differences", [*accuracy_lines(results, paper), *differences])


def cifar_section(archive: Archive) -> list[str]:
    """Write the section of CIFAR-10 at reduced scale, beside the paper's numbers."""
    results = results_of(archive.records)
    training = archive.records[0].spec["training"]
    lines = [
        "## CIFAR-10 at reduced scale",
        "",
        f"{archive.header['title']}; {training['epochs']} epochs, {len(results.losses)} losses, "
        f"{len(results.seeds)} seeds. **This is not the protocol of the paper.** The paper's own "
        "numbers at full scale (50,000 images at full size, a network four times as wide, 120 "
        "epochs) are in brackets, for orientation: the scales differ, so neither the numbers nor "
        "the order of the losses should be expected to agree. These settings do not count in the "
        "mean ranks, because only some of the losses were run.",
        "",
        *provisional(archive),
        standing_sentence(results),
        "",
    ]
    return [*lines, *_folded_tables(results, {"rows": paper_rows()})]


def rank_section(results: Results) -> tuple[list[str], Figures]:
    """Write the section of mean ranks, with figures for the last epoch by file name."""
    found: dict[tuple[str, str], Ranking] = {}
    for measure in PAGE_MEASURES:
        for name, part in subsets(results).items():
            ranking = rank_losses(part, measure)
            if ranking:
                found[measure, name] = ranking
    if not found:
        return [], {}
    first = found.get(("last", "all")) or next(iter(found.values()))
    losses = [*first.ranks, *(loss for loss in results.losses if loss not in first.ranks)]
    columns = []
    for ranking in found.values():
        best = sorted(ranking.ranks.values())[:2][-1]
        columns.append([_rank(ranking.ranks.get(loss), best) for loss in losses])
        columns[-1].append(Field(f"{ranking.critical:.1f}"))
        columns[-1].append(Field("–" if ranking.p is None else f"{ranking.p:.1g}"))
    names = [*losses, "critical difference (Nemenyi)", "p (Friedman)"]
    rows = list(zip(*columns, strict=True))
    head = ["loss", *(f"{name} ({r.settings}), {WORDS[m]}" for (m, name), r in found.items())]
    sheet = Sheet("Mean rank over settings (1 is best)", head, names, rows, _rank_notes(found))
    figures = {
        f"results-ranks-{name}.svg": partial(ranks, ranking)
        for (measure, name), ranking in found.items()
        if measure == "last" and name in ("held-out", "all")
    }
    lines = ["## Mean ranks", ""]
    for name in figures:
        part = name.removeprefix("results-ranks-").removesuffix(".svg")
        lines += [f"![Mean ranks, {part} settings, last epoch](images/{name})", ""]
    return [
        *lines,
        "Losses whose bars do not overlap differ significantly (Nemenyi's test, 5 %).",
        "",
        *folded("All mean ranks", [markdown(sheet), ""]),
    ], figures


def _rank(rank: float | None, best: float) -> Field:
    return Field("–") if rank is None else Field(f"{rank:.1f}", bold=rank <= best, value=rank)


def _rank_notes(found: Mapping[tuple[str, str], Ranking]) -> list[str]:
    left = {loss for ranking in found.values() for loss in ranking.left_out}
    return [
        "The number of settings is in brackets. Differences in mean rank below the critical "
        "difference are not significant (5 %). Both tests assume independent settings, which "
        "settings of one data set are not quite.",
        *([f"A dash: a setting is missing ({', '.join(sorted(left))})."] if left else []),
    ]


def mark_note() -> str:
    """Explain the mark, once for the page."""
    return (
        f"{MARK}: held out of every search for the defaults of BEF and BQF. Bold: the two best of "
        "a column. ± is the standard deviation over seeds. A count in brackets is the number of "
        "seeds, where some are missing."
    )

"""The section on more than 150 classes: settings that test the rule, and those of its search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from results_data import (
    MANY,
    MANY_SEARCH,
    MARK,
    OURS,
    Archive,
    folded,
    listed,
    provisional,
    results_of,
    signed,
)
from results_tables import accuracy_lines

from lossforge.benchmark.records import Record
from lossforge.report.results import Column, Results, noise_label
from lossforge.report.statistics import differences_to

FORMER, RIVAL = "{} with BR", "CEeps+MAE"


def many_section(archives: Mapping[str, Archive]) -> list[str]:
    """Write the section; nothing without runs of the held-out settings."""
    if MANY not in archives:
        return []
    archive = archives[MANY]
    results = by_classes(archive.records, MARK)
    lines = [
        "## More than 150 classes",
        "",
        "Beyond 150 classes BEF and BQF have a bounded cosine in place of binary reduction "
        '([how the rule was found](defaults.md)). "with BR" are the former defaults, "cosine" is '
        "the first candidate, with beta = -1.5. The settings were fixed before any run, and the "
        "rule was chosen on others.",
        "",
        *provisional(archive),
        *(f"- {sentence}" for sentence in comparisons(results)),
        "",
        *folded("All accuracies on held-out settings", accuracy_lines(results)),
    ]
    if MANY_SEARCH in archives:
        searched = by_classes(archives[MANY_SEARCH].records)
        lines += folded("The settings of the search", accuracy_lines(searched))
    return lines


def by_classes(records: Sequence[Record], mark: str = "") -> Results:
    """Group runs; label settings with the number of classes, and with a mark."""
    results = results_of(records)
    columns = [replace(c, label=f"{_label(results, c)} {mark}".strip()) for c in results.columns]
    return results.narrow(columns=columns)


def _label(results: Results, column: Column) -> str:
    runs = [run for loss in results.losses for run in results.runs(loss, column).values()]
    return f"{runs[0].classes:,} classes, {noise_label(column.noise)}"


def comparisons(results: Results) -> list[str]:
    """Compare BEF and BQF with their former defaults and with a strong loss of others."""
    sentences = []
    for loss in OURS:
        parts = [
            part
            for other in (FORMER.format(loss), RIVAL)
            if {loss, other} <= set(results.losses) and (part := _against(results, loss, other))
        ]
        if parts:
            sentences.append(f"{loss} is {listed(parts)}.")
    return sentences


def _against(results: Results, loss: str, other: str) -> str:
    """Count the settings in which a loss is ahead of another, over the seeds that both have."""
    found = differences_to(results.narrow(losses=[loss, other]), other)
    if not found:
        return ""
    ahead = sum(one.mean > 0 for one in found)
    above, below = (sum(one.verdict == word for one in found) for word in ("better", "worse"))
    means = [one.mean for one in found]
    return (
        f"ahead of {other} in {ahead} of {len(found)} settings (mean differences from "
        f"{signed(min(means))} to {signed(max(means))} points; the 95 % interval is above 0 in "
        f"{above} and below 0 in {below})"
    )

"""The section on more than 150 classes: settings that test the rule, and those of its search."""

from collections.abc import Callable, Mapping, Sequence
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
from lossforge.report.statistics import Difference, differences_to

FORMER, RIVAL = "{} with BR", "CEeps+MAE"
HEADING, ANCHOR = "More than 150 classes", "more-than-150-classes"


def many_section(archives: Mapping[str, Archive]) -> list[str]:
    """Write the section; nothing without runs of the held-out settings."""
    if MANY not in archives:
        return []
    archive = archives[MANY]
    results = by_classes(archive.records, MARK)
    lines = [
        f"## {HEADING}",
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
        lines += folded(
            "The settings of the search, repeated after the choice", accuracy_lines(searched)
        )
    return lines


def by_classes(records: Sequence[Record], mark: str = "") -> Results:
    """Group runs; label settings with the number of classes, and with a mark."""
    results = results_of(records)
    columns = [replace(c, label=f"{_label(results, c)} {mark}".strip()) for c in results.columns]
    return results.narrow(columns=columns)


def _label(results: Results, column: Column) -> str:
    runs = [run for loss in results.losses for run in results.runs(loss, column).values()]
    return f"{runs[0].classes:,} classes, {noise_label(column.noise)}"


def many_sentences(archives: Mapping[str, Archive]) -> list[str]:
    """Say in the summary in how many settings BEF and BQF are ahead."""
    if MANY not in archives:
        return []
    parts = _compared(results_of(archives[MANY].records), _ahead)
    title = "More than 150 classes, settings that no search saw"
    return [f"[{title}](#{ANCHOR}): {'; '.join(parts)}."] if parts else []


def comparisons(results: Results) -> list[str]:
    """Compare BEF and BQF with their former defaults and with a strong loss of others."""
    return [f"{part}." for part in _compared(results, _in_full)]


def _compared(results: Results, say: Callable[[Sequence[Difference]], str]) -> list[str]:
    """Put the differences to both others in words, over the seeds that a pair has in common."""
    sentences = []
    for loss in OURS:
        parts = []
        for other in (FORMER.format(loss), RIVAL):
            found: Sequence[Difference] = ()
            if {loss, other} <= set(results.losses):
                found = differences_to(results.narrow(losses=[loss, other]), other)
            if found:
                parts.append(f"ahead of {other} in {say(found)}")
        if parts:
            sentences.append(f"{loss} is {listed(parts)}")
    return sentences


def _ahead(found: Sequence[Difference]) -> str:
    return f"{sum(one.mean > 0 for one in found)} of {len(found)}"


def _in_full(found: Sequence[Difference]) -> str:
    above, below = (sum(one.verdict == word for one in found) for word in ("better", "worse"))
    means = [one.mean for one in found]
    return (
        f"{_ahead(found)} settings (mean differences from {signed(min(means))} to "
        f"{signed(max(means))} points; the 95 % interval is above 0 in {above} and below 0 in "
        f"{below})"
    )

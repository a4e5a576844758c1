"""The section on the sensitivity to the defaults: one parameter is changed at a time."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from results_data import (
    FLATNESS,
    OURS,
    Archive,
    bracketed,
    folded,
    provisional,
    results_of,
    signed,
    where,
)

from lossforge.benchmark.statistics import interval, paired_differences
from lossforge.report.formats import markdown
from lossforge.report.results import Column, Results
from lossforge.report.tables import Field, Sheet

DEFAULT = "default"


@dataclass(frozen=True)
class Change:
    """One changed parameter against the default.

    Args:
        name: Such as "beta x2".
        by_setting: Mean change in points over paired seeds.
    """

    name: str
    by_setting: Mapping[Column, float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.by_setting.values())

    @property
    def worst(self) -> Column:
        return min(self.by_setting, key=lambda column: self.by_setting[column])


def changes(archives: Mapping[str, Archive]) -> dict[str, list[Change]]:
    """Collect changes by family; rows are named "default" or "beta x2", or "BEF beta x2"."""
    results = results_of(archives[FLATNESS].records)
    rows: dict[str, dict[str, str]] = {}
    for row in results.losses:
        family = _family(results, row)
        if family:
            rows.setdefault(family, {})[row.removeprefix(f"{family} ")] = row
    found = {}
    for family, names in rows.items():
        if DEFAULT in names:
            others = [name for name in names if name != DEFAULT]
            pairs = [(name, _paired(results, names[name], names[DEFAULT])) for name in others]
            found[family] = [Change(name, by_setting) for name, by_setting in pairs if by_setting]
    return {family: listed for family, listed in found.items() if listed}


def _family(results: Results, row: str) -> str | None:
    runs = [run for column in results.columns for run in results.runs(row, column).values()]
    found = runs[0].balance if runs else None
    return found[0] if found and found[0] in OURS else None


def _paired(results: Results, row: str, default: str) -> dict[Column, float]:
    found = {}
    for column in results.columns:
        pairs = paired_differences(*(results.values(name, column) for name in (row, default)))
        if pairs:
            found[column] = statistics.fmean(pairs)
    return found


def flatness_sentence(family: str, listed: list[Change]) -> str:
    """Summarise the changes of one loss."""
    worst = min(listed, key=lambda change: change.by_setting[change.worst])
    mean = statistics.fmean(change.mean for change in listed)
    return (
        f"A change moves {family} by {signed(mean)} points on average, and by "
        f"{signed(worst.by_setting[worst.worst])} at worst ({worst.name}, {where(worst.worst)})."
    )


def flatness_section(archives: Mapping[str, Archive]) -> list[str]:
    """Write the section: a table by parameter and one by setting for each loss."""
    lines = [
        "## How flat it is around the defaults",
        "",
        *provisional(archives[FLATNESS]),
        "One parameter is changed at a time. Changes of the last epoch's accuracy in points, "
        "paired by seed.",
        "",
    ]
    found = changes(archives)
    for family, listed in found.items():
        lines += [
            flatness_sentence(family, listed),
            "",
            *folded(f"All changes of {family}", _tables(family, listed)),
        ]
    return lines if found else []


def _tables(family: str, listed: list[Change]) -> list[str]:
    return [markdown(_by_parameter(family, listed)), "", markdown(_by_setting(family, listed)), ""]


def _by_parameter(family: str, listed: list[Change]) -> Sheet:
    rows = []
    for change in listed:
        values = list(change.by_setting.values())
        worst = change.worst
        rows.append(
            [
                Field(bracketed(change.mean, *interval(values))),
                Field(f"{signed(change.by_setting[worst])} ({where(worst)})"),
                Field(str(len(values))),
            ]
        )
    head = ["change", "mean over settings", "worst setting", "settings"]
    notes = ["The 95 % interval is over settings."]
    return Sheet(f"{family}: by parameter", head, [c.name for c in listed], rows, notes)


def _by_setting(family: str, listed: list[Change]) -> Sheet:
    columns = list(dict.fromkeys(column for change in listed for column in change.by_setting))
    rows = []
    for column in columns:
        known = [change for change in listed if column in change.by_setting]
        worst = min(known, key=lambda change: change.by_setting[column])
        mean = statistics.fmean(change.by_setting[column] for change in known)
        rows.append(
            [Field(signed(mean)), Field(f"{signed(worst.by_setting[column])} ({worst.name})")]
        )
    head = ["setting", "mean over changes", "worst change"]
    names = [f"{column.data}, {column.label}" for column in columns]
    return Sheet(f"{family}: by setting", head, names, rows)

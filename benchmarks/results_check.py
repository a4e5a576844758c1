"""Comparison of repeated runs with the committed ones: equal bits, or equal up to chance."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from results_data import PAGE_MEASURES, WORDS, results_of, used_kernel, where
from scipy import stats

from lossforge.benchmark.archive import differences, name_of
from lossforge.benchmark.records import Measure, Record
from lossforge.benchmark.statistics import CONFIDENCE, interval

FEWEST_CELLS = 5  # whose mean shift has an interval worth its name


def circumstances(record: Record) -> list[str | None]:
    """Return what bits depend on too: CPU, its instructions, torch, path of the loss."""
    about = record.about
    version = about.get("versions", {}).get("torch")
    return [
        about.get("device"),
        about.get("instructions", "AVX2"),  # early records do not say them, and have its bits
        version and f"torch {version}",
        about["kernel"] if used_kernel(record) else "torch operations",
    ]


def _are_alike(one: Record, other: Record) -> bool:
    """Whether two runs must have the same bits, as far as is known."""
    both = zip(circumstances(one), circumstances(other), strict=True)
    return all(None in pair or pair[0] == pair[1] for pair in both)


def compare(kept: Sequence[Record], records: Sequence[Record]) -> tuple[str, list[str]]:
    """Compare runs with committed ones: bits where circumstances are the same, else intervals.

    Args:
        kept: The committed runs, some of which may have been made on other machines.
        records: The repeated runs.

    Returns:
        The criterion, and where it is not met.
    """
    before = {record.id: record for record in kept}
    elsewhere = {r.id for r in records if r.id in before and not _are_alike(before[r.id], r)}
    if not elsewhere:
        return "equal bits", differences(kept, records)
    here, there = (
        [[r for r in each if (r.id in elsewhere) == far] for each in (kept, records)]
        for far in (False, True)
    )
    texts = {", ".join(filter(None, circumstances(r))) for r in there[1]}
    other = " and ".join(sorted(texts))
    criterion = (
        f"equal bits, but 95 % intervals for {len(elsewhere):,} runs made on {other}: Welch's for "
        "a cell, that of the mean shift for all cells with one seed together; and joint ones for "
        "the mean shift of losses, settings and all cells"
    )
    return criterion, differences(*here) + _failures(*there) + outside(*there)


def _failures(kept: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """List runs that failed only one of the two times; they are in no mean."""
    before = {record.id: record.failed for record in kept}
    return [
        f"{name_of(record)}: failed {record.failed!r} instead of {before[record.id]!r}"
        for record in records
        if record.failed != before[record.id]
    ]


class Cell(NamedTuple):
    """Accuracies of one loss in one setting, committed and repeated."""

    loss: str
    setting: str
    before: list[float]
    after: list[float]

    @property
    def shift(self) -> float:
        return statistics.fmean(self.after) - statistics.fmean(self.before)

    @property
    def has_spread(self) -> bool:
        """Whether both sides have two seeds or more."""
        return min(len(self.before), len(self.after)) > 1


def outside(kept: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """List cells, and groups of cells, whose shift is larger than its interval allows.

    Welch's interval of a cell holds at 95 % by itself, and so does that of the cells with one seed,
    which nothing else judges. The intervals of the other groups hold jointly (Bonferroni).
    """
    by_measure = {measure: cells(kept, records, measure) for measure in PAGE_MEASURES}
    by_group = {measure: groups(found) for measure, found in by_measure.items()}
    joint = 1 - (1 - CONFIDENCE) / max(sum(map(len, by_group.values())), 1)
    lines = []
    for measure, found in by_measure.items():
        words = WORDS[measure]
        for cell in filter(lambda cell: cell.has_spread, found):
            half = welch(cell.before, cell.after)
            if not abs(cell.shift) <= half:
                lines.append(
                    f"{cell.loss}, {cell.setting}, {words}: "
                    f"{statistics.fmean(cell.after):.2f} instead of "
                    f"{statistics.fmean(cell.before):.2f} ± {half:.2f}"
                )
        single = [cell for cell in found if not cell.has_spread]
        lines += _shifted(f"cells with one seed, {words}", single, CONFIDENCE)
        for title, group in by_group[measure].items():
            lines += _shifted(f"{title}, {words}", group, joint)
    return lines


def cells(kept: Sequence[Record], records: Sequence[Record], measure: Measure) -> list[Cell]:
    """Pair the cells of both; runs that are missing or failed are listed one by one elsewhere."""
    before, after = results_of(kept), results_of(records)
    columns = {column.key: column for column in after.columns}
    found = []
    for column in before.columns:
        again = columns.get(column.key)
        for loss in before.losses:
            ours = list(before.values(loss, column, measure).values())
            theirs = list(after.values(loss, again, measure).values()) if again else []
            if ours and theirs:
                found.append(Cell(loss, where(column), ours, theirs))
    return found


def groups(found: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Gather all cells, those of each loss and those of each setting; leave out small groups."""
    parts = {"all cells": list(found)}
    for cell in found:
        parts.setdefault(cell.loss, []).append(cell)
        parts.setdefault(cell.setting, []).append(cell)
    return {title: part for title, part in parts.items() if len(part) >= FEWEST_CELLS}


def _shifted(title: str, group: Sequence[Cell], confidence: float) -> list[str]:
    """Say if the mean shift of a group is not 0 up to chance, or cannot be judged."""
    if not group:
        return []
    title = f"{title}, {len(group)} {'cell' if len(group) == 1 else 'cells'}"
    if len(group) < FEWEST_CELLS:
        return [f"{title}: too few to compare on another machine, take {FEWEST_CELLS} or more"]
    shifts = [cell.shift for cell in group]
    low, high = interval(shifts, confidence)
    if low is None or high is None or low <= 0 <= high:
        return []
    return [f"{title}: shifted by {statistics.fmean(shifts):+.2f} [{low:+.2f}, {high:+.2f}]"]


def welch(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of a difference of means of two values or more."""
    parts = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    if sum(parts) == 0:
        return 0.0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs), strict=True)
    )
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(parts))

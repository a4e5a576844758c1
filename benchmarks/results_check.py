"""Comparison of repeated runs with the committed ones: equal bits, or equal up to chance."""

import math
import statistics
from collections.abc import Sequence

from results_data import PAGE_MEASURES, WORDS, results_of, used_kernel, where
from scipy import stats

from lossforge.benchmark.archive import differences, name_of
from lossforge.benchmark.records import Record
from lossforge.benchmark.statistics import CONFIDENCE, interval

FEWEST_CELLS = 5  # of one seed, whose mean difference has an interval worth its name


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
        "a cell, that of the mean difference for all cells with one seed together"
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


def outside(kept: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """List cells whose two means differ by more than Welch's interval allows.

    Cells with one seed have no such interval; the mean of their differences has one over cells.
    """
    before, after = results_of(kept), results_of(records)
    columns = {column.key: column for column in after.columns}
    lines = []
    for measure in PAGE_MEASURES:
        single = []
        for column in before.columns:
            for loss in before.losses:
                again = columns.get(column.key)
                ours = list(before.values(loss, column, measure).values())
                theirs = list(after.values(loss, again, measure).values()) if again else []
                if not ours or not theirs:
                    continue  # runs that are missing or failed are listed one by one
                shift = statistics.fmean(theirs) - statistics.fmean(ours)
                if min(len(ours), len(theirs)) == 1:
                    single.append(shift)
                elif not abs(shift) <= (half := welch(ours, theirs)):
                    lines.append(
                        f"{loss}, {where(column)}, {WORDS[measure]}: "
                        f"{statistics.fmean(theirs):.2f} instead of {statistics.fmean(ours):.2f} "
                        f"± {half:.2f}"
                    )
        lines += _shifted(single, WORDS[measure])
    return lines


def _shifted(shifts: Sequence[float], words: str) -> list[str]:
    """Say if the mean shift of single runs is not 0 up to chance, or cannot be judged."""
    if not shifts:
        return []
    title = f"{len(shifts)} cells with one seed, {words}"
    low, high = interval(shifts)
    if low is None or high is None or len(shifts) < FEWEST_CELLS:
        return [f"{title}: too few to compare on another machine, take {FEWEST_CELLS} or more"]
    if low <= 0 <= high:
        return []
    return [f"{title}: {statistics.fmean(shifts):+.2f} [{low:+.2f}, {high:+.2f}] on average"]


def welch(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of a difference of means of two values or more."""
    parts = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    if sum(parts) == 0:
        return 0.0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs), strict=True)
    )
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(parts))

"""Comparison of repeated runs with the committed ones: equal bits, or equal up to chance."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from results_data import PAGE_MEASURES, WORDS, results_of, where
from scipy import stats

from lossforge.benchmark.archive import differences, unpack
from lossforge.benchmark.records import Record
from lossforge.benchmark.statistics import CONFIDENCE
from lossforge.kernels import COMPOSED


def circumstances(record: Record) -> list[str | None]:
    """Return what bits depend on too: CPU, its instructions, torch, path of the loss."""
    about = record.about
    version = about.get("versions", {}).get("torch")
    return [
        about.get("device"),
        about.get("instructions"),  # early records do not say them
        version and f"torch {version}",
        _path(about.get("kernel")),
    ]


def _are_alike(one: Record, other: Record) -> bool:
    """Whether two runs must have the same bits, as far as is known."""
    both = zip(circumstances(one), circumstances(other), strict=True)
    return all(None in pair or pair[0] == pair[1] for pair in both)


def _path(kernel: str | None) -> str:
    """How losses were computed; records say nothing of it from before there was a kernel."""
    return "torch operations" if kernel is None or kernel.startswith(COMPOSED) else kernel


def compare(path: Path, records: Sequence[Record]) -> tuple[str, list[str]]:
    """Compare runs with an archive: bits where circumstances are the same, else intervals.

    Args:
        path: The archive; parts of it may have been made on other machines.
        records: The repeated runs.

    Returns:
        The criterion, and where it is not met.
    """
    kept = unpack(path)[1]
    before = {record.id: record for record in kept}
    elsewhere = {r.id for r in records if r.id in before and not _are_alike(before[r.id], r)}
    if not elsewhere:
        return "equal bits", differences(kept, records)
    here = [[r for r in each if r.id not in elsewhere] for each in (kept, records)]
    texts = {", ".join(filter(None, circumstances(r))) for r in records if r.id in elsewhere}
    other = " and ".join(sorted(texts))
    criterion = (
        f"equal bits, but the 95 % Welch interval for {len(elsewhere):,} runs of {other}; "
        "cells with one seed are not compared"
    )
    return criterion, differences(*here) + outside(kept, records)


def outside(kept: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """List cells whose two means differ by more than Welch's interval allows."""
    if not records:
        return []
    before, after = results_of(kept), results_of(records)
    columns = {column.key: column for column in after.columns}
    lines = []
    for column in before.columns:
        for loss in before.losses:
            for measure in PAGE_MEASURES:
                ours = list(before.values(loss, column, measure).values())
                again = columns.get(column.key)
                theirs = list(after.values(loss, again, measure).values()) if again else []
                if min(len(ours), len(theirs)) < 2:
                    continue  # missing runs are listed one by one
                half = welch(ours, theirs)
                shift = statistics.fmean(theirs) - statistics.fmean(ours)
                if not abs(shift) <= half:
                    lines.append(
                        f"{loss}, {where(column)}, {WORDS[measure]}: "
                        f"{statistics.fmean(theirs):.2f} instead of {statistics.fmean(ours):.2f} "
                        f"± {half:.2f}"
                    )
    return lines


def welch(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of a difference of means of two values or more."""
    parts = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    if sum(parts) == 0:
        return 0.0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs), strict=True)
    )
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(parts))

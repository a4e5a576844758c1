"""Agreement of two orders of the losses: rank correlations and their intervals."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from lossforge.benchmark.records import Measure
from lossforge.benchmark.statistics import CONFIDENCE
from lossforge.report.results import Column, Results

LEAST_LOSSES = 5  # fewer have no interval
METHODS = ("spearman", "kendall")


@dataclass(frozen=True)
class Correlation:
    """A rank correlation with its 95 % interval; none for few losses."""

    value: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """Whether the interval lies above 0, below it, or contains it."""
        if self.low is None or self.high is None:
            return "unknown"
        return "agrees" if self.low > 0 else "contradicts" if self.high < 0 else "unclear"


@dataclass(frozen=True)
class Agreement:
    """Two orders of the same losses in one setting.

    Args:
        column: The setting.
        ours: Ranks by our accuracy, 1 is best.
        theirs: Ranks by the other's.
        spearman: Spearman's correlation of the ranks.
        kendall: Kendall's tau-b.
    """

    column: Column
    ours: Mapping[str, float]
    theirs: Mapping[str, float]
    spearman: Correlation
    kendall: Correlation


def correlate(ours: Sequence[float], theirs: Sequence[float], method: str) -> Correlation | None:
    """Return a rank correlation; None if all values of a side are equal.

    The interval is over losses, by Fisher's z: with variance (1 + r^2/2)/(n - 3) for Spearman's
    coefficient (Bonett and Wright, Psychometrika 65, 2000), 0.437/(n - 4) for Kendall's (Fieller,
    Hartley and Pearson, Biometrika 44, 1957). It asks how well other losses of the kind would
    agree. One over seeds would ask how well these are ranked, and three seeds hardly say.
    """
    function = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    if min(len(set(ours)), len(set(theirs))) < 2:
        return None
    n, value = len(ours), float(function(ours, theirs).statistic)
    if n < LEAST_LOSSES:
        return Correlation(value, None, None)
    if abs(value) > 1 - 1e-9:  # z is infinite
        return Correlation(value, value, value)
    variance = (1 + value**2 / 2) / (n - 3) if method == "spearman" else 0.437 / (n - 4)
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    centre = math.atanh(value)
    return Correlation(value, math.tanh(centre - half), math.tanh(centre + half))


def published(rows: Sequence[Mapping[str, Any]], column: Column) -> dict[str, float]:
    """Return the paper's means in one setting, by loss."""
    wanted = {"data": column.data, "noise": column.noise, "test": column.test, "k": "top1"}
    return {
        row["loss"]: row["mean"]
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    }


def agree(
    column: Column, ours: Mapping[str, float], theirs: Mapping[str, float]
) -> Agreement | None:
    """Compare two orders of the losses that both have; None for fewer than three."""
    losses = [loss for loss in ours if loss in theirs]
    sides = [[side[loss] for loss in losses] for side in (ours, theirs)]
    if len(losses) < 3:
        return None
    found = [correlate(*sides, method) for method in METHODS]
    ranks = [dict(zip(losses, _ranked(side), strict=True)) for side in sides]
    if None in found:
        return None
    return Agreement(column, *ranks, *found)


def _ranked(values: Sequence[float]) -> list[float]:
    return [float(rank) for rank in stats.rankdata([-value for value in values])]


def with_paper(
    results: Results, rows: Sequence[Mapping[str, Any]], measure: Measure
) -> list[Agreement]:
    """Compare our order with the paper's in every setting that it has and no run of ours lacks."""
    found = []
    for column in results.columns:
        ours, theirs = results.means(column, measure), published(rows, column)
        if theirs and all(loss in ours for loss in results.losses if loss in theirs):
            found.append(agree(column, ours, theirs))
    return [one for one in found if one]


def mean_ranks(found: Sequence[Agreement]) -> dict[str, tuple[float, float]]:
    """Return every loss's mean rank here and in the paper, over the settings that it has."""
    losses = dict.fromkeys(loss for one in found for loss in one.ours)
    pairs = {}
    for loss in losses:
        known = [one for one in found if loss in one.ours]
        pairs[loss] = (
            statistics.fmean(one.ours[loss] for one in known),
            statistics.fmean(one.theirs[loss] for one in known),
        )
    return pairs

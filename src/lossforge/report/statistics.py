"""Paired differences of losses over seeds, and ranks of losses over settings."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..benchmark.records import Measure
from ..benchmark.statistics import CONFIDENCE, interval, paired_differences
from ..errors import extra
from .results import Column, Results


@dataclass(frozen=True)
class Difference:
    """A loss minus another in one setting, over the seeds that both have.

    Args:
        loss: The loss.
        other: The loss it is compared with.
        column: The setting.
        n: Number of pairs.
        mean: Mean difference, in percentage points.
        low: Lower end of the 95 % t interval; None for fewer than two pairs.
        high: Its upper end.
    """

    loss: str
    other: str
    column: Column
    n: int
    mean: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """Whether the interval lies above 0, below it, or contains it."""
        if self.low is None or self.high is None:
            return "unknown"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "level"


@dataclass(frozen=True)
class Ranking:
    """Losses compared over all settings by their ranks.

    Args:
        ranks: Mean rank of every loss, 1 is best, best first.
        settings: Number of settings.
        left_out: Losses that are not ranked because they lack a setting.
        statistic: Friedman's chi-squared; None if all ranks are tied.
        p: Its p-value.
        critical: Smaller differences in mean rank are not significant (Nemenyi, 5 %).
    """

    ranks: dict[str, float]
    settings: int
    left_out: list[str]
    statistic: float | None
    p: float | None
    critical: float


def differences_to(results: Results, other: str, measure: Measure = "last") -> list[Difference]:
    """Compare every loss with a chosen one, setting by setting.

    Args:
        results: The runs.
        other: The loss to compare with.
        measure: Which accuracy of a run to compare.
    """
    check_loss(results, other)
    found = [
        _difference(results, loss, other, column, measure)
        for column in results.columns
        for loss in results.losses
        if loss != other
    ]
    return [difference for difference in found if difference]


def check_loss(results: Results, name: str) -> None:
    """Raise unless runs of a loss are there."""
    if name not in results.losses:
        raise ValueError(f"there is no loss {name!r} here, only {', '.join(results.losses)}")


def differences_to_best(
    results: Results, measure: Measure = "last", *, losses: Sequence[str] | None = None
) -> list[Difference]:
    """Compare every loss with the best other one of the same setting.

    The best has the highest mean among the losses with the most seeds. It is chosen after the
    fact, which puts the loss compared with it at a disadvantage.

    Args:
        results: The runs.
        measure: Which accuracy of a run to compare.
        losses: The losses to compare with the best other loss; all if None.
    """
    found = []
    for column in results.columns:
        values = {loss: results.values(loss, column, measure) for loss in results.losses}
        for loss in results.losses if losses is None else losses:
            rivals = {name: list(v.values()) for name, v in values.items() if v and name != loss}
            if rivals:
                most = max(map(len, rivals.values()))
                whole = [name for name, numbers in rivals.items() if len(numbers) == most]
                best = max(whole, key=lambda name: statistics.fmean(rivals[name]))
                found.append(_difference(results, loss, best, column, measure))
    return [difference for difference in found if difference]


def _difference(
    results: Results, loss: str, other: str, column: Column, measure: Measure
) -> Difference | None:
    ours, theirs = (results.values(name, column, measure) for name in (loss, other))
    pairs = paired_differences(ours, theirs)
    if not pairs:
        return None
    low, high = interval(pairs)
    return Difference(loss, other, column, len(pairs), statistics.fmean(pairs), low, high)


def rank_losses(results: Results, measure: Measure = "last") -> Ranking | None:
    """Rank the losses over all settings, with Friedman's test and Nemenyi's critical difference.

    Returns:
        The ranking of the losses that have every setting, by their means over the seeds that these
        have in common; None for fewer than three losses or two settings, or without such seeds.
    """
    whole = results.complete(measure)
    means = [whole.means(column, measure) for column in whole.columns]
    k, n = len(whole.losses), len(means)
    if k < 3 or n < 2 or not all(means):
        return None
    stats = extra("scipy.stats", "bench")
    rows = [list(column.values()) for column in means]
    ranks = [[float(rank) for rank in stats.rankdata([-mean for mean in row])] for row in rows]
    mean_ranks = zip(whole.losses, map(statistics.fmean, zip(*ranks, strict=True)), strict=True)
    tied = all(len(set(row)) == 1 for row in rows)
    test = None if tied else stats.friedmanchisquare(*zip(*rows, strict=True))
    return Ranking(
        ranks=dict(sorted(mean_ranks, key=lambda item: item[1])),
        settings=n,
        left_out=[loss for loss in results.losses if loss not in whole.losses],
        statistic=float(test.statistic) if test else None,
        p=float(test.pvalue) if test else None,
        critical=critical_difference(k, n),
    )


def critical_difference(losses: int, settings: int) -> float:
    """Return Nemenyi's critical difference of mean ranks at 5 %."""
    studentized = extra("scipy.stats", "bench").studentized_range
    q = float(studentized.ppf(CONFIDENCE, losses, math.inf)) / math.sqrt(2)
    return q * math.sqrt(losses * (losses + 1) / (6 * settings))

"""Paired differences over seeds, and the interval of their mean."""

import math
import statistics
from collections.abc import Mapping, Sequence

from ..errors import extra

CONFIDENCE = 0.95


def interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | tuple[None, None]:
    """Return the t interval of a mean; none for fewer than two values."""
    n = len(values)
    if n < 2:
        return None, None
    half = half_width(n, confidence) * statistics.stdev(values)
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def half_width(n: int, confidence: float = CONFIDENCE) -> float:
    """Return half the width of the t interval of the mean of n values of deviation 1."""
    quantile = float(extra("scipy.stats", "bench").t.ppf((1 + confidence) / 2, n - 1))
    return quantile / math.sqrt(n)


def paired_differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Subtract values seed by seed, over the seeds that both have, in the order of `ours`."""
    return [ours[seed] - theirs[seed] for seed in ours if seed in theirs]

"""Estimate the noise rate and the confused classes, with intervals.

Confident learning counts what the network cannot learn as noise, so that its rate is too high where
the data are hard. Among the samples that the network is surest of, it makes fewer mistakes of its
own, and the share of them whose label differs from its prediction is nearer to the rate; too low if
hard samples are mislabelled more often. The lower of the two is the estimate. Neither error can be
seen in the labels, so that the interval reaches beyond both by factors that were chosen on other
simulated cases than those of benchmarks/audit_cases.json, which measure its coverage.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from ..data.dataset import members
from ..noise import NoiseEstimate, estimate_noise
from ..noise.measure import EstimationError

RESAMPLES = 100
PAIRS = 10
SURE = 0.5  # the share of samples, of each predicted class, that counts as sure
BELOW, ABOVE = 0.75, 1.05  # factors of the interval's ends


@dataclass(frozen=True)
class Interval:
    """A number with its interval, see `estimate`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """Samples of one class that have the label of another.

    Args:
        true: The index of the class.
        given: The index of the label.
        rate: The share of the class that has this label.
        rows: The number of such samples.
    """

    true: int
    given: int
    rate: Interval
    rows: float


@dataclass(frozen=True, eq=False)
class Estimated:
    """The noise in a set of labels, as estimated by cleanlab.

    Args:
        estimate: Transition matrix, class prior and rate, from the mean of all repeats.
        rate: The same rate, with its interval.
        repeats: The rate from each repeat of the cross-validation alone.
        confusions: The largest off-diagonal entries, largest first.
        resampled: Transition matrices of resampled data.
        sure_rate: The share of wrong labels among the samples that the network is surest of.
        most_rate: By confident learning, which counts what the network cannot learn as wrong.
    """

    estimate: NoiseEstimate
    rate: Interval
    repeats: tuple[float, ...]
    confusions: tuple[Confusion, ...]
    resampled: tuple[Tensor, ...]
    sure_rate: float
    most_rate: float

    @property
    def dominated(self) -> list[tuple[int, int]]:
        """Classes with a wrong label at least as frequent as the correct one, and that label."""
        T = self.estimate.T
        own = T.diagonal()
        others = T.clone().fill_diagonal_(0).max(1)
        return [(k, int(others.indices[k])) for k in range(len(T)) if own[k] <= others.values[k]]


def estimate(
    probs: Sequence[Tensor],
    given: Tensor,
    *,
    generator: Generator,
    resamples: int = RESAMPLES,
    classes: Sequence[str] | None = None,
) -> Estimated:
    """Estimate the noise from probabilities out of fold, with intervals from resampling.

    A resample draws the samples of each given label with replacement, and likewise the repeats of
    the cross-validation. So the interval covers chance in the labels and, with several repeats,
    chance in training; its ends are moved outwards for what the network cannot learn.

    Args:
        probs: (N, K) probabilities from each repeat.
        given: (N,) the labels.
        generator: Draws the resamples.
        resamples: The number of resamples; those in which a class cannot be estimated are left out.
        classes: The names of the classes, for an error.
    """
    found = _range(_mean(probs), given, classes)
    single = _ranges((one, given) for one in probs) if len(probs) > 1 else [found]
    drawn = _ranges(
        (_mean([probs[k] for k in chosen])[rows], given[rows])
        for chosen, rows in _resample(len(probs), given, generator, resamples)
    )
    estimated = found.estimate
    matrices = tuple(one.estimate.T for one in drawn)
    rate = _interval(
        estimated.rate,
        [BELOW * one.estimate.rate for one in drawn],
        [min(1.0, ABOVE * max(one.sure, one.most)) for one in drawn],
    )
    return Estimated(
        estimated,
        rate,
        tuple(one.estimate.rate for one in single),
        tuple(_confusions(estimated, matrices, len(given))),
        matrices,
        found.sure,
        found.most,
    )


class _Range(NamedTuple):
    """Two estimates of the rate, and the noise at the lower one.

    Args:
        estimate: With the lower of the two, and the matrix and prior of confident learning, whose
            off-diagonal entries are scaled to that rate.
        sure: See `sure_rate`.
        most: By confident learning.
    """

    estimate: NoiseEstimate
    sure: float
    most: float


def _range(probs: Tensor, given: Tensor, classes: Sequence[str] | None = None) -> _Range:
    found = estimate_noise(probs, given, classes=classes)
    sure = sure_rate(probs, given)
    if sure >= found.rate:
        return _Range(found, sure, found.rate)
    own = torch.eye(len(found.T), dtype=found.T.dtype)
    T = own + sure / found.rate * (found.T - own)
    return _Range(NoiseEstimate(T, found.prior, sure), sure, found.rate)


def sure_rate(probs: Tensor, given: Tensor, share: float = SURE) -> float:
    """Return the share of labels that differ from sure predictions.

    Sure are the most probable predictions of each class: that many of each, because a class with
    more noise is predicted with lower probability. Every class counts by the number of samples that
    are predicted as it.

    Args:
        probs: (N, K) probabilities out of fold.
        given: (N,) the labels.
        share: The share of each predicted class that counts as sure.
    """
    confidence, predicted = probs.max(1)
    order = confidence.argsort(descending=True, stable=True)
    order = order[predicted[order].argsort(stable=True)]  # by class, surest first
    counts = predicted.bincount(minlength=probs.shape[1])
    starts = counts.cumsum(0) - counts
    classes = predicted[order]
    place = torch.arange(len(order)) - starts[classes]
    sure = place < (share * counts).ceil()[classes]
    rows, labels = order[sure], classes[sure]
    wrong = (given[rows] != labels).double()
    shares = torch.zeros(len(counts), dtype=torch.float64).index_add(0, labels, wrong)
    shares /= labels.bincount(minlength=len(counts)).clamp(min=1)
    return float((counts * shares).sum() / len(given))


def _ranges(parts: Iterable[tuple[Tensor, Tensor]]) -> list[_Range]:
    """Estimate the noise of each part, except where a class has no confident sample."""
    found = []
    for probs, given in parts:
        with suppress(EstimationError):
            found.append(_range(probs, given))
    return found


def _resample(
    repeats: int, given: Tensor, generator: Generator, resamples: int
) -> Iterator[tuple[list[int], Tensor]]:
    """Draw repeats and samples; every label keeps its count, so that no class is lost."""
    groups = members(given)
    for _ in range(resamples):
        chosen = torch.randint(repeats, (repeats,), generator=generator).tolist()
        rows = [
            group[torch.randint(len(group), (len(group),), generator=generator)] for group in groups
        ]
        yield chosen, torch.cat(rows)


def _mean(probs: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(probs)).mean(0) if len(probs) > 1 else probs[0]


def _interval(value: float, lows: Sequence[float], highs: Sequence[float]) -> Interval:
    """Return the interval from the lower and the upper estimates of all resamples."""
    if not lows:
        return Interval(value, value, value)
    low, high = (
        float(torch.tensor(drawn, dtype=torch.float64).quantile(level))
        for drawn, level in ((lows, 0.025), (highs, 0.975))
    )
    # resamples scatter about a value of their own: the interval is widened to hold the estimate
    return Interval(value, min(value, low), max(value, high))


def _confusions(found: NoiseEstimate, matrices: Sequence[Tensor], n: int) -> Iterator[Confusion]:
    T = found.T
    flips = T.clone().fill_diagonal_(0)
    for place in flips.flatten().argsort(descending=True, stable=True)[:PAIRS].tolist():
        true, given = divmod(place, len(T))
        rate = float(flips[true, given])
        if rate <= 0:
            return
        drawn = [float(matrix[true, given]) for matrix in matrices]
        rows = n * float(found.prior[true]) * rate
        yield Confusion(true, given, _interval(rate, drawn, drawn), rows)

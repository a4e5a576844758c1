"""Estimate the noise rate and the confused classes, with intervals."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from ..data.dataset import members
from ..noise import NoiseEstimate, estimate_noise
from ..noise.measure import EstimationError

RESAMPLES = 100
PAIRS = 10


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval from resampling."""

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
    """

    estimate: NoiseEstimate
    rate: Interval
    repeats: tuple[float, ...]
    confusions: tuple[Confusion, ...]
    resampled: tuple[Tensor, ...]

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
    chance in training. It does not cover errors from classes that the network cannot distinguish.

    Args:
        probs: (N, K) probabilities from each repeat.
        given: (N,) the labels.
        generator: Draws the resamples.
        resamples: The number of resamples; those in which a class cannot be estimated are left out.
        classes: The names of the classes, for an error.
    """
    found = estimate_noise(_mean(probs), given, classes=classes)
    single = _estimates((one, given) for one in probs) if len(probs) > 1 else [found]
    drawn = _estimates(
        (_mean([probs[k] for k in chosen])[rows], given[rows])
        for chosen, rows in _resample(len(probs), given, generator, resamples)
    )
    matrices = tuple(one.T for one in drawn)
    return Estimated(
        found,
        _interval(found.rate, [one.rate for one in drawn]),
        tuple(one.rate for one in single),
        tuple(_confusions(found, matrices, len(given))),
        matrices,
    )


def _estimates(parts: Iterable[tuple[Tensor, Tensor]]) -> list[NoiseEstimate]:
    """Estimate the noise of each part, except where a class has no confident sample."""
    found = []
    for probs, given in parts:
        with suppress(EstimationError):
            found.append(estimate_noise(probs, given))
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


def _interval(value: float, drawn: Sequence[float]) -> Interval:
    if not drawn:
        return Interval(value, value, value)
    low, high = torch.tensor(drawn, dtype=torch.float64).quantile(
        torch.tensor([0.025, 0.975], dtype=torch.float64)
    )
    # resamples scatter about a value of their own: the interval is widened to hold the estimate
    return Interval(value, min(value, float(low)), max(value, float(high)))


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
        yield Confusion(true, given, _interval(rate, drawn), rows)

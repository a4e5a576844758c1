"""Selection of samples by a mixture of two Gaussians over their losses, as in DivideMix."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ...errors import check_integer, check_number
from ..evaluate import predict
from ..method import Batch, Epoch, Method, Objective, Step

ITERATIONS, TOLERANCE, LEAST_VARIANCE = 10, 1e-2, 5e-4  # of the released code


@dataclass(frozen=True, kw_only=True)
class MixtureSelection(Method):
    """Train each of two networks on the samples that the other's losses tell to be clean.

    After `warm_up` epochs of the plain loop, a mixture of two Gaussians is fitted before every
    epoch to each network's cross entropies of all training samples, scaled to [0, 1]; a sample is
    clean if its probability to be of the component with the smaller mean exceeds `threshold`. This
    is the "co-divide" of DivideMix; its MixMatch on the other samples is not part of it.

    Args:
        warm_up: Epochs in which all samples count, 1 or more.
        threshold: Of the probability to be clean, in (0, 1).

    References:
        Li, Socher and Hoi, DivideMix: Learning with Noisy Labels as Semi-supervised Learning, ICLR
        2020. https://openreview.net/pdf?id=HJgExaVtwr
    """

    name: ClassVar[str] = "mixture"
    networks: ClassVar[int] = 2
    distributed: ClassVar[bool] = False
    warm_up: int = 10
    threshold: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("warm_up", self.warm_up, 1)
        check_number("threshold", self.threshold, "in (0, 1)", lambda v: 0 < v < 1)

    def begin(self, epoch: Epoch) -> None:
        if epoch.number < self.warm_up:
            return
        given = epoch.samples.given
        labelled = given != epoch.loss.ignore_index
        clean = torch.zeros(2, len(given), dtype=torch.bool)
        for found, network in zip(clean, epoch.networks, strict=True):
            logits = predict(network.model, epoch.samples).double()
            values = cross_entropy(logits[labelled], given[labelled], reduction="none")
            found[labelled] = smaller_component(values) > self.threshold
        epoch.memory["clean"] = clean

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        logits = [network(batch.inputs) for network in epoch.networks]
        objectives = []
        for number, one in enumerate(logits):
            values = epoch.loss(one, batch.target)
            if epoch.number < self.warm_up:
                objectives.append(Objective(values, batch.kept))
                continue
            chosen = epoch.memory["clean"][1 - number, batch.rows].to(values.device)
            weight = epoch.loss.kept(batch.target[chosen].cpu())
            objectives.append(Objective(values[chosen], weight))
        return Step(logits[0], objectives)


def smaller_component(values: Tensor) -> Tensor:
    """Fit two Gaussians to values scaled to [0, 1]; return the posteriors of the smaller mean.

    Expectation maximisation with the stopping rules of the released code. It starts from two means,
    found from the ends instead of at random, so that equal losses make equal bits. All values are
    of that component if they are equal; one that is not finite has posterior 0.

    Args:
        values: (N,) in float64.
    """
    finite = values.isfinite()
    posteriors = torch.zeros_like(values)
    if finite.any():
        posteriors[finite] = _posteriors(values[finite])
    return posteriors


def _posteriors(values: Tensor) -> Tensor:
    low, high = values.min(), values.max()
    if low == high:
        return torch.ones_like(values)
    x = ((values - low) / (high - low))[:, None]
    bound = -math.inf
    parameters = _maximise(x, _two_means(x))
    for _ in range(ITERATIONS):
        share, found = _expect(x, *parameters)
        parameters = _maximise(x, share)
        before, bound = bound, found
        if abs(bound - before) < TOLERANCE:
            break
    return _expect(x, *parameters)[0][:, int(parameters[1].argmin())]


def _maximise(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights, means and variances (2,) of the components, given their shares (N, 2)."""
    mass = share.sum(0)
    means = (share * x).sum(0) / mass
    return mass / len(x), means, (share * (x - means) ** 2).sum(0) / mass + LEAST_VARIANCE


def _expect(x: Tensor, weights: Tensor, means: Tensor, variances: Tensor) -> tuple[Tensor, float]:
    """Return the shares (N, 2) of the components in each value, and the mean log-likelihood."""
    normal = -((x - means) ** 2 / variances + (2 * math.pi * variances).log()) / 2
    joint = weights.log() + normal
    total = joint.logsumexp(1, keepdim=True)
    return (joint - total).exp(), float(total.mean())


def _two_means(x: Tensor) -> Tensor:
    """Return the clusters (N, 2) of two means, started at the ends, as zeros and ones."""
    means = torch.stack([x.min(), x.max()])
    while True:
        upper = (x - means[1]).abs() < (x - means[0]).abs()
        moved = torch.stack([x[~upper].mean(), x[upper].mean()])
        if torch.equal(moved, means):
            return torch.cat([~upper, upper], 1).to(x.dtype)
        means = moved

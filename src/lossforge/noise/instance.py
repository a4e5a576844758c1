"""Instance-dependent noise: the wrong label, and in part whether there is one, follow the input."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from ..errors import check_number
from .inject import Corruption, check_labels
from .transition import check_rate


class InstanceNoise(NamedTuple):
    """The label distribution of every instance.

    Args:
        rows: (N, K) probabilities of the labels, in float64; rows sum to one.
        true: (N,) true labels.
    """

    rows: Tensor
    true: Tensor


def part_dependent(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    rate: float,
    *,
    std: float = 0.1,
    generator: Generator,
) -> Corruption:
    r"""Part-dependent noise: every sample has its own rate and its own confusions.

    Sample i flips with probability :math:`q_i`, drawn from a normal distribution around `rate`
    truncated to [0, 1], to class j with probability :math:`\mathrm{softmax}_j(x_i W_{y_i})` over
    the wrong classes, where each :math:`W_c` is a random Gaussian matrix.

    Args:
        features: One row per sample; anything after the first axis is flattened. Their scale
            sets how determined the wrong class is: raw 0..255 pixels, as released, make it a
            function of the sample; features around 1 leave it random.
        labels: True labels.
        num_classes: Number of classes.
        rate: Mean of the normal distribution. Truncation moves the real rate inwards when
            `rate` is within two `std` of 0 or 1.
        std: Its standard deviation.
        generator: The source of randomness.

    References:
        Xia et al., Part-dependent Label Noise, NeurIPS 2020, algorithm 2.
        https://arxiv.org/abs/2006.07836
    """
    flips, _ = _part_flips(len(labels), rate, std, generator)
    return _mistake(features, labels, num_classes, flips, generator)


def instance_rows(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    rate: float,
    *,
    std: float = 0.1,
    generator: Generator,
) -> InstanceNoise:
    r"""The distributions that `part_dependent` draws labels from, instance by instance.

    Row i holds :math:`1 - q_i` at the true class and :math:`q_i \mathrm{softmax}_j(x_i W_{y_i})` at
    the wrong ones. A generator in the same state gives the same :math:`q` and :math:`W` as there
    and is left in the same state, so the labels of that call are a draw from these rows.

    Args:
        features: See `part_dependent`, as for the other arguments.
        labels: True labels.
        num_classes: Number of classes.
        rate: Mean of the rates of the instances, before truncation.
        std: Their standard deviation.
        generator: The source of randomness.

    Example:
        >>> features, labels = torch.ones(2, 3), torch.tensor([0, 1])
        >>> found = instance_rows(features, labels, 4, 0.3, generator=Generator().manual_seed(0))
        >>> found.rows.shape, found.rows.sum(1)
        (torch.Size([2, 4]), tensor([1., 1.], dtype=torch.float64))
    """
    _, rates = _part_flips(len(labels), rate, std, generator)
    _check(features, labels, num_classes)
    rows = torch.zeros(len(labels), num_classes, dtype=torch.float64)
    for members, probs, _ in _confusions(features, labels, num_classes, generator):
        wrong = probs.cpu().double()
        rows[members.cpu()] = rates[members.cpu(), None] * wrong / wrong.sum(1, keepdim=True)
    true = labels.cpu().long()
    return InstanceNoise(rows.scatter(1, true[:, None], (1 - rates)[:, None]), true)


def instance_dependent(
    features: Tensor, labels: Tensor, num_classes: int, rate: float, *, generator: Generator
) -> Corruption:
    r"""Class-conditional instance noise: a fixed share of samples, confused by what they show.

    Exactly round(rate N) samples, chosen at random over the whole set, are given class j with
    probability :math:`\mathrm{softmax}_j(x_i W_{y_i})` over the wrong classes. This is the noise
    of the "dependent" tables of the robust-loss literature; the labels behind those tables are
    frozen files, which `lossforge.data.instance_labels` reads.

    Args:
        features: One row per sample, see `part_dependent` about their scale.
        labels: True labels.
        num_classes: Number of classes.
        rate: The share of samples with a wrong label.
        generator: The source of randomness.
    """
    check_rate(rate)
    flips = torch.zeros(len(labels), dtype=torch.bool)
    order = torch.randperm(len(labels), generator=generator, device=generator.device).cpu()
    flips[order[: round(rate * len(labels))]] = True
    return _mistake(features, labels, num_classes, flips, generator)


def _mistake(
    features: Tensor, labels: Tensor, num_classes: int, flips: Tensor, generator: Generator
) -> Corruption:
    """Give the samples marked in `flips` the label they are confused with."""
    _check(features, labels, num_classes)
    given = labels.clone()
    for members, _, drawn in _confusions(features, labels, num_classes, generator):
        given[members] = torch.where(flips[members], drawn.to(labels.device), labels[members])
    return Corruption(given, given != labels)


def _check(features: Tensor, labels: Tensor, num_classes: int) -> None:
    check_labels(labels, num_classes)
    if num_classes < 2:
        raise ValueError(f"num_classes must be 2 or more, got {num_classes}")
    if features.ndim < 2 or len(features) != len(labels):
        raise ValueError(
            f"features must be one row for each of the {len(labels)} labels, "
            f"got shape {tuple(features.shape)}"
        )
    if not bool(features.isfinite().all()):
        raise ValueError("features must be finite, got NaN or infinity")


def _confusions(
    features: Tensor, labels: Tensor, num_classes: int, generator: Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Per class: its samples, the probabilities of the wrong classes for each, and one drawn."""
    flat = features.flatten(1)
    for true in range(num_classes):
        weights = torch.randn(
            flat.shape[1], num_classes, generator=generator, device=generator.device
        )
        (members,) = torch.where(labels == true)
        if len(members):
            scores = flat[members].to(weights) @ weights
            scores[:, true] = -torch.inf
            probs = scores.softmax(1)
            yield members, probs, torch.multinomial(probs, 1, generator=generator).squeeze(1)


def _part_flips(n: int, rate: float, std: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """Which samples part-dependent noise flips, and the probabilities that it does."""
    check_rate(rate)
    check_number("std", std, "positive", lambda std: std > 0)
    uniform, rates = _uniform(n, generator), _truncated_normal(rate, std, n, generator)
    return uniform < rates, rates


def _uniform(n: int, generator: Generator) -> Tensor:
    return torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64).cpu()


def _truncated_normal(mean: float, std: float, n: int, generator: Generator) -> Tensor:
    """Inverse transform sampling of a normal distribution between 0 and 1."""
    low, high = torch.special.ndtr((torch.tensor([0.0, 1.0], dtype=torch.float64) - mean) / std)
    u = low + (high - low) * _uniform(n, generator)
    z: Tensor = torch.special.ndtri(u)
    return mean + std * z

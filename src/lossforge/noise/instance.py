"""Instance-dependent noise: the wrong label, and in part whether there is one, follow the input."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from ..errors import check_number
from .inject import Corruption, check_labels


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
    check_number("rate", rate, "in [0, 1]", lambda rate: 0 <= rate <= 1)
    check_number("std", std, "positive", lambda std: std > 0)
    flips = _uniform(len(labels), generator) < _truncated_normal(rate, std, len(labels), generator)
    return _mistake(features, labels, num_classes, flips, generator)


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
    check_number("rate", rate, "in [0, 1]", lambda rate: 0 <= rate <= 1)
    flips = torch.zeros(len(labels), dtype=torch.bool)
    order = torch.randperm(len(labels), generator=generator, device=generator.device).cpu()
    flips[order[: round(rate * len(labels))]] = True
    return _mistake(features, labels, num_classes, flips, generator)


def _mistake(
    features: Tensor, labels: Tensor, num_classes: int, flips: Tensor, generator: Generator
) -> Corruption:
    """Give the samples marked in `flips` the label they are confused with."""
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
    given = labels.clone()
    for members, probs in _confusions(features, labels, num_classes, generator):
        drawn = torch.multinomial(probs, 1, generator=generator).squeeze(1)
        given[members] = torch.where(flips[members], drawn.to(labels.device), labels[members])
    return Corruption(given, given != labels)


def _confusions(
    features: Tensor, labels: Tensor, num_classes: int, generator: Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Per class: its samples, and for each the probabilities of the wrong classes."""
    flat = features.flatten(1)
    for true in range(num_classes):
        weights = torch.randn(
            flat.shape[1], num_classes, generator=generator, device=generator.device
        )
        (members,) = torch.where(labels == true)
        if len(members):
            scores = flat[members].to(weights) @ weights
            scores[:, true] = -torch.inf
            yield members, scores.softmax(1)


def _uniform(n: int, generator: Generator) -> Tensor:
    return torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64).cpu()


def _truncated_normal(mean: float, std: float, n: int, generator: Generator) -> Tensor:
    """Inverse transform sampling of a normal distribution between 0 and 1."""
    low, high = torch.special.ndtr((torch.tensor([0.0, 1.0], dtype=torch.float64) - mean) / std)
    u = low + (high - low) * _uniform(n, generator)
    z: Tensor = torch.special.ndtri(u)
    return mean + std * z

"""Instance-dependent noise depends on the instance, at the rate that was asked for."""

import pytest
import torch
from scipy.stats import kstest, truncnorm

from lossforge import noise
from lossforge.noise.instance import _truncated_normal


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some_data(n=4000, num_classes=5, scale=1.0):
    generator = seeded(7)
    features = scale * torch.randn(n, 3, 8, generator=generator)
    return features, torch.randint(0, num_classes, (n,), generator=generator)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 0.6, 1.0])
def test_the_instance_dependent_rate_is_exact(rate):
    features, labels = some_data()
    result = noise.instance_dependent(features, labels, 5, rate, generator=seeded())
    assert result.flipped.sum().item() == round(rate * len(labels))
    assert torch.equal(result.flipped, result.labels != labels)


def test_the_part_dependent_rate_follows_the_truncated_normal():
    features, labels = some_data()
    for rate in (0.05, 0.3, 0.95):
        law = truncnorm(-rate / 0.1, (1 - rate) / 0.1, loc=rate, scale=0.1)
        result = noise.part_dependent(features, labels, 5, rate, generator=seeded())
        error = 4 * (law.mean() * (1 - law.mean()) / len(labels)) ** 0.5
        assert result.flipped.double().mean().item() == pytest.approx(law.mean(), abs=error)
        drawn = _truncated_normal(rate, 0.1, 4000, seeded(1))
        assert kstest(drawn.numpy(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("make", [noise.part_dependent, noise.instance_dependent])
def test_raw_pixels_determine_the_wrong_class(make):
    # the same image and label twice: large features leave nothing to chance, small ones do
    features, labels = some_data(1000, scale=200.0)
    twice, both = features.repeat(2, 1, 1), labels.repeat(2)
    agreeing = {}
    for scale in (1.0, 0.001):
        result = make(twice * scale, both, 5, 0.9, generator=seeded())
        first, second = result.labels.chunk(2)
        flipped = result.flipped.chunk(2)
        pairs = flipped[0] & flipped[1]
        agreeing[scale] = (first == second)[pairs].double().mean().item()
    assert agreeing[1.0] > 0.95
    assert agreeing[0.001] < 0.6


@pytest.mark.parametrize("make", [noise.part_dependent, noise.instance_dependent])
def test_same_generator_same_labels(make):
    features, labels = some_data(500)
    draws = [make(features, labels, 5, 0.4, generator=seeded(s)).labels for s in (2, 2, 3)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_absent_classes_and_images_of_bytes_are_taken():
    images = torch.randint(0, 256, (30, 3, 4, 4), dtype=torch.uint8)
    labels = torch.tensor([0, 2, 5]).repeat(10)
    result = noise.instance_dependent(images, labels, 7, 0.5, generator=seeded())
    assert result.flipped.sum() == 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 1.5}, "rate must be"),
        ({"num_classes": 1}, "labels must lie in"),
        ({"features": torch.zeros(3, 2)}, r"each of the 10 labels, got shape \(3, 2\)"),
        ({"features": torch.zeros(10)}, r"each of the 10 labels, got shape \(10,\)"),
        ({"features": torch.full((10, 2), torch.nan)}, "must be finite"),
    ],
)
@pytest.mark.parametrize("make", [noise.part_dependent, noise.instance_dependent])
def test_what_is_refused(make, change, message):
    settings = {
        "features": torch.zeros(10, 2),
        "labels": torch.arange(2).repeat(5),
        "num_classes": 2,
        "rate": 0.2,
    }
    with pytest.raises(ValueError, match=message):
        make(**{**settings, **change}, generator=seeded())

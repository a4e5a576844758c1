"""Losses designed for a noise are proved under it, and what is admitted passes."""

import math

import pytest
import torch

import lossforge
from lossforge import TargetSeparation
from lossforge.noise import asymmetric, pair, symmetric
from lossforge.theory import allowed_ratio, certify, curvature_interval, design, frontier
from lossforge.theory.design import make_base
from lossforge.theory.weights import read_noise

NOISES = {
    "symmetric": symmetric(10, 0.8),
    "pair": pair(10, 0.4),
    "published": asymmetric("cifar10", 0.4),
    "two": symmetric(2, 0.3),
    "overlapping": torch.tensor([[0.9, 0.05, 0.05], [0.42, 0.55, 0.03], [0.33, 0.32, 0.35]]),
}


@pytest.mark.parametrize(
    "family", ["exponential", pytest.param("quadratic", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name",
    ["published", *(pytest.param(n, marks=pytest.mark.slow) for n in NOISES if n != "published")],
)
def test_the_recommended_loss_is_proved(family, name):
    noise = NOISES[name]
    found = design(len(noise), noise, family)
    assert found.verdict is not None
    assert found.verdict.status == "PROVED", str(found.verdict)
    assert certify(found.loss, noise).status == "PROVED"
    assert str(lossforge.parse(str(found.loss))) == str(found.loss)


@pytest.mark.slow
def test_intervals_of_the_coefficient():
    assert design(10, symmetric(10, 0.8)).a_interval == pytest.approx((0.8 / 8.2, 0.25))
    assert design(10, pair(10, 0.4)).tau_interval == pytest.approx((6, 13.5))
    overlapping = design(3, NOISES["overlapping"])
    assert overlapping.a_interval is None
    assert math.isfinite(overlapping.ratio)


@pytest.mark.parametrize("family", ["exponential", "quadratic"])
@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_admitted_curvatures_pass_and_others_do_not(family, gamma, classes):
    noise = torch.zeros(classes)
    noise[0], noise[1] = 0.7, 0.3
    allowed = float(allowed_ratio(read_noise(noise), 0.1).ratio)
    for end in curvature_interval(family, allowed, gamma, classes):
        if not math.isfinite(end):
            continue
        edge = 1 / max(gamma, 1 - gamma) ** 2
        inside = TargetSeparation(make_base(family, 1.0, end * 0.999, gamma), a=0.1)
        assert certify(inside, noise, claim="transfers").status == "PROVED"
        if family == "exponential" or -edge < end * 1.001:
            outside = TargetSeparation(make_base(family, 1.0, end * 1.001, gamma), a=0.1)
            assert certify(outside, noise, claim="transfers").status == "REFUTED"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["exponential", "quadratic"])
def test_unknown_noise_takes_the_best_of_both_frontiers(family):
    found = design(10, family=family)
    assert found.verdict is None
    rates = {item.direction: item.rate / item.limit for item in found.frontiers}
    base_function = make_base(family, 8.0, found.curvature, 0.5)

    def worst(tau):
        separated = TargetSeparation(base_function, tau=tau)
        found = [frontier(separated, 10, way, claim="transfers") for way in ("symmetric", "pair")]
        return min(item.rate / item.limit for item in found)

    assert min(rates.values()) >= worst(found.tau) - 1e-9
    assert worst(found.tau) >= max(worst(tau) for tau in (0.0, 1.0, 2.0, 5.0, 9.0)) - 1e-3


def test_admits_asks_the_ratio_test():
    found = design(10, NOISES["pair"])
    assert found.admits(a=found.a, curvature=-50.0, gamma=0.2, noise=NOISES["pair"])
    assert not found.admits(a=1 / 9, curvature=-50.0, gamma=0.2, noise=NOISES["pair"])


def test_families_have_names():
    with pytest.raises(ValueError, match="family must be exponential or quadratic"):
        design(10, family="cubic")

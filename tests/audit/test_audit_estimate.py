"""The estimate, its interval, and the classes it names."""

import math

import pytest
import torch
from audit_fixtures import labels, posterior

from lossforge.audit import estimate
from lossforge.audit.noise import ABOVE, BELOW, sure_rate
from lossforge.noise import estimate_noise, flips, symmetric
from lossforge.noise.measure import EstimationError


def run(T, n=900, repeats=1, resamples=60, seed=0):
    true, given = labels(n, T)
    probs = [posterior(true, T, 1 + 0.1 * k) for k in range(repeats)]
    generator = torch.Generator().manual_seed(seed)
    return estimate(probs, given, generator=generator, resamples=resamples), probs, given


def test_the_rate_is_the_lower_of_two_and_the_matrix_has_it():
    found, probs, given = run(symmetric(3, 0.2))
    alone = estimate_noise(probs[0], given)
    assert found.most_rate == alone.rate
    assert found.sure_rate == sure_rate(probs[0], given)
    assert found.rate.value == pytest.approx(min(found.most_rate, found.sure_rate))
    assert found.rate.value == pytest.approx(0.2, abs=0.03)
    prior, T = found.estimate.prior, found.estimate.T
    assert 1 - float(prior @ T.diagonal()) == pytest.approx(found.rate.value)
    flipped = ~torch.eye(3, dtype=torch.bool)
    ratio = T[flipped] / alone.T[flipped]
    assert torch.allclose(ratio, ratio.mean().expand(6))
    assert found.repeats == (pytest.approx(found.rate.value),)


def naive_sure_rate(probs, given, share):
    """The share of labels unlike the prediction among the surest of each predicted class."""
    predicted, total = probs.argmax(1).tolist(), 0.0
    for k in set(predicted):
        rows = [row for row, one in enumerate(predicted) if one == k]
        rows.sort(key=lambda row: -float(probs[row, k]))
        surest = rows[: math.ceil(share * len(rows))]
        total += len(rows) * sum(int(given[row]) != k for row in surest) / len(surest)
    return total / len(predicted)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_rate_among_sure_predictions_is_the_naive_one(share):
    draw = torch.Generator().manual_seed(3)
    probs = torch.randn(211, 4, generator=draw, dtype=torch.float64).softmax(1)
    given = torch.randint(4, (211,), generator=draw)
    assert sure_rate(probs, given, share) == pytest.approx(naive_sure_rate(probs, given, share))


def overlapping(rate, n=6000, seed=0):
    """Labels with noise of classes that overlap: even the best network errs in 18 % of samples."""
    T = symmetric(3, rate)
    true, given = labels(n, T, seed)
    draw = torch.Generator().manual_seed(seed)
    centres = 2.5 * torch.eye(3, dtype=torch.float64) / 2**0.5
    points = centres[true] + torch.randn(n, 3, generator=draw, dtype=torch.float64)
    clean = (-0.5 * torch.cdist(points, centres) ** 2).softmax(1)  # Bayes' rule
    return clean @ T, given


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3])
def test_most_of_what_no_network_can_learn_does_not_count_as_noise(rate):
    probs, given = overlapping(rate)
    generator = torch.Generator().manual_seed(0)
    found = estimate([probs], given, generator=generator, resamples=20)
    assert found.most_rate > rate + 0.07  # by confident learning alone
    assert rate - 0.01 < found.rate.value < rate + 0.04
    assert found.rate.low <= rate <= found.rate.high


def test_the_interval_holds_the_estimate_and_narrows_with_the_data():
    wide, narrow = (run(symmetric(3, 0.2), n)[0].rate for n in (150, 3000))
    for one in (wide, narrow):
        assert one.low < one.value < one.high
        assert one.low < 0.2 < one.high
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


def test_the_interval_goes_beyond_chance_by_its_factors():
    n = 3000
    rate = run(symmetric(3, 0.2), n, resamples=200)[0].rate
    error = 1.96 * (0.2 * 0.8 / n) ** 0.5
    assert rate.low == pytest.approx(BELOW * (0.2 - error), abs=0.02)
    assert rate.high == pytest.approx(ABOVE * (0.2 + error), abs=0.02)


def test_the_largest_flips_come_first():
    T = flips(3, {2: 0, 0: 1}, 0.3)
    T[2] = torch.tensor([0.2, 0.0, 0.8])
    found, _, given = run(T)
    first, second = found.confusions[:2]
    assert (first.true, first.given) == (0, 1)
    assert (second.true, second.given) == (2, 0)
    assert first.rate.value == pytest.approx(0.3, abs=0.05)
    assert first.rate.low < first.rate.value < first.rate.high
    assert first.rows == pytest.approx(0.3 * len(given) / 3, rel=0.2)
    assert all(one.true != one.given for one in found.confusions)


def test_clean_labels_have_no_confusions():
    true, given = labels(150, torch.eye(3, dtype=torch.float64))
    probs = posterior(true, torch.eye(3, dtype=torch.float64))
    found = estimate([probs], given, generator=torch.Generator().manual_seed(0), resamples=5)
    assert found.rate.value == 0
    assert found.confusions == ()
    assert found.dominated == []


def test_a_class_that_is_mostly_given_another_label_is_named():
    T = flips(3, {1: 2}, 0.6)
    true, given = labels(900, T)
    # the network is told the truth here: from such labels it could not learn it
    probs = posterior(true, symmetric(3, 0.1))
    found = estimate([probs], given, generator=torch.Generator().manual_seed(0), resamples=5)
    assert found.dominated == [(1, 2)]


def test_repeats_are_averaged_and_told_one_by_one():
    found, probs, given = run(symmetric(3, 0.2), repeats=3)
    single = [min(estimate_noise(one, given).rate, sure_rate(one, given)) for one in probs]
    assert found.repeats == pytest.approx(single)
    assert found.most_rate == estimate_noise(torch.stack(probs).mean(0), given).rate


def test_no_class_is_lost_in_a_resample():
    T = symmetric(3, 0.1)
    true = torch.tensor([0] * 60 + [1] * 60 + [2] * 3)
    found = estimate(
        [posterior(true, T)], true, generator=torch.Generator().manual_seed(0), resamples=50
    )
    assert len(found.resampled) == 50


def test_the_same_generator_gives_the_same_interval():
    first, again, other = (run(symmetric(3, 0.2), seed=seed)[0].rate for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_class_without_a_confident_sample_is_named():
    given = torch.arange(60) % 20  # three samples of each class, and chance predicts them
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(60, 20, generator=generator, dtype=torch.float64).softmax(1)
    names = [f"c{k}" for k in range(20)]
    with pytest.raises(
        EstimationError, match=r"class 'c\d+'.* cannot be estimated, because no samp"
    ):
        estimate([probs], given, generator=generator, classes=names)
    with pytest.raises(EstimationError, match=r"the noise of class \d+.* cannot be estimated"):
        estimate([probs], given, generator=generator)

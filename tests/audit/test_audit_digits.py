"""The whole audit on real images: the rate it finds is near the truth, which it never sees."""

from dataclasses import replace

import pytest
import torch

from lossforge import noise
from lossforge.audit import Subject, audit, read_subject
from lossforge.data import load
from lossforge.noise.transition import MNIST_FLIPS


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["symmetric:0.2", "symmetric:0.4", "asymmetric:0.2", "asymmetric:0.4"]
)
def test_the_noise_of_digits_is_found_within_five_points(text):
    found = audit(read_subject("digits", noise=text), losses=["BEF", "CE"], repeats=1, trials=False)
    truth = found.subject.injected
    assert found.noise.rate.value == pytest.approx(truth, abs=0.05)
    assert found.noise.rate.low <= truth <= found.noise.rate.high
    if text.startswith("asymmetric"):
        pairs = {(one.true, one.given) for one in found.noise.confusions[:5]}
        assert len(pairs & set(MNIST_FLIPS.items())) >= 4
    assert len(found.suspects) == pytest.approx(truth * 1438, rel=0.35)


@pytest.mark.slow
def test_clean_digits_are_nearly_clean():
    found = audit(read_subject("digits"), losses=["BEF"], repeats=1, trials=False)
    assert found.noise.rate.value < 0.03


def test_true_labels_and_tests_are_refused():
    dataset = load("digits")
    with pytest.raises(ValueError, match="neither true labels nor tests"):
        Subject("digits", "data set", dataset, where=str)
    with pytest.raises(ValueError, match="neither true labels nor tests"):
        Subject("digits", "data set", replace(dataset, tests={}), where=str)
    assert dataset.without_truth().train.true is None


def test_named_data_come_without_their_truth():
    subject = read_subject("Digits", noise="symmetric:0.4", seed=3)
    assert subject.dataset.train.true is None
    assert subject.dataset.tests == {}
    true = load("digits").train.true
    assert subject.injected == noise.noise_rate(true, subject.given)
    assert read_subject("digits").injected is None
    assert read_subject("digits").given.equal(true)

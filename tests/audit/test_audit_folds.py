"""Cross-validation: nobody predicts what he has seen, and training stops in time."""

import pytest
import torch
from audit_fixtures import CLASSES

from lossforge.audit import cross_validation
from lossforge.audit.cross_validation import (
    cross_validate,
    network_of,
    settings_for,
    trial_epochs,
)
from lossforge.benchmark.run import samples
from lossforge.data import Dataset, Split
from lossforge.training import folds
from lossforge.training.folds import Fold, assign_folds, fit_fold


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)


def blobs(n=150, wrong=0.0, seed=0):
    draw = torch.Generator().manual_seed(seed)
    true = torch.arange(n) % 3
    centres = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    inputs = centres[true] + 0.5 * torch.randn(n, 2, generator=draw)
    flipped = torch.rand(n, generator=draw) < wrong
    given = torch.where(flipped, (true + 1) % 3, true)
    return Dataset("blobs", CLASSES, Split(inputs, given), {}), true


def test_every_class_is_spread_over_all_folds():
    given = torch.tensor([0] * 11 + [1] * 5 + [2] * 23)
    assigned = assign_folds(given, 5, 0)
    for label in range(3):
        counts = assigned[given == label].bincount(minlength=5)
        assert counts.max() - counts.min() <= 1
    assert assigned.bincount().tolist() == [8, 8, 8, 8, 7]
    assert torch.equal(assigned, assign_folds(given, 5, 0))
    assert not torch.equal(assigned, assign_folds(given, 5, 1))


def test_no_network_predicts_what_it_has_seen(monkeypatch):
    dataset, _ = blobs()
    seen = []
    original = folds.train

    def train(model, loss, samples, *rest, **options):
        seen.append((model, samples.given.clone()))
        model.inputs = samples.inputs(torch.arange(len(samples)), torch.device("cpu"))
        return original(model, loss, samples, *rest, **options)

    def predict(model, part):
        held = part.inputs(torch.arange(len(part)), torch.device("cpu"))
        assert not (held[:, None] == model.inputs[None]).all(2).any()
        assert len(held) + len(model.inputs) == 150
        assert part.true is None
        return original_predict(model, part)

    original_predict = folds.predict
    monkeypatch.setattr(folds, "train", train)
    monkeypatch.setattr(folds, "predict", predict)
    found = cross_validate(dataset, folds=3, epochs=2, seed=0)
    assert len(seen) == 3
    assert found.probs.sum(1).allclose(torch.ones(150, dtype=torch.float64))


@pytest.mark.slow
def test_wrong_labels_are_seen_through():
    dataset, true = blobs(300, 0.2)
    found = cross_validate(dataset, folds=3, epochs=30, seed=0)
    assert (found.probs.argmax(1) == true).double().mean() > 0.97
    wrong = dataset.train.given != true
    confidence = found.probs.gather(1, dataset.train.given[:, None])[:, 0]
    assert confidence[wrong].mean() < 0.35 < confidence[~wrong].mean()


def test_training_stops_when_held_out_labels_are_predicted_no_better(monkeypatch):
    scores = iter([-2.0, -1.0, -1.5, -1.5, -1.4, -1.3, -1.2, -1.1, -0.5, -0.4])

    def predict(model, part):
        other = 0.5 * (1 - torch.tensor(next(scores)).exp())
        log_probs = other.log().expand(len(part), 3).clone()
        log_probs[torch.arange(len(part)), part.given] = (1 - 2 * other).log()
        return log_probs

    monkeypatch.setattr(folds, "predict", predict)
    dataset, _ = blobs(60)
    seen = samples(dataset, dataset.train)
    fold, model = Fold(0, torch.arange(60), seen, seen), cross_validation.fresh_network(dataset, 0)
    loss = torch.nn.CrossEntropyLoss()
    best = fit_fold(fold, model, loss, settings_for(60, 60), seed=0, patience=6)
    assert best.epoch == 2
    assert next(scores) == -0.5  # epoch 8, six after the best, was the last


def test_the_same_seed_gives_the_same_probabilities():
    dataset, _ = blobs(60, 0.2)
    state = torch.get_rng_state()
    first, again = (cross_validate(dataset, folds=2, epochs=3, seed=4) for _ in range(2))
    other = cross_validate(dataset, folds=2, epochs=3, seed=5)
    assert torch.equal(first.probs, again.probs)
    assert not torch.equal(first.probs, other.probs)
    assert torch.equal(state, torch.get_rng_state())


def test_a_small_set_still_takes_steps():
    assert settings_for(40, 60).batch_size == 16
    assert settings_for(1150, 60).batch_size == 128
    assert settings_for(10**6, 60).batch_size == 256


def test_images_get_a_convolutional_network():
    images = torch.zeros(6, 3, 16, 16)
    dataset = Dataset("i", CLASSES, Split(images, torch.arange(6) % 3), {})
    assert network_of(dataset) == "cnn8-narrow"
    assert network_of(blobs()[0]) == "mlp"


def test_trials_are_as_long_as_the_data_ask_for():
    assert trial_epochs([3, 4, 5], 60) == 20
    assert trial_epochs([6, 9, 12, 14, 30], 60) == 36
    assert trial_epochs([30, 40, 50], 60) == 40
    assert trial_epochs([30, 40, 50], 25) == 25

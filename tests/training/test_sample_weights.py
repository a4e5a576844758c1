"""Weights of samples in training: of the mean over a batch, and what 0 and 2 mean."""

import copy

import pytest
import torch
from torch import nn

from lossforge import BEF, CE
from lossforge.training import Samples, Settings, make_method, train
from lossforge.training.folds import assign_folds, split_folds
from lossforge.training.sample_loss import SampleLoss

N, FEATURES, K = 40, 6, 3


@pytest.fixture
def data():
    return torch.randn(N, FEATURES), torch.randint(K, (N,))


def samples(inputs, labels, weight=None):
    return Samples(lambda rows, chance: inputs[rows], labels, weight=weight)


def fitted(part, loss=None, **settings):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, K))
    usual = {"epochs": 6, "batch_size": N, "lr": 0.3, "probe": 0}
    state = train(model, loss or CE(), part, {}, Settings(**{**usual, **settings}), seed=0)
    return [one.detach() for one in model.parameters()], state.metrics


def assert_same(one, other, tolerance=1e-12):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "make",
    [CE, BEF, lambda: CE(weight=torch.tensor([1.0, 2.0, 0.5]))],
    ids=["CE", "BEF", "CE with weights of classes"],
)
def test_on_full_batches_a_weight_of_0_is_a_row_left_out(data, make):
    inputs, labels = data
    loss = make()
    weight = (torch.arange(N) % 4 > 0).double()
    kept = weight > 0
    weighted, metrics = fitted(samples(inputs, labels, weight), loss)
    dropped, expected = fitted(samples(inputs[kept], labels[kept]), loss)
    assert_same(weighted, dropped)
    assert [one["loss"] for one in metrics] == pytest.approx([one["loss"] for one in expected])
    unweighted, _ = fitted(samples(inputs, labels), loss)
    assert any(not torch.allclose(a, b) for a, b in zip(weighted, unweighted, strict=True))


def test_on_full_batches_a_weight_of_2_is_a_row_twice(data):
    inputs, labels = data
    weight = 1.0 + (torch.arange(N) % 3 == 0)
    twice = torch.cat([torch.arange(N), (weight == 2).nonzero()[:, 0]])
    repeated, _ = fitted(samples(inputs[twice], labels[twice]), batch_size=len(twice))
    assert_same(fitted(samples(inputs, labels, weight))[0], repeated)


def test_weights_of_one_change_no_bit_in_small_batches(data):
    plain, metrics = fitted(samples(*data), batch_size=7)
    weighted, found = fitted(samples(*data, torch.ones(N)), batch_size=7)
    assert all(torch.equal(a, b) for a, b in zip(plain, weighted, strict=True))
    assert metrics == found


def test_a_step_descends_along_the_weighted_mean(data):
    inputs, labels = data
    weight = torch.rand(N)
    torch.manual_seed(1)
    model = nn.Linear(FEATURES, K)
    start = copy.deepcopy(model)
    settings = Settings(epochs=1, batch_size=N, lr=0.5, momentum=0.0, weight_decay=0.0, probe=0)
    train(model, CE(), samples(inputs, labels, weight), {}, settings, seed=0)
    values = nn.functional.cross_entropy(start(inputs), labels, reduction="none")
    sum(w * v for w, v in zip(weight, values, strict=True)).div(weight.sum()).backward()
    for after, before in zip(model.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(after, before - 0.5 * before.grad)


def test_the_divisor_is_the_weight_of_what_is_kept():
    labels, weight = torch.tensor([0, 1, -100, 1]), torch.tensor([0.5, 2.0, 9.0, 0.0])
    device = torch.device("cpu")
    assert SampleLoss(CE(), device).kept(labels) == 3
    assert SampleLoss(CE(), device).kept(labels, weight) == 2.5
    loss = SampleLoss(CE(weight=torch.tensor([4.0, 1.0])), device)
    assert loss.kept(labels) == 6
    assert loss.kept(labels, weight) == 4


def test_a_batch_of_weight_0_makes_no_step_and_none_at_all_is_refused(data):
    inputs, labels = data
    with pytest.raises(ValueError, match="with a positive weight, got none"):
        fitted(samples(inputs, labels, torch.zeros(N)))
    one = torch.zeros(N)
    one[3] = 1.0
    parameters, _ = fitted(samples(inputs, labels, one), batch_size=4, epochs=1)
    assert all(value.isfinite().all() for value in parameters)


@pytest.mark.parametrize("text", ["soft_bootstrap", "elr", "mixup", "coteaching(forget_rate=0.2)"])
def test_methods_that_change_the_batch_refuse_weights(data, text):
    method = make_method(text)
    part = samples(*data, torch.ones(N))
    model = nn.Linear(FEATURES, K)
    peers = [nn.Linear(FEATURES, K) for _ in range(method.networks - 1)]
    settings = Settings(epochs=1, batch_size=8, probe=0)

    def run():
        train(model, CE(), part, {}, settings, seed=0, method=method, peers=peers)

    if text in ("soft_bootstrap", "elr"):
        run()
    else:
        with pytest.raises(ValueError, match=f"no weights for the method {text.partition('(')[0]}"):
            run()


def test_folds_and_batches_carry_the_weights(data):
    weight = torch.rand(N)
    part = samples(*data, weight)
    for fold in split_folds(part, assign_folds(part.given, 4, 0)):
        assert torch.equal(fold.held_out.weight, weight[fold.rows])
    with pytest.raises(ValueError, match=r"weight must have the shape \(40,\)"):
        samples(*data, weight[:-1])

"""Mixup against the equations of Zhang et al."""

import random
import statistics

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

import lossforge
from lossforge.errors import SpecError
from lossforge.training import generator, make_method


def watched(model):
    """Collect the inputs of every call of a model."""
    seen = []
    model.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach().clone()))
    return seen


@pytest.mark.parametrize("loss", ["CE", "weights", "MAE"])
def test_one_step_is_that_of_the_equation(loss):
    inputs, given = two_moons(12)
    weights = torch.tensor([0.5, 2.0]) if loss == "weights" else torch.ones(2)
    criterion = lossforge.MAE() if loss == "MAE" else nn.CrossEntropyLoss(weight=weights)
    start = mlp(2, 2)
    chance = generator(0, "method", 0, 0)
    share = random.Random(int(torch.randint(2**62, (), generator=chance))).betavariate(0.5, 0.5)
    partner = torch.randperm(12, generator=chance).tolist()
    order = torch.randperm(12, generator=generator(0, "order", 0))
    x, y = inputs[order], given[order].tolist()

    def value(u, label):
        return 1 - u[label] if loss == "MAE" else -weights[label] * u[label].log()

    def objective(model):
        total = 0.0
        for i, j in enumerate(partner):
            u = model((share * x[i] + (1 - share) * x[j])[None]).softmax(1)[0]
            total = total + share * value(u, y[i]) + (1 - share) * value(u, y[j])
        return total / weights[given].sum()

    expected = descended(start, objective)
    seen = watched(start)
    state = one_step(make_method("mixup(alpha=0.5)"), criterion, [start], inputs, given)
    mixed = torch.stack([share * x[i] + (1 - share) * x[j] for i, j in enumerate(partner)])
    torch.testing.assert_close(seen[0], mixed)
    assert_weights(state.model, expected)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_shares_have_the_law_of_beta(alpha):
    """Of two samples at 0 and 1 the first tells the share, of variance 1 / (4 (2 alpha + 1))."""
    inputs, given = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1])
    model = mlp(2, 2)
    seen = watched(model)
    one_step(make_method(f"mixup(alpha={alpha})"), nn.CrossEntropyLoss(), [model], inputs, given,
             epochs=4000)  # fmt: skip
    shares = [float(batch[0, 0]) for batch in seen]
    # with the other sample or with itself, half of the time each
    apart = [share for share, batch in zip(shares, seen, strict=True) if share + batch[1, 0] == 1
             and 0 < share < 1]  # fmt: skip
    assert 1700 < len(apart) < 2300
    assert statistics.fmean(apart) == pytest.approx(0.5, abs=0.03)
    assert statistics.variance(apart) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


def test_the_published_setting_is_the_default():
    assert str(make_method("mixup")) == "mixup(alpha=1.0)"
    with pytest.raises(SpecError, match="alpha must be positive, got 0"):
        make_method("mixup(alpha=0)")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_mixup_fits_corrupted_labels_less_than_plain_cross_entropy(seed):
    plain, mixed = (
        digits_accuracy(method, "symmetric:0.6", seed=seed) for method in ("plain", "mixup")
    )
    assert mixed > plain + 4

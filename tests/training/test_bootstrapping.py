"""Soft and hard bootstrapping against the equations of Reed et al."""

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

import lossforge
from lossforge.errors import SpecError
from lossforge.training import make_method


def targets(u, label, beta, hard):
    """beta t + (1 - beta) q, with q the probabilities or the class of the largest."""
    own = u
    if hard:
        own = torch.zeros_like(u)
        own[int(u.argmax())] = 1.0
    t = torch.zeros_like(u)
    t[label] = 1.0
    return beta * t + (1 - beta) * own


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("loss", ["CE", "MAE"])
def test_one_step_is_that_of_the_equation(hard, loss):
    inputs, given = two_moons(12)
    inputs = 3 * inputs
    start, beta = mlp(2, 2), 0.7
    losses = {"CE": lambda u: -u.log(), "MAE": lambda u: 1 - u}

    def objective(model):
        total = 0.0
        for x, label in zip(inputs, given.tolist(), strict=True):
            u = model(x[None]).softmax(1)[0]
            total = total + (targets(u, label, beta, hard) * losses[loss](u)).sum()
        return total / len(given)

    expected = descended(start, objective)
    name = "hard_bootstrap" if hard else "soft_bootstrap"
    method = make_method(f"{name}(beta={beta})")
    criterion = nn.CrossEntropyLoss() if loss == "CE" else lossforge.MAE()
    state = one_step(method, criterion, [start], inputs, given)
    assert_weights(state.model, expected)


def test_published_settings_are_the_defaults():
    assert str(make_method("soft_bootstrap")) == "soft_bootstrap(beta=0.95)"
    assert str(make_method("hard_bootstrap")) == "hard_bootstrap(beta=0.8)"


@pytest.mark.parametrize("beta", ["0", "1.1", "'a'", "True"])
def test_a_wrong_beta_is_refused(beta):
    with pytest.raises(SpecError, match="beta must be"):
        make_method(f"soft_bootstrap(beta={beta})")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_hard_bootstrapping_beats_plain_cross_entropy_under_symmetric_noise(seed):
    plain, hard = (
        digits_accuracy(method, "symmetric:0.6", seed=seed)
        for method in ("plain", "hard_bootstrap")
    )
    assert hard > plain + 4


def test_soft_bootstrapping_makes_predictions_more_certain():
    """Its second term is the entropy of the prediction, which Reed et al. say it minimises."""
    inputs, true = two_moons(200)
    given = torch.where(torch.arange(200) % 4 == 0, 1 - true, true)
    entropies = []
    for text in ("plain", "soft_bootstrap(beta=0.9)", "soft_bootstrap(beta=0.7)"):
        model = mlp(2, 2)
        one_step(make_method(text), nn.CrossEntropyLoss(), [model], inputs, given, epochs=300)
        with torch.no_grad():
            u = model(inputs).softmax(1)
        entropies.append(float(-(u * u.log()).sum(1).mean()))
    assert entropies[0] > entropies[1] + 0.02
    assert entropies[1] > entropies[2] + 0.05

"""Early-learning regularisation against the equations of Liu et al."""

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

from lossforge.errors import SpecError
from lossforge.training import make_method

CLIP = 1e-4


def probabilities(model, x):
    return model(x[None]).softmax(1)[0].clamp(CLIP, 1 - CLIP)


def test_two_steps_are_those_of_the_equations():
    """The average of the second step holds the predictions of the first."""
    inputs, given = two_moons(12)
    start, beta, lam = mlp(2, 2), 0.6, 2.0
    averages = torch.zeros(12, 2)

    def objective(model):
        total = 0.0
        for i, (x, label) in enumerate(zip(inputs, given.tolist(), strict=True)):
            u = probabilities(model, x)
            now = u.detach() / u.detach().sum()
            averages[i] = beta * averages[i] + (1 - beta) * now
            total = total - model(x[None]).log_softmax(1)[0, label]
            total = total + lam * torch.log(1 - (averages[i].clone() * u).sum())
        return total / len(given)

    first = descended(start, objective)
    model = mlp(2, 2)
    model.load_state_dict(first)
    second = descended(model, objective)
    method = make_method(f"elr(beta={beta}, lam={lam})")
    state = one_step(
        method, nn.CrossEntropyLoss(), [start], inputs, given, epochs=2, schedule="constant"
    )
    assert_weights(state.model, second)
    torch.testing.assert_close(state.memory["average"], averages)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_equal_class_weights_leave_the_mean_of_the_regulariser(reduction):
    """A mean divides by the weights of the labels; lam weighs the mean over samples."""
    inputs, given = two_moons(12)
    plain, weighted = (
        one_step(
            make_method("elr"), nn.CrossEntropyLoss(weight=weight, reduction=reduction),
            [mlp(2, 2)], inputs, given, lr=0.01,
        ).model
        for weight in (None, torch.full((2,), 2.0 if reduction == "mean" else 1.0))
    )  # fmt: skip
    assert_weights(weighted, plain)


def test_certain_predictions_stay_finite():
    inputs, given = two_moons(12)
    model = mlp(2, 2)
    with torch.no_grad():
        model[2].weight *= 1e4
    state = one_step(make_method("elr"), nn.CrossEntropyLoss(), [model], inputs, given, epochs=3)
    assert all(value.isfinite().all() for value in state.model.values())


def test_published_settings_are_the_defaults():
    assert str(make_method("elr")) == "elr(beta=0.7, lam=3.0, clip=0.0001)"
    for text in ("elr(beta=1)", "elr(lam=-1)", "elr(clip=0)"):
        with pytest.raises(SpecError, match="must be"):
            make_method(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_elr_prevents_memorisation_of_symmetric_noise(seed):
    plain, elr = (
        digits_accuracy(method, "symmetric:0.6", seed=seed) for method in ("plain", "elr")
    )
    assert elr > plain + 10

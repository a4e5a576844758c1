"""The noise-adaptation layer against the released notebook and layer."""

import numpy as np
import pytest
import torch
from torch import nn
from training_problems import assert_weights, digits_accuracy, mlp, one_step, two_moons

import lossforge
from lossforge.errors import SpecError
from lossforge.training import make_method


def released_weights(predicted, noisy, classes):
    """The logarithm of the confusion matrix, rows the predicted classes."""
    confusion = np.zeros((classes, classes))
    for n, p in zip(noisy.tolist(), predicted.tolist(), strict=True):
        confusion[p, n] += 1.0
    confusion /= confusion.sum(axis=1, keepdims=True)
    return torch.from_numpy(np.log(confusion + 1e-8))


class Channel(nn.Module):
    """A network with the layer on top, both trained by one optimizer."""

    def __init__(self, model, weights):
        super().__init__()
        self.model, self.layer = model, nn.Parameter(weights)

    def forward(self, x):
        return self.model(x).softmax(1) @ self.layer.softmax(1)


@pytest.mark.parametrize("loss", ["CE", "MAE"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_steps_are_those_of_network_and_layer_together(loss, optimizer):
    """One epoch alone, then four with the layer; momentum and moments go on from step to step."""
    inputs, true = two_moons(40)
    inputs = 3 * inputs
    given = torch.where(torch.arange(40) % 5 == 0, 1 - true, true)
    start, lr = mlp(2, 2), 0.05 if optimizer == "adam" else 0.5

    def made(parameters):
        if optimizer == "adam":
            return torch.optim.Adam(parameters, lr, (0.8, 0.999))
        return torch.optim.SGD(parameters, lr, momentum=0.8)

    def step(steps, value):
        steps.zero_grad()
        value.backward()
        steps.step()

    def mean(u):
        chosen = u[torch.arange(40), given]
        return (-chosen.log() if loss == "CE" else 1 - chosen).mean()

    model = mlp(2, 2)
    steps = made(model.parameters())
    step(steps, mean(model(inputs).softmax(1)))
    with torch.no_grad():
        first = released_weights(model(inputs).argmax(1), given, 2)
    channel = Channel(model, first.clone())
    steps.add_param_group({"params": [channel.layer]})
    for _ in range(4):
        step(steps, mean(channel(inputs)))
    criterion = nn.CrossEntropyLoss() if loss == "CE" else lossforge.MAE()
    state = one_step(
        make_method("adaptation(warm_up=1)"), criterion, [start], inputs, given, epochs=5, lr=lr,
        schedule="constant", momentum=0.8, optimizer=optimizer,
    )  # fmt: skip
    assert not torch.allclose(channel.layer, first, atol=1e-3)
    torch.testing.assert_close(state.memory["layer"], channel.layer.detach())
    assert_weights(state.model, model.state_dict())


def test_a_class_that_is_never_predicted_begins_with_equal_shares():
    inputs, given = two_moons(40)
    model = mlp(2, 3)
    with torch.no_grad():
        model[2].bias[2] = -50.0
    state = one_step(
        make_method("adaptation(warm_up=1)"), nn.CrossEntropyLoss(), [model], inputs, given,
        epochs=2, lr=1e-9,
    )  # fmt: skip
    torch.testing.assert_close(state.memory["layer"][2].softmax(0), torch.full((3,), 1 / 3))


def test_options_are_checked():
    assert str(make_method("adaptation")) == "adaptation(warm_up=20)"
    with pytest.raises(SpecError, match="warm_up must be"):
        make_method("adaptation(warm_up=0)")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_the_layer_beats_plain_cross_entropy_where_classes_are_confused(seed):
    plain, adapted = (
        digits_accuracy(method, "asymmetric:0.4", seed=seed)
        for method in ("plain", "adaptation(warm_up=5)")
    )
    assert adapted > plain + 4

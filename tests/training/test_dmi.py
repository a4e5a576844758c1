"""L_DMI against its released code."""

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

from lossforge.errors import SpecError
from lossforge.training import make_method


def released(logits, labels, classes):
    joint = torch.zeros(classes, classes)
    for u, y in zip(logits.softmax(1), labels.tolist(), strict=True):
        for k in range(classes):
            row = torch.zeros(classes, classes)
            row[y, k] = 1.0
            joint = joint + row * u[k]
    return -1.0 * torch.log(torch.abs(torch.det(joint)) + 0.001)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_step_is_that_of_the_equation(classes):
    inputs, labels = two_moons(18)
    labels = (labels + torch.arange(18)) % classes
    start = mlp(2, classes)
    expected = descended(start, lambda model: released(model(inputs), labels, classes))
    method = make_method("dmi(warm_up=0)")
    state = one_step(method, nn.CrossEntropyLoss(), [start], inputs, labels)
    assert_weights(state.model, expected)


def test_noise_scales_the_determinant_by_that_of_its_matrix():
    """So that, without eps, the noise adds a constant to the expected loss."""
    T = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    clean, U = torch.eye(2)[torch.arange(12) % 2], torch.rand(12, 2).softmax(1)
    before, after = (-torch.det(Y.T @ U).abs().log() for Y in (clean, clean @ T))
    torch.testing.assert_close(after - before, -T.det().abs().log())


def test_it_begins_with_the_loss_of_the_run():
    inputs, labels = two_moons(18)
    start = mlp(2, 2)
    expected = descended(start, lambda model: nn.functional.cross_entropy(model(inputs), labels))
    state = one_step(make_method("dmi"), nn.CrossEntropyLoss(), [start], inputs, labels)
    assert_weights(state.model, expected)


def test_options_are_checked():
    assert str(make_method("dmi")) == "dmi(warm_up=10, eps=0.001)"
    for option in ("warm_up=-1", "eps=0"):
        with pytest.raises(SpecError, match="must be"):
            make_method(f"dmi({option})")


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["symmetric:0.4", "asymmetric:0.4"])
def test_it_beats_plain_cross_entropy_under_noise_of_a_matrix(noise):
    plain, informed = (digits_accuracy(method, noise) for method in ("plain", "dmi"))
    assert informed > plain + 4

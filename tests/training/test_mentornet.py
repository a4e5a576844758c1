"""MentorNet's predefined curriculum against its released functions."""

import numpy as np
import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

from lossforge.errors import SpecError
from lossforge.training import make_method


def released_weight(difference, epoch, gamma):
    """Of one sample, at an epoch of 100."""
    if epoch <= 18:
        return 1.0
    if epoch < 90:
        return 1.0 if difference <= 0 else 0.0
    return max(min(-1.0 / gamma * difference + 1, 1), 0)


@pytest.mark.parametrize("gamma", [1.0, 2.5])
def test_weights_are_those_of_the_released_code(gamma):
    method = make_method(f"mentornet_pd(gamma={gamma})")
    differences = torch.linspace(-5, 5, 41)
    for epoch in range(100):
        expected = [released_weight(d, epoch, gamma) for d in differences.tolist()]
        assert method.weights(differences, epoch).tolist() == pytest.approx(expected)


def test_steps_are_those_of_the_equations():
    """Ten epochs of one batch: two with all samples, seven of selection, one linear."""
    inputs, true = two_moons(21)
    given = torch.where(torch.arange(21) % 4 == 0, 1 - true, true)
    start, moving, used = mlp(2, 2), 0.0, []
    model = mlp(2, 2)
    for epoch in range(10):
        with torch.no_grad():
            losses = -model(inputs).log_softmax(1)[torch.arange(21), given].numpy()
        moving = 0.5 * moving + 0.5 * np.percentile(losses, 70, method="nearest")
        v = torch.tensor([released_weight(one - moving, 10 * epoch, 1.0) for one in losses])
        used.append(int((v > 0).sum()))

        def objective(model, v=v):
            return (v * -model(inputs).log_softmax(1)[torch.arange(21), given]).mean()

        model.load_state_dict(descended(model, objective))
    assert used[:2] == [21, 21]
    assert all(0 < count < 21 for count in used[3:9])
    state = one_step(
        make_method("mentornet_pd"), nn.CrossEntropyLoss(), [start], inputs, given,
        epochs=10, schedule="constant",
    )  # fmt: skip
    assert_weights(state.model, model.state_dict())
    assert float(state.memory["average"]) == pytest.approx(moving)


def test_published_settings_are_the_defaults():
    text = "mentornet_pd(percentile=0.7, decay=0.5, gamma=1.0)"
    assert str(make_method("mentornet_pd")) == text
    for option in ("percentile=1", "decay=1", "gamma=0"):
        with pytest.raises(SpecError, match="must be"):
            make_method(f"mentornet_pd({option})")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_the_curriculum_beats_plain_cross_entropy_under_symmetric_noise(seed):
    plain, taught = (
        digits_accuracy(method, "symmetric:0.4", seed=seed)
        for method in ("plain", "mentornet_pd(percentile=0.6)")
    )
    assert taught > plain + 4

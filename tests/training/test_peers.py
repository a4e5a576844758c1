"""Methods of two networks against the algorithms of their papers."""

import pytest
import torch
from torch import nn
from training_problems import (
    assert_identical,
    assert_weights,
    descended,
    digits_accuracy,
    mlp,
    one_step,
    two_moons,
)

from lossforge.errors import SpecError
from lossforge.training import make_method


def mean_cross_entropy(inputs, given, rows, divisor=None):
    """The mean over some rows, as a function of the model."""

    def objective(model):
        total = 0.0
        for i in rows:
            total = total - model(inputs[i][None]).log_softmax(1)[0, int(given[i])]
        return total / (divisor or len(rows))

    return objective


def smallest(model, inputs, given, keep):
    """The samples of smallest cross entropy."""
    with torch.no_grad():
        losses = [
            float(-model(x[None]).log_softmax(1)[0, y])
            for x, y in zip(inputs, given.tolist(), strict=True)
        ]
    return sorted(range(len(losses)), key=losses.__getitem__)[:keep]


def test_coteaching_exchanges_the_samples_of_smallest_loss():
    inputs, given = two_moons(13)
    models = mlp(2, 2), mlp(2, 2, seed=1)
    keep = int((1 - 0.3) * 13)
    chosen = [smallest(model, inputs, given, keep) for model in models]
    assert set(chosen[0]) != set(chosen[1])
    expected = [
        descended(model, mean_cross_entropy(inputs, given, rows))
        for model, rows in zip(models, reversed(chosen), strict=True)
    ]
    method = make_method("coteaching(forget_rate=0.3, gradual=0)")
    state = one_step(method, nn.CrossEntropyLoss(), models, inputs, given)
    assert_weights(state.model, expected[0])
    assert_weights(state.peers[0]["model"], expected[1])


def test_the_forget_rate_follows_the_released_schedule():
    """There the first epoch that is trained is number 1; number 0 is a test of random weights."""
    method = make_method("coteaching(forget_rate=0.4, gradual=5, exponent=2)")
    schedule = [*torch.linspace(0, 0.4**2, 5).tolist(), 0.4, 0.4, 0.4]
    assert [method.rate(epoch) for epoch in range(7)] == pytest.approx(schedule[1:])
    for gradual in (0, 1):
        assert make_method(f"coteaching(forget_rate=0.4, gradual={gradual})").rate(0) == 0.4


def test_coteaching_needs_a_rate_and_never_guesses_it():
    with pytest.raises(SpecError, match="coteaching must have the option forget_rate"):
        make_method("coteaching")
    for text in ("forget_rate=1", "forget_rate=0.2, gradual=-1", "forget_rate=0.2, exponent=0"):
        with pytest.raises(SpecError, match="must be"):
            make_method(f"coteaching({text})")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_coteaching_is_far_above_plain_cross_entropy_at_half_symmetric_noise(seed):
    plain, taught = (
        digits_accuracy(method, "symmetric:0.5", seed=seed)
        for method in ("plain", "coteaching(forget_rate=0.5)")
    )
    assert taught > plain + 10


@pytest.mark.parametrize("floor", [0.1, 0.9])
def test_decoupling_steps_along_the_disagreements(floor):
    inputs, given = two_moons(40)
    models = mlp(2, 2), mlp(2, 2, seed=6)
    with torch.no_grad():
        first, second = (model(inputs).argmax(1) for model in models)
    rows = (first != second).nonzero()[:, 0].tolist()
    assert 0.1 * 40 < len(rows) < 0.9 * 40
    divisor = max(len(rows), floor * 40)
    expected = [
        descended(model, mean_cross_entropy(inputs, given, rows, divisor)) for model in models
    ]
    method = make_method(f"decoupling(floor={floor})")
    state = one_step(method, nn.CrossEntropyLoss(), models, inputs, given)
    assert_weights(state.model, expected[0])
    assert_weights(state.peers[0]["model"], expected[1])


def test_decoupling_takes_no_step_where_the_networks_agree():
    """Not even one of momentum or decay."""
    inputs, given = two_moons(40)
    models = mlp(2, 2), mlp(2, 2)
    before = {name: value.clone() for name, value in models[0].state_dict().items()}
    options = {"epochs": 3, "momentum": 0.9, "weight_decay": 0.1}
    state = one_step(
        make_method("decoupling"), nn.CrossEntropyLoss(), models, inputs, given, **options
    )
    assert_identical(state.model, before)
    assert state.metrics[-1]["loss"] == 0
    warm = one_step(
        make_method("decoupling(warm_up=1)"), nn.CrossEntropyLoss(), models, inputs, given
    )
    expected = descended(mlp(2, 2), mean_cross_entropy(inputs, given, range(40)))
    assert_weights(warm.model, expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_decoupling_beats_plain_cross_entropy_under_symmetric_noise(seed):
    plain, decoupled = (
        digits_accuracy(method, "symmetric:0.4", seed=seed) for method in ("plain", "decoupling")
    )
    assert decoupled > plain + 4

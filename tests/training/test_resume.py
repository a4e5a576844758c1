"""A run continued from any epoch ends where the uninterrupted one ends, to the bit."""

import copy

import pytest
import torch
from training_problems import assert_identical, convolutional, images, run

import lossforge
from lossforge.training import Settings, State

CASES = {
    "sgd": {},
    "momentum 0": {"momentum": 0.0},
    "nesterov": {"nesterov": True},
    "adam": {"optimizer": "adam", "lr": 1e-3},
    "fused sgd": {"fused": True},
    "fused adam": {"optimizer": "adam", "lr": 1e-3, "fused": True},
    "l1": {"l1_decay": 1e-3},
    "clip": {"clip": 0.5, "weight_decay": 1e-3},
    "all": {"nesterov": True, "l1_decay": 1e-3, "clip": 0.5, "schedule": "steps:0.1@1,3"},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_continued_from_every_epoch(name, dtype):
    torch.set_default_dtype(dtype)
    settings = Settings(**{"epochs": 4, "batch_size": 16, "lr": 0.05, "probe": 30, **CASES[name]})
    samples, held_out = images(70), images(20, seed=1)
    whole, states = run(convolutional(), lossforge.BEF(), samples, settings, validation=held_out)
    assert [state.epoch for state in states] == [1, 2, 3, 4]
    assert_identical(states[-1], whole)
    for state in states:
        saved = State.from_bytes(state.to_bytes())
        assert_identical(saved, state)
        model = convolutional(seed=9)
        before = copy.deepcopy(saved)
        resumed, later = run(
            model, lossforge.BEF(), samples, settings, validation=held_out, state=saved
        )
        assert_identical(resumed, whole)
        assert_identical(model.state_dict(), whole.model)
        assert_identical(later, states[state.epoch :])
        assert_identical(saved, before)


def test_a_state_is_a_copy():
    _, states = run(convolutional(), lossforge.CE(), images(30), Settings(epochs=2, lr=0.1))
    assert not torch.equal(states[0].model["0.weight"], states[1].model["0.weight"])
    assert len(states[0].metrics) == 1


def test_a_state_beyond_the_settings_is_refused():
    state, _ = run(convolutional(), lossforge.CE(), images(30), Settings(epochs=2))
    with pytest.raises(ValueError, match="1 epochs or less, got 2"):
        run(convolutional(), lossforge.CE(), images(30), Settings(epochs=1), state=state)


def test_damaged_content_is_a_value_error_and_never_a_state():
    state, _ = run(convolutional(), lossforge.CE(), images(30), Settings(epochs=1))
    content = state.to_bytes()
    for size in (0, 1, 100, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match="whole training state"):
            State.from_bytes(content[:size])
    at = content.index(state.model["5.weight"].numpy().tobytes()) + 40
    with pytest.raises(ValueError, match="checksum"):
        State.from_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match="whole training state"):
        State.from_bytes(b"something else entirely")

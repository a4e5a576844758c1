"""Settings are checked, and schedules are those of torch."""

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from lossforge.training import Settings

SCHEDULES = {
    "constant": lambda optimizer: lr_scheduler.ConstantLR(optimizer, 1.0),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 23),
    "exponential:0.97": lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.97),
    "steps:0.1@5": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [5], 0.1),
    "steps:0.2@8,14,23": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [8, 14, 23], 0.2),
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedule_is_that_of_torch(text):
    settings = Settings(epochs=23, lr=0.4, schedule=text)
    optimizer = torch.optim.SGD([torch.zeros(1)], 0.4)
    reference = SCHEDULES[text](optimizer)
    for epoch in range(23):
        assert settings.learning_rate(epoch) == pytest.approx(reference.get_last_lr()[0], rel=1e-12)
        optimizer.step()
        reference.step()


@pytest.mark.parametrize(
    "text",
    [
        "", "Cosine", "cosine:3", "exponential", "exponential:", "exponential:x", "exponential:0",
        "exponential:1.1", "exponential:nan", "steps", "steps:0.1", "steps:0.1@", "steps:0.1@0",
        "steps:0.1@5,5", "steps:0.1@9,5", "steps:0.1@5.5", "steps:@5", "linear",
    ],
)  # fmt: skip
def test_a_malformed_schedule_is_refused(text):
    with pytest.raises(ValueError, match='schedule must be "constant", "cosine"'):
        Settings(schedule=text)


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize("fused", [False, True])
def test_fused_steps_are_torchs(name, fused):
    made = Settings(optimizer=name, fused=fused).make_optimizer(nn.Linear(2, 2).parameters())
    assert bool(made.param_groups[0]["fused"]) is fused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": -1}, ValueError, "epochs must be an integer of 0 or more, got -1"),
        ({"epochs": 2.5}, TypeError, "epochs"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"probe": -1}, ValueError, "probe"),
        ({"optimizer": "rmsprop"}, ValueError, "optimizer must be one of sgd, adam, got 'rmsprop'"),
        ({"lr": 0}, ValueError, "lr must be positive"),
        ({"lr": "0.1"}, TypeError, "lr must be a number"),
        ({"lr": float("nan")}, ValueError, "lr"),
        ({"momentum": 1.0}, ValueError, "momentum"),
        ({"weight_decay": -1e-4}, ValueError, "weight_decay"),
        ({"l1_decay": -1e-4}, ValueError, "l1_decay"),
        ({"clip": 0}, ValueError, "clip"),
        ({"precision": "fp8"}, ValueError, "precision must be one of float32, bf16"),
        ({"compile": 1}, TypeError, "compile must be True or False"),
        ({"fused": "yes"}, TypeError, "fused must be True or False"),
        ({"nesterov": True, "momentum": 0}, ValueError, "nesterov must go with sgd"),
        ({"nesterov": True, "optimizer": "adam"}, ValueError, "nesterov must go with sgd"),
        ({"schedule": 3}, TypeError, "schedule must be"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        Settings(**options)

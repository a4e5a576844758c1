"""Entropy regularisation against the released code of ANL-CE-ER."""

import math

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

import lossforge
from lossforge.errors import SpecError
from lossforge.training import make_method

EPS = 1e-7


def released(logits, lamb):
    """The part that ANL-CE-ER adds to ANL-CE."""
    probs = logits.softmax(1).clamp(min=EPS, max=1 - EPS)
    mean = torch.stack([probs[:, k].sum() / probs.sum() for k in range(probs.shape[1])])
    mean = mean.clamp(min=EPS, max=1 - EPS)
    return lamb * (math.log(probs.shape[1]) + sum(p * p.log() for p in mean))


def anl_ce(logits, labels):
    """5 NCE + 5 NNCE."""
    total = 0.0
    for p, y in zip(logits.softmax(1), labels.tolist(), strict=True):
        room = p.clamp(min=EPS).log() - math.log(EPS)
        total = total + 5 * p[y].log() / p.log().sum() + 5 * (1 - room[y] / room.sum())
    return total / len(labels)


def test_one_step_with_anl_ce_is_that_of_the_released_loss():
    inputs, labels = two_moons(18)
    start = mlp(2, 3)
    expected = descended(
        start, lambda model: anl_ce(model(inputs), labels) + released(model(inputs), 2.0)
    )
    loss = lossforge.make("ANL-CE", alpha=5.0, beta=5.0)
    state = one_step(make_method("entropy"), loss, [start], inputs, labels)
    assert_weights(state.model, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_weighted_mean_leaves_the_regulariser(reduction):
    inputs, labels = two_moons(18)
    start, weight = mlp(2, 2), torch.full((2,), 3.0)
    loss = nn.CrossEntropyLoss(weight=weight, reduction=reduction)
    count = 1 if reduction == "mean" else 18
    expected = descended(
        start, lambda model: loss(model(inputs), labels) + count * released(model(inputs), 0.7)
    )
    state = one_step(make_method("entropy(lam=0.7)"), loss, [start], inputs, labels)
    assert_weights(state.model, expected)


def test_published_settings_are_the_defaults():
    assert str(make_method("entropy")) == "entropy(lam=2.0, eps=1e-07)"
    for option in ("lam=-1", "eps=0"):
        with pytest.raises(SpecError, match="must be"):
            make_method(f"entropy({option})")


@pytest.mark.slow
def test_the_regulariser_adds_to_anl_ce_under_asymmetric_noise():
    gains = [
        digits_accuracy("entropy", "asymmetric:0.4", "ANL-CE", seed=seed)
        - digits_accuracy("plain", "asymmetric:0.4", "ANL-CE", seed=seed)
        for seed in (3, 4)
    ]
    assert sum(gains) / 2 > 1.5

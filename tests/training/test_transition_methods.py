"""Correction by an estimated transition matrix against the released codes of the papers."""

import numpy as np
import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

import lossforge
from lossforge.errors import SpecError
from lossforge.training import Batch, Diverged, Epoch, make_method
from lossforge.training.methods.transition import anchor_estimate, dual_estimate
from lossforge.training.sample_loss import SampleLoss


def released_anchor(probs, *, filter_outlier):
    """A "perfect example" of each class, as both released codes look for it."""
    eta = probs.numpy().copy()
    classes = eta.shape[1]
    T = np.empty((classes, classes))
    for i in range(classes):
        scores = eta[:, i].copy()
        if filter_outlier:
            threshold = np.percentile(scores, 97, method="higher")
            scores[scores >= threshold] = 0.0
        T[i] = eta[np.argmax(scores)]
    return torch.from_numpy(T / T.sum(axis=1, keepdims=True))


def released_dual(anchor, predicted, given):
    counts = np.zeros(anchor.shape)
    for p, y in zip(predicted.tolist(), given.tolist(), strict=True):
        counts[p][y] += 1
    with np.errstate(invalid="ignore"):
        rows = np.nan_to_num(counts / counts.sum(axis=1, keepdims=True))
    return torch.from_numpy(anchor.numpy() @ rows)


@pytest.fixture
def predictions():
    chance = torch.Generator().manual_seed(0)
    probs = torch.randn(200, 4, generator=chance).mul(2).softmax(1)
    return probs, torch.randint(4, (200,), generator=chance)


@pytest.mark.parametrize("outliers", [False, True])
def test_anchors_are_those_of_the_released_code(predictions, outliers):
    probs, _ = predictions
    expected = released_anchor(probs, filter_outlier=not outliers)
    torch.testing.assert_close(anchor_estimate(probs, outliers=outliers), expected)


def test_dual_t_is_that_of_the_released_code(predictions):
    probs, given = predictions
    anchor = anchor_estimate(probs)
    found = dual_estimate(anchor, probs.argmax(1), given)
    torch.testing.assert_close(found, released_dual(anchor, probs.argmax(1), given))


def test_a_class_that_is_never_predicted_leaves_rows_of_probabilities(predictions):
    probs, given = predictions
    found = dual_estimate(anchor_estimate(probs), probs.argmax(1).clamp(max=2), given)
    torch.testing.assert_close(found.sum(1), torch.ones(4))


@pytest.mark.parametrize("name", ["forward", "backward"])
@pytest.mark.parametrize("loss", ["CE", "MAE"])
def test_steps_are_those_of_the_equations(name, loss):
    """The second network learns with cross entropy; the first one then, with the corrected loss."""
    inputs, true = two_moons(40)
    inputs = 3 * inputs
    given = torch.where(torch.arange(40) % 5 == 0, 1 - true, true)
    models = mlp(2, 2), mlp(2, 2, seed=4)

    def cross_entropy(model):
        return -model(inputs).log_softmax(1)[torch.arange(40), given].mean()

    def corrected(model):
        total = 0.0
        for x, y in zip(inputs, given.tolist(), strict=True):
            u = model(x[None]).softmax(1)[0]
            noisy = u @ T if name == "forward" else u
            values = -noisy.log() if loss == "CE" else 1 - noisy
            weights = torch.eye(2)[y] if name == "forward" else torch.linalg.inv(T)[y]
            total = total + (weights * values).sum()
        return total / 40

    estimator = mlp(2, 2, seed=4)
    estimator.load_state_dict(descended(models[1], cross_entropy))
    with torch.no_grad():
        T = released_anchor(estimator(inputs).softmax(1), filter_outlier=True)
    expected = descended(models[0], corrected)
    criterion = nn.CrossEntropyLoss() if loss == "CE" else lossforge.MAE()
    state = one_step(
        make_method(f"{name}(warm_up=1)"), criterion, models, inputs, given,
        epochs=2, schedule="constant",
    )  # fmt: skip
    torch.testing.assert_close(state.memory["T"], T)
    assert_weights(state.peers[0]["model"], estimator.state_dict())
    assert_weights(state.model, expected)


def test_a_class_that_no_label_has_leaves_finite_weights():
    """Its column of dual T is 0, and so is the probability of its label."""
    inputs, given = two_moons(40)
    models = mlp(2, 3), mlp(2, 3, seed=4)
    state = one_step(
        make_method("forward(warm_up=1, estimate='dual')"), nn.CrossEntropyLoss(), models,
        inputs, given, epochs=3,
    )  # fmt: skip
    assert state.memory["T"][:, 2].tolist() == [0.0, 0.0, 0.0]
    assert all(value.isfinite().all() for value in state.model.values())


def test_a_singular_matrix_ends_the_backward_run_as_diverged():
    """Two classes with one anchor have equal rows."""
    inputs, given = two_moons(40)
    models = mlp(2, 2), mlp(2, 2, seed=4)
    with torch.no_grad():
        models[1][2].weight.zero_()
        models[1][2].bias.zero_()
    with pytest.raises(Diverged, match="epoch 2"):
        one_step(
            make_method("backward(warm_up=1)"), nn.CrossEntropyLoss(), models, inputs, given,
            epochs=3, lr=1e-300, schedule="constant",
        )  # fmt: skip


def test_options_are_checked():
    assert str(make_method("forward")) == "forward(warm_up=20, estimate='anchor', outliers=False)"
    for text in ("warm_up=0", "estimate='true'", "outliers=1"):
        with pytest.raises(SpecError, match="must be"):
            make_method(f"forward({text})")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_forward_correction_beats_plain_cross_entropy_under_symmetric_noise(seed):
    plain, corrected = (
        digits_accuracy(method, "symmetric:0.4", seed=seed)
        for method in ("plain", "forward(warm_up=5, estimate='dual')")
    )
    assert corrected > plain + 4


@pytest.mark.parametrize("loss", ["CE", "MAE"])
def test_the_backward_loss_is_unbiased(loss):
    """Theorem 1 of Patrini et al.: its mean over the noisy labels is the loss of the true one."""
    T = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.05, 0.25, 0.7]])
    z = torch.randn(3, generator=torch.Generator().manual_seed(0))
    u = z.softmax(0)
    clean = -u.log() if loss == "CE" else 1 - u
    criterion = nn.CrossEntropyLoss() if loss == "CE" else lossforge.MAE()
    sample_loss = SampleLoss(criterion, torch.device("cpu"))
    epoch = Epoch(5, [], sample_loss, None, {"T": T}, torch.Generator())
    batch = Batch(torch.arange(3), torch.empty(3, 0), torch.arange(3), 3.0)
    values = make_method("backward(warm_up=1)").values(epoch, batch, z.expand(3, 3))
    torch.testing.assert_close(T @ values, clean)

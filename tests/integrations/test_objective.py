"""The derivatives that trees are given, without any library of trees."""

import numpy as np
import pytest
import torch

import lossforge
from lossforge.integrations import boosting
from lossforge.integrations.boosting import objective, probabilities

CLASSES, N = 4, 9
LOSSES = {
    "CE": lossforge.CE(),
    "BEF": lossforge.BEF(),
    "GCE": lossforge.GCE(),
    "NCE+AGCE": lossforge.make("NCE+AGCE"),
    "JAL-CE": lossforge.make("JAL-CE"),
    "MAE": lossforge.MAE(),
    "weighted": lossforge.BEF(weight=torch.tensor([1.0, 2.0, 0.5, 4.0])),
}


class Data:
    """What both libraries' data sets have in common."""

    def __init__(self, labels, weights):
        self.labels, self.weights = labels, weights

    def get_label(self):
        return self.labels

    def get_weight(self):
        return self.weights


@pytest.fixture
def labels():
    return np.random.randint(CLASSES, size=N).astype(np.float32)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_losses_and_curvature_is_never_negative(name, spread, labels):
    margins = spread * np.random.randn(N, CLASSES)
    gradient, curvature = objective(LOSSES[name], CLASSES)(labels, margins)
    leaf = torch.tensor(margins, requires_grad=True)
    loss = LOSSES[name].with_policy(reduction="sum").double()
    (expected,) = torch.autograd.grad(loss(leaf, torch.tensor(labels).long()), leaf)
    ratio = (gradient * expected.numpy()).sum() / (expected**2).sum()
    np.testing.assert_allclose(gradient, ratio * expected, rtol=1e-12, atol=1e-300)
    assert ratio > 0
    assert (curvature > 0).all()
    assert np.isfinite(curvature).all()


def test_cross_entropy_has_the_derivatives_of_a_softmax(labels):
    margins = np.random.randn(N, CLASSES)
    gradient, curvature = objective(lossforge.CE(), CLASSES)(labels, margins)
    probs = probabilities(margins)
    np.testing.assert_allclose(gradient, probs - np.eye(CLASSES)[labels.astype(int)], rtol=1e-8)
    np.testing.assert_allclose(curvature, 2 * probs * (1 - probs), rtol=1e-8)
    for row, bound in zip(probs, curvature, strict=True):
        exact = np.diag(row) - np.outer(row, row)
        assert np.linalg.eigvalsh(np.diag(bound) - exact).min() > -1e-12


@pytest.mark.parametrize("name", ["GCE", "MAE"])
def test_curvature_is_that_of_a_reweighted_cross_entropy(name, labels):
    # a loss of the label's probability alone has one weight for all classes: p times density
    margins = np.random.randn(N, CLASSES)
    power = {"GCE": 0.7, "MAE": 1.0}[name]
    _, curvature = objective(LOSSES[name], CLASSES)(labels, margins)
    probs = probabilities(margins)
    weight = probs[np.arange(N), labels.astype(int)] ** power
    # the largest weight, 1, is reached in the limit only
    np.testing.assert_allclose(curvature, 2 * weight[:, None] * probs * (1 - probs), rtol=1e-4)


@pytest.mark.parametrize("name", ["CE", "BEF", "GCE", "NCE+AGCE", "JAL-CE", "MAE"])
def test_no_label_pushes_harder_than_cross_entropy(name):
    margins = 5 * np.random.randn(500, CLASSES)
    labels = np.random.randint(CLASSES, size=500)
    gradient, _ = objective(LOSSES[name], CLASSES)(labels, margins)
    own = np.arange(500), labels
    push = -gradient[own] / (1 - probabilities(margins)[own])
    assert push.max() < 1.01
    assert push.max() > 0.8


def test_scale_of_the_loss_does_not_matter(labels):
    margins = np.random.randn(N, CLASSES)
    one = objective(lossforge.BEF(), CLASSES)(labels, margins)
    ten = objective(10 * lossforge.BEF(), CLASSES)(labels, margins)
    for a, b in zip(one, ten, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_weights_multiply_both(labels):
    margins, weights = np.random.randn(N, CLASSES), np.random.rand(N)
    function = objective(lossforge.BEF(), CLASSES)
    plain = function(labels, margins)
    for found in (function(labels, margins, weights), function(margins, Data(labels, weights))):
        for a, b in zip(found, plain, strict=True):
            np.testing.assert_allclose(a, weights[:, None] * b)
    for absent in (None, np.array([])):  # LightGBM, XGBoost
        for a, b in zip(function(margins, Data(labels, absent)), plain, strict=True):
            np.testing.assert_array_equal(a, b)


def test_many_rows_are_divided(monkeypatch, labels):
    margins = np.random.randn(N, CLASSES)
    whole = objective(lossforge.BEF(), CLASSES)(labels, margins)
    monkeypatch.setattr(boosting, "_BLOCK", 2 * CLASSES)
    for a, b in zip(objective(lossforge.BEF(), CLASSES)(labels, margins), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("ignored", [0, 3])
def test_ignored_labels_push_nothing(ignored):
    function = objective(lossforge.BEF(ignore_index=ignored), CLASSES)
    gradient, curvature = function(np.array([1, ignored]), np.zeros((2, CLASSES)))
    assert abs(gradient[0]).min() > 0
    assert (gradient[1] == 0).all()
    assert (curvature[1] <= 1e-16).all()


def test_one_score_for_two_classes():
    labels, margins = np.array([0, 1, 1]), np.array([0.3, -1.0, 2.0])
    function = objective(lossforge.CE(), 2)
    gradient, curvature = function(labels, margins)
    probs = 1 / (1 + np.exp(-margins))
    np.testing.assert_allclose(gradient, probs - labels, rtol=1e-8)
    np.testing.assert_allclose(curvature, probs * (1 - probs), rtol=1e-8)
    np.testing.assert_allclose(probabilities(margins), np.stack([1 - probs, probs], 1))


def test_what_cannot_be_right_is_refused(labels):
    with pytest.raises(ValueError, match=r"scores must be \(n, 4\), got \(36,\)"):
        objective(lossforge.CE(), CLASSES)(labels, np.zeros(N * CLASSES))
    with pytest.raises(ValueError, match="num_class must be an integer of 2 or more"):
        objective(lossforge.CE(), 1)
    with pytest.raises(ValueError, match="loss must push its label up"):
        objective(-lossforge.CE(), CLASSES)
    with pytest.raises(ValueError, match=r"label_smoothing must be 0 for trees, got 0\.1"):
        objective(lossforge.CE(label_smoothing=0.1), CLASSES)

"""scikit-learn's tools, with our losses, through skorch."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch
from frameworks import need
from torch import nn

import lossforge
from lossforge.integrations.skorch import classifier

need("skorch", "sklearn")

import skorch  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

pytestmark = pytest.mark.usefixtures("float32")
SETTINGS = {"max_epochs": 40, "lr": 0.5, "verbose": 0, "train_split": None, "batch_size": 32}


class Network(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, inputs):
        return self.layers(inputs.float())


@pytest.fixture(scope="module")
def iris():
    inputs, labels = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(inputs).astype(np.float32), labels.astype(np.int64)


def test_predictions_are_probabilities(iris):
    net = classifier(Network, lossforge.BEF, **SETTINGS).fit(*iris)
    probs = net.predict_proba(iris[0])
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)
    assert (probs >= 0).all()
    logits = net.module_(torch.as_tensor(iris[0]))
    np.testing.assert_allclose(probs, logits.softmax(1).detach(), rtol=1e-5)
    assert net.score(*iris) > 0.9


def test_without_it_they_are_logits(iris):
    net = skorch.NeuralNetClassifier(Network, criterion=lossforge.BEF, **SETTINGS).fit(*iris)
    assert abs(net.predict_proba(iris[0]).sum(1) - 1).max() > 0.1


def test_cross_validation_in_a_pipeline(iris):
    model = make_pipeline(StandardScaler(), classifier(Network, lossforge.BEF, **SETTINGS))
    assert cross_val_score(model, *iris, cv=3).mean() > 0.85


def test_a_search_over_the_parameters_of_the_loss(iris):
    net = classifier(Network, lossforge.BEF, **SETTINGS)
    grid = {"criterion__beta": [-1.0, -4.0], "criterion__mu": [0.1, 0.5]}
    search = GridSearchCV(net, grid, cv=2, scoring="neg_log_loss").fit(*iris)
    assert search.best_params_.keys() == grid.keys()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) == 4  # parameters arrive
    best = search.best_estimator_.criterion_
    parts = {name: best.settings[name] for name in ("beta", "mu")}
    assert parts == {key.removeprefix("criterion__"): v for key, v in search.best_params_.items()}


@pytest.mark.parametrize(
    ("criterion", "parameters", "text"),
    [
        (lossforge.GCE, {"criterion__q": 0.4}, "GCE(q=0.4)"),
        (partial(lossforge.make, "NCE+AGCE"), {"criterion__alpha": 2.0}, None),
        (0.9 * lossforge.CE() + 0.1 * lossforge.MAE(), {}, "0.9*CE + 0.1*MAE"),
    ],
    ids=["class", "function", "loss"],
)
def test_ways_to_name_a_loss(iris, criterion, parameters, text):
    net = clone(classifier(Network, criterion, **parameters, **SETTINGS)).fit(*iris)
    np.testing.assert_allclose(net.predict_proba(iris[0]).sum(1), 1, atol=1e-6)
    expected = lossforge.make("NCE+AGCE", alpha=2.0) if text is None else lossforge.parse(text)
    assert str(net.criterion_) == str(expected)


def test_it_pickles(iris):
    net = classifier(Network, lossforge.BEF, **SETTINGS).fit(*iris)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again.predict_proba(iris[0]), net.predict_proba(iris[0]))


def test_the_softmax_is_not_an_argument():
    with pytest.raises(TypeError, match="predict_nonlinearity must not be given"):
        classifier(Network, lossforge.BEF, predict_nonlinearity=None)

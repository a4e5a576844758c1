"""A loss in scikit-learn's world, through skorch."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..errors import extra
from ..loss import Loss


def __getattr__(name: str) -> Any:
    """Import the estimator on first use, as it derives from classes of scikit-learn."""
    if name == "RobustClassifier":
        extra("sklearn", "skorch")
        from .estimator import RobustClassifier

        return RobustClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def classifier(module: Any, criterion: type[Loss] | Callable[..., Loss] | Loss, **net: Any) -> Any:
    """Make a `skorch.NeuralNetClassifier` whose `predict_proba` gives probabilities.

    skorch applies a softmax only where the criterion is torch's own cross entropy; with any other
    loss of logits, rows of `predict_proba` do not sum to one. This sets the softmax, and nothing
    else: the result is a plain skorch classifier, and takes part in pipelines, cross-validation
    and searches.

    ::

        net = classifier(Network, lossforge.BEF, criterion__beta=-4.0, max_epochs=20)
        GridSearchCV(net, {"criterion__beta": [-1.0, -4.0, -8.0]}).fit(X, y)

    A search over a named sum needs a function that builds it:
    ``classifier(Network, partial(lossforge.make, "NCE+AGCE"), criterion__alpha=2.0)``. Labels must
    be 0, 1, ... as int64; `RobustClassifier` takes any, and sparse features and weights.

    Args:
        module: The network, a class or an instance; it returns logits.
        criterion: A loss, or a function that builds one from the arguments ``criterion__name``.
        **net: Other arguments of `skorch.NeuralNetClassifier`.
    """
    if "predict_nonlinearity" in net:
        raise TypeError("predict_nonlinearity must not be given: it is the softmax")
    build = extra("skorch", "skorch").NeuralNetClassifier
    softmax = partial(torch.softmax, dim=1)
    return build(module, criterion=criterion, predict_nonlinearity=softmax, **net)

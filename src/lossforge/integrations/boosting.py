"""A loss as the objective of gradient-boosted trees: XGBoost and LightGBM."""

from typing import Any

import torch
from torch import Tensor

from ..errors import check_integer, extra
from ..loss import Loss

_SMALLEST = 1e-16  # what XGBoost adds to its own second derivatives
_BLOCK = 1 << 20  # scores that are differentiated at a time
_REACH = 10.0  # logits between which the largest push is looked for


class Objective:
    r"""A multiclass objective that XGBoost and LightGBM call for derivatives.

    The gradient is the loss's own, by automatic differentiation in float64. Robust losses are not
    convex, so their second derivatives may be negative and cannot serve trees; this is used:

    Write each entry as the cross-entropy gradient times a factor,
    :math:`g_k = w_k (p_k - y_k)`, with p the softmax of the scores. Holding w still, as iteratively
    reweighted methods do, leaves the curvature of a weighted cross entropy. Its Hessian
    :math:`\operatorname{diag}(p) - p p^T` has rows of absolute sum :math:`2 p_k (1 - p_k)`, so the
    diagonal matrix of these bounds it from above, and

    .. math:: h_k = 2 |w_k| p_k (1 - p_k) = 2 |g_k| (p_k \text{ if } k = y \text{ else } 1 - p_k).

    It is never negative, needs no division, and for cross entropy it is what XGBoost's
    ``multi:softprob`` uses. For a single score of two classes the factor 2 is 1. A label far from
    the prediction has a small w: it weighs little in a leaf's value, and a leaf of such labels
    fails `min_child_weight`.

    Gradients are divided by the largest w, that is, no label pushes its class harder than cross
    entropy does. Regularisers of the libraries (`reg_lambda`, `min_child_weight`) then mean
    what they mean for the built-in objective.

    Args:
        loss: Any loss; its class weights and `ignore_index` count. Label smoothing is refused: with
            it the gradient, and with the gradient this curvature, vanishes at the optimum.
        num_class: Number of classes.
    """

    def __init__(self, loss: Loss, num_class: int) -> None:
        check_integer("num_class", num_class, 2)
        if loss.label_smoothing:
            raise ValueError(f"label_smoothing must be 0 for trees, got {loss.label_smoothing:g}")
        self.num_class = num_class
        self._loss = loss.with_policy(reduction="sum").double()
        self._scale = 1 / _largest_push(self._loss, num_class)

    def __call__(self, scores: Any, data: Any, sample_weight: Any = None) -> tuple[Any, Any]:
        """Return gradient and second derivative in the shape of the scores.

        Args:
            scores: The margins, (n, num_class), or (n,) for two classes with one score.
            data: A DMatrix or Dataset with labels and perhaps weights. The scikit-learn interfaces
                of both libraries pass arrays instead: labels first, then the margins.
            sample_weight: (n,) weights, from those interfaces.
        """
        if hasattr(data, "get_label"):
            labels, sample_weight = data.get_label(), data.get_weight()
        else:
            labels, scores = scores, data
        margins = torch.as_tensor(scores, dtype=torch.float64)
        if margins.shape[1:] != (self.num_class,) and (margins.dim(), self.num_class) != (1, 2):
            raise ValueError(
                f"scores must be (n, {self.num_class}), got {tuple(margins.shape)}; "
                "is num_class the library's, and the library XGBoost 2.1 or LightGBM 4 or newer?"
            )
        gradient, curvature = self._derivatives(margins, torch.as_tensor(labels).long())
        if sample_weight is not None and len(sample_weight):
            weights = torch.as_tensor(sample_weight, dtype=torch.float64)
            weights = weights.view(-1, *[1] * (margins.dim() - 1))
            gradient, curvature = weights * gradient, weights * curvature
        return gradient.numpy(), curvature.clamp(min=_SMALLEST).numpy()

    def _derivatives(self, margins: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        single = margins.dim() == 1
        logits = torch.stack([torch.zeros_like(margins), margins], 1) if single else margins
        gradient = self._scale * _gradient(self._loss, logits, labels)
        probs = logits.softmax(1)
        own = labels[:, None] == torch.arange(self.num_class)
        curvature = gradient.abs() * torch.where(own, probs, 1 - probs)
        return (gradient[:, 1], curvature[:, 1]) if single else (gradient, 2 * curvature)


def objective(loss: Loss, num_class: int) -> Objective:
    """Make an objective for XGBoost and LightGBM, native or through their scikit-learn classes.

    ::

        objective = boosting.objective(lossforge.BEF(), num_class=10)
        booster = xgboost.train({"num_class": 10}, dtrain, 100, obj=objective)
        booster = lightgbm.train({"objective": objective, "num_class": 10}, dataset, 100)
        model = xgboost.XGBClassifier(objective=objective).fit(X, y)
        model = lightgbm.LGBMClassifier(objective=objective).fit(X, y)

    The libraries do not have the link function of a custom objective: except for `XGBClassifier`
    they predict margins. `probabilities` turns these into class probabilities.

    Args:
        loss: Any loss. The reduction does not matter, trees take the sum.
        num_class: Number of classes, as given to the library.

    Example:
        >>> import numpy, lossforge
        >>> labels, margins = numpy.array([2]), numpy.zeros((1, 4))
        >>> gradient, curvature = objective(lossforge.CE(), num_class=4)(labels, margins)
        >>> gradient.round(3).tolist(), curvature.round(3).tolist()
        ([[0.25, 0.25, -0.75, 0.25]], [[0.375, 0.375, 0.375, 0.375]])
    """
    return Objective(loss, num_class)


def probabilities(margins: Any) -> Any:
    """Return class probabilities (n, num_class) of margins, as numpy.

    Args:
        margins: Raw scores (n, num_class), or (n,) for two classes with one score: what
            ``booster.predict(dtest, output_margin=True)`` gives in XGBoost and
            ``booster.predict(X)`` in LightGBM.

    Example:
        >>> import math
        >>> probabilities([[0.0, math.log(3)]]).round(2).tolist()
        [[0.25, 0.75]]
    """
    scores = torch.as_tensor(extra("numpy", "boost").asarray(margins), dtype=torch.float64)
    if scores.dim() == 1:
        scores = torch.stack([torch.zeros_like(scores), scores], 1)
    return scores.softmax(1).numpy()


def _gradient(loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of a sum of losses, in blocks of rows."""
    rows = max(1, _BLOCK // logits.shape[1])
    blocks: list[Tensor] = []
    for part, target in zip(torch.split(logits, rows), torch.split(labels, rows), strict=True):
        with torch.enable_grad():
            leaf = part.detach().requires_grad_()
            blocks += torch.autograd.grad(loss(leaf, target), leaf)
    return torch.cat(blocks)


def _largest_push(loss: Loss, num_class: int) -> float:
    """Return the largest factor between the label's gradient and that of cross entropy.

    The search covers equal other classes, and one that has all their probability.
    """
    plain = loss.with_policy(weight=None, ignore_index=-100)
    steps = torch.linspace(-_REACH, _REACH, 401, dtype=torch.float64)
    even = torch.zeros(401, num_class, dtype=torch.float64)
    alone = torch.full_like(even, -2 * _REACH)
    alone[:, 1] = 0.0
    logits = torch.cat([even, alone])
    logits[:, 0] = steps.repeat(2)
    labels = torch.zeros(len(logits), dtype=torch.long)
    rest = logits[:, 1:].logsumexp(1) - logits.logsumexp(1)  # log(1 - p_0)
    factors = -_gradient(plain, logits, labels)[:, 0] / rest.exp()
    largest = float(factors.max())
    if not 0 < largest < float("inf"):
        raise ValueError(f"loss must push its label up by a finite gradient, got {largest:g}")
    return largest

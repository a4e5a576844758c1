"""Label weights: what a noise says about each instance, checked and never renormalised."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from ..errors import check_rows


@dataclass(frozen=True)
class Rows:
    """The label distributions of instances, one a row, and the class that should win in each.

    Args:
        weights: (R, K), nonnegative; rows sum to one.
        targets: (R,) the true class of each row.
        kind: Where they come from: a transition matrix, one weight vector, or many instances.
    """

    weights: Tensor
    targets: Tensor
    kind: Literal["matrix", "vector", "instances"]

    @property
    def num_classes(self) -> int:
        return self.weights.shape[1]

    @cached_property
    def totals(self) -> Tensor:
        """(R,) sums of the rows: one, up to what rounding left."""
        return self.weights.sum(1)

    @cached_property
    def own(self) -> Tensor:
        """(R,) weights of the targets."""
        return self.weights.gather(1, self.targets[:, None])[:, 0]

    @cached_property
    def rivals(self) -> tuple[Tensor, Tensor]:
        """(R,) largest weight of the other classes, and the class that has it."""
        others = self.weights.scatter(1, self.targets[:, None], -torch.inf)
        best = others.max(1)
        return best.values, best.indices

    @cached_property
    def lightest(self) -> Tensor:
        """(R,) smallest weight of the other classes."""
        return self.weights.scatter(1, self.targets[:, None], torch.inf).amin(1)

    def pick(self, rows: Tensor) -> "Rows":
        """Some of the rows."""
        return Rows(self.weights[rows], self.targets[rows], self.kind)


def read_noise(noise: object, num_classes: int | None = None) -> Rows:
    """Rows of a transition matrix, a weight vector, or an object that carries one.

    Args:
        noise: A (K, K) transition matrix, whose row y belongs to the true class y; a (K,) vector
            of weights, whose largest is the true class; an object with such a matrix as its ``T``
            (`lossforge.noise.NoiseEstimate`); or one with ``rows`` (N, K) and ``true`` (N,)
            (`lossforge.noise.InstanceNoise`).
        num_classes: What the number of classes must be, if it is known.

    Raises:
        ValueError: names the row that is not a distribution, or in which the true class does not
            have the largest weight: no loss can learn that class from such labels.
    """
    if hasattr(noise, "rows") and hasattr(noise, "true"):
        found = instance_rows(noise.rows, noise.true)
        _check_size(found.num_classes, num_classes)
        return found
    # an array has a T too, its transpose
    carries = not hasattr(noise, "__array__") and hasattr(noise, "T")
    weights = _weights(getattr(noise, "T") if carries else noise)  # noqa: B009
    if weights.shape[0] == 1:
        found = Rows(weights, weights.argmax(1), "vector")
    elif weights.shape[0] == weights.shape[1]:
        found = Rows(weights, torch.arange(len(weights)), "matrix")
    else:
        raise ValueError(
            "noise must be a square transition matrix or one vector of weights, got shape "
            f"{tuple(weights.shape)}; certify_instances takes one row for each instance"
        )
    _check_size(found.num_classes, num_classes)
    _check_dominant(found)
    return found


def instance_rows(weights: object, true: object) -> Rows:
    """Rows of many instances and their true classes, which need not have the largest weights.

    Args:
        weights: (N, K) label distributions.
        true: (N,) true classes; the largest weight of each row if None.
    """
    found = _weights(weights)
    if true is None:
        return Rows(found, found.argmax(1), "instances")
    targets = torch.as_tensor(true, device="cpu")
    if targets.shape != found.shape[:1] or targets.is_floating_point():
        raise ValueError(
            f"true must be a class for each of the {len(found)} rows, got {targets.dtype} of shape "
            f"{tuple(targets.shape)}"
        )
    targets = targets.long()
    if not bool(((targets >= 0) & (targets < found.shape[1])).all()):
        raise ValueError(
            f"true must lie in 0..{found.shape[1] - 1}, got {int(targets.min())}.."
            f"{int(targets.max())}"
        )
    return Rows(found, targets, "instances")


def dominant(rows: Rows) -> Tensor:
    """(R,) whether the target has the largest weight, and it alone."""
    return rows.own > rows.rivals[0]


def _weights(values: object) -> Tensor:
    try:
        weights = torch.as_tensor(values, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError):
        raise TypeError(f"noise must be numbers, got {values!r}") from None
    weights = weights[None] if weights.ndim == 1 else weights
    if weights.ndim != 2 or weights.shape[1] < 2 or not len(weights):
        raise ValueError(
            "noise must be a matrix or a vector over 2 classes or more, got shape "
            f"{tuple(weights.shape)}"
        )
    check_rows("the noise", weights)
    return weights


def _check_size(found: int, expected: int | None) -> None:
    if expected is not None and found != expected:
        raise ValueError(f"the noise must be over {expected} classes, got {found}")


def _check_dominant(rows: Rows) -> None:
    wrong = ~dominant(rows)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        own, (weight, rival) = float(rows.own[row]), (part[row] for part in rows.rivals)
        raise ValueError(
            f"row {row} of the noise has no unique largest weight at its true class "
            f"{int(rows.targets[row])}: {own:g} there, {float(weight):g} at class {int(rival)}"
        )

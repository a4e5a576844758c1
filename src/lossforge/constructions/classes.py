"""Losses of all class probabilities at once: distances, means, sparsity."""

import math
from abc import abstractmethod
from typing import Unpack

import torch
from torch import Tensor

from ..base import BaseFunction, MirroredPower, Power
from ..base.function import format_arguments, integrate
from ..errors import LARGEST, check_factor, check_number
from ..loss import Policy, ProbabilityLoss, Scores
from .parts import DeclaredLoss, Part
from .target import check_base


class PowerDistance(DeclaredLoss):
    r"""A power of the distance to a stretched label: :math:`\sum_k |a [k = t] - u_k|^r`.

    Args:
        a: Length of the label vector, 1 or more.
        r: The power, positive.
        scale: Factor, positive.
        centred: Subtract :math:`(a - 1)^r`, the value at the correct one-hot prediction.
        average: Divide the sum by the number of classes.
    """

    def __init__(
        self,
        *,
        a: float,
        r: float,
        scale: float = 1.0,
        centred: bool = False,
        average: bool = False,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(**policy)
        check_number("a", a, "1 or more", lambda v: v >= 1)
        check_factor("r", r, "positive", lambda v: v > 0)
        rule = f"1 or more, and a**r at most {LARGEST:g} (r = {r})"
        check_number("a", a, rule, lambda v: r * math.log(v) <= math.log(LARGEST))
        check_factor("scale", scale, "positive", lambda v: v > 0)
        self.a = a
        self.r = r
        self.scale = scale
        self.centred = centred
        self.average = average

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        log_probs = scores.log_probs
        own = log_probs.gather(1, target[:, None])[:, 0]
        total = torch.exp(self.r * log_probs).sum(-1)
        return self._scaled(scores, total + self._excess(own))

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        log_probs = scores.log_probs
        total = torch.exp(self.r * log_probs).sum(-1) * weights.sum(-1)
        return self._scaled(scores, total + (weights * self._excess(log_probs)).sum(-1))

    def _excess(self, log_p: Tensor) -> Tensor:
        """What a label's own term adds to the sum of u_k^r: (a - u)^r - u^r."""
        rest = self.a - 1
        q = -torch.expm1(log_p)
        if self.centred and rest > 0:
            # (rest + q)^r - rest^r without cancellation
            scale: float = rest**self.r
            own = scale * torch.expm1(self.r * torch.log1p(q / rest))
        else:
            own = (rest + q) ** self.r
        return own - torch.exp(self.r * log_p)

    def _scaled(self, scores: Scores, sums: Tensor) -> Tensor:
        return self.scale * (sums * scores.class_share() if self.average else sums)

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        """Densities r (a - x)^(r-1) of the target and r x^(r-1) of the others; none if a = 1."""
        if self.a == 1 or self.r < 1:
            return ()
        factor = self.scale * self.r / (num_classes if self.average else 1)
        return (
            Part("target", factor, MirroredPower(self.a, self.r)),
            Part("others", factor, Power(self.r)),
        )

    def constant(self, num_classes: int) -> float:
        if self.centred:
            return 0.0
        return float(self.scale * (self.a - 1) ** self.r / (num_classes if self.average else 1))

    def __str__(self) -> str:
        settings = {"a": self.a, "r": self.r, "scale": self.scale, "centred": self.centred}
        return f"power_distance({format_arguments({**settings, 'average': self.average})})"


class Untargeted(ProbabilityLoss):
    """A regulariser: a function of the prediction that does not look at the label."""

    @abstractmethod
    def value(self, scores: Scores) -> Tensor:
        """(N,) values."""

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        return self.value(scores)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        return self.value(scores) * weights.sum(-1)


class ClassMean(Untargeted):
    r"""The mean of a base function over all classes: :math:`\frac1K \sum_k h(u_k)`.

    Args:
        base: The base function h.
    """

    def __init__(self, base: BaseFunction, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_base("base", base)
        self.base = base

    def value(self, scores: Scores) -> Tensor:
        terms = integrate(self.base, scores.log_probs, upward=False)
        return scores.over_classes(terms) * scores.class_share()

    def __str__(self) -> str:
        return f"class_mean({self.base})"


class Sparsity(Untargeted):
    r"""The sparsity penalty :math:`\sum_k u_k^p`, smallest at one-hot predictions for p < 1.

    Args:
        p: The power, positive.
    """

    def __init__(self, *, p: float, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_factor("p", p, "positive", lambda v: v > 0)
        self.p = p

    def value(self, scores: Scores) -> Tensor:
        return torch.exp(self.p * scores.log_probs).sum(-1)

    def __str__(self) -> str:
        return f"sparsity({format_arguments({'p': self.p})})"

"""Normalised losses: a class's share of the total over all classes."""

from typing import Unpack

import torch
from torch import Tensor

from ..base import BaseFunction
from ..base.function import format_arguments, integrate
from ..errors import check_factor
from ..loss import Policy, Scores
from .parts import DeclaredLoss, Part
from .target import check_base


class Normalised(DeclaredLoss):
    r"""The target's share of the base losses: :math:`s\, h(u_t) / \sum_k h(u_k)`.

    Symmetric and bounded by s, whatever the base function.

    Args:
        base: The base function h.
        scale: The factor s, positive.
    """

    def __init__(self, base: BaseFunction, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_base("base", base)
        check_factor("scale", scale, "positive", lambda v: v > 0)
        self.base = base
        self.scale = scale

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        terms, total = self._terms(scores)
        return self.scale * terms.gather(1, target[:, None])[:, 0] / total

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        terms, total = self._terms(scores)
        return self.scale * scores.weighed(weights, terms).sum(-1) / total

    def _terms(self, scores: Scores) -> tuple[Tensor, Tensor]:
        terms = integrate(self.base, scores.log_probs, upward=False)
        if scores.normalised:
            # classes given probability 0 take the whole of an infinite total, in equal parts
            infinite = terms == torch.inf
            taken = infinite.any(-1, keepdim=True)
            terms = torch.where(taken, infinite.to(terms.dtype), terms)
        else:
            # A masked class has no part, so that its infinity is not divided.
            terms = torch.where(scores.values == -torch.inf, 0.0, terms)
        total = terms.sum(-1)
        # All terms are 0 only where a single class is left, and its share is then 0.
        return terms, torch.where(total == 0, 1.0, total)

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        return (Part("share", self.scale, self.base),)

    def __str__(self) -> str:
        return f"normalised({self.base}, {format_arguments({'scale': self.scale})})"


class NormalisedNegative(DeclaredLoss):
    r"""The others' share of what the base loss leaves: :math:`1 - H(u_t) / \sum_k H(u_k)`.

    Symmetric and bounded by 1. H is the base function upside down, :math:`h(0) - h`, so the loss
    falls with the target's probability and rises with the others'. Where every H is 0, as those of
    a truncated function can be, the probabilities themselves are the shares.

    Args:
        base: A bounded base function.
    """

    def __init__(self, base: BaseFunction, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_base("base", base)
        if not base.bounded:
            raise ValueError(f"base must be bounded at 0, got {base}; truncated(...) makes it so")
        self.base = base

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        terms = self._terms(scores)
        total, own = terms.sum(-1), target[:, None]
        share = terms.gather(1, own)[:, 0] / torch.where(total == 0, 1.0, total)
        return 1 - torch.where(total == 0, scores.log_probs.gather(1, own)[:, 0].exp(), share)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        terms = self._terms(scores)
        terms = torch.where(terms.sum(-1, keepdim=True) == 0, scores.log_probs.exp(), terms)
        return weights.sum(-1) - (weights * terms).sum(-1) / terms.sum(-1)

    def _terms(self, scores: Scores) -> Tensor:
        return integrate(self.base, scores.log_probs, upward=True)

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        return (Part("remainder", 1.0, self.base),)

    def constant(self, num_classes: int) -> float:
        return 1.0

    def __str__(self) -> str:
        return f"normalised_negative({self.base})"

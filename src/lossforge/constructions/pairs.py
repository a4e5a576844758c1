"""Binary reduction: the mean of pairwise losses of the target against every other class."""

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from ..base import BaseFunction
from ..base.function import format_arguments, formula_of
from ..base.point import Margin
from ..errors import check_factor
from ..kernels import Form, Term
from ..loss import Policy, Scores
from ..numerics import in_blocks
from .parts import DeclaredLoss, Part
from .target import check_base

BALANCE = 0.1
"""The coefficient mu of binary reduction beside 0.9 times target separation."""

MANY_RIVALS = 149
"""The number of rivals from which on a mean over them learns too slowly beside target separation.

Where the target leads all others by a margin m of 2 or more, the gradient of mu BR is about mu
exp(-m) and that of lam TS about lam exp(m) / K; where they cross each is (lam mu / K)^(1/2), while
the peak of TS stays at lam/4. Up to 150 classes the mean was good enough; beyond, BEF and BQF have
a bounded cosine in its place (docs/defaults.md).
"""


def steady_mu(num_classes: int) -> float:
    """The coefficient of binary reduction that keeps the depth of this dip, for any K."""
    return BALANCE * max(1.0, (num_classes - 1) / MANY_RIVALS)


class BinaryReduction(DeclaredLoss):
    r"""Binary-reduced loss: the mean over :math:`i \ne t` of :math:`h(u_t / (u_t + u_i))`.

    The pair's probability is always computed as :math:`\sigma(z_t - z_i)`, never from a softmax,
    which underflows. The value is 0 at the correct one-hot prediction and never negative, and the
    loss is symmetric exactly if h(p) + h(1 - p) is constant. Gradient, with p the pair's
    probability and :math:`\varphi = -h'`:

    .. math::
        \partial_{z_i} = \frac{\varphi(p) \, p \, (1 - p)}{K - 1}, \qquad
        \partial_{z_t} = -\sum_{i \ne t} \partial_{z_i}.

    With class probabilities as targets or label smoothing every pair of classes is evaluated:
    O(K^2) instead of O(K) a sample, in blocks of bounded memory. Not so where h is `symmetric`: the
    mean over all labels, which smoothing mixes in, is then h(1/2) at every prediction,

    .. math::
        \frac1K \sum_c L(u, c)
        = \frac1{K (K - 1)} \sum_{c < i} (h(p_{ci}) + h(1 - p_{ci})) = h(1/2).

    Nor where the weights can be read and few differ from 0, or from a common value if h is
    symmetric: the loss is then evaluated at these labels alone.

    Args:
        base: The base function h of the pair's probability.
        xi: The pair's loss where both probabilities are exactly 0, which only `from_probs` can
            meet; h(1/2), the value at equal logits, if None.

    References:
        Definition 4.2 of the paper the project implements.
    """

    def __init__(
        self, base: BaseFunction, *, xi: float | None = None, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(**policy)
        check_base("base", base)
        if xi is not None:
            check_factor("xi", xi)
        self.base = base
        self.xi = xi

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        own, others, share = scores.rivals_of(target)
        top = torch.maximum(others.detach().amax(-1), own.detach())
        absent = (own == -math.inf) & top.isfinite()
        total: Tensor = _PairSum.apply(torch.where(absent, 0.0, own), others, self.base)  # type: ignore[no-untyped-call]
        # A logit of +inf has no softmax, nor has a row without a class, here as in cross entropy:
        # 0 * inf is NaN.
        total = total * (1 + 0 * top)
        if scores.normalised:
            total = torch.where(absent, self._from_nothing(others), total)
        return total * share

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        if self._is_symmetric():
            # sum_c w_c L(u, c) = sum_c (w_c - v) L(u, c) + v sum_c L(u, c)
            common = weights.amin(-1, keepdim=True)
            rest = weights - common
            if scores.labelled(rest) is not None:
                return super().expected(scores, rest) + common[:, 0] * self._over_labels(scores)
        return super().expected(scores, weights)

    def label_mean(self, scores: Scores) -> Tensor:
        if not self._is_symmetric():
            return super().label_mean(scores)
        return self._over_labels(scores) / scores.values.shape[1]

    def _is_symmetric(self) -> bool:
        """Whether the sum over all labels is a constant; a subclass may have other values."""
        return self.base.symmetric and type(self).from_scores is BinaryReduction.from_scores

    def _over_labels(self, scores: Scores) -> Tensor:
        """(N,) sums over all labels of a symmetric loss, which do not depend on the logits.

        The two losses of a pair add up to 2 h(1/2). Classes given probability 0 lose h(0), twice
        h(1/2), to all others; a tie of theirs costs xi.
        """
        values = scores.values
        middle = self.base.value(Margin(values.new_zeros(())))
        present = (values > -math.inf).sum(-1, dtype=values.dtype)
        total = present * (present - 1) * middle
        if scores.normalised:
            absent = values.shape[1] - present
            xi = middle if self.xi is None else self.xi
            total = total + absent * (2 * present * middle + (absent - 1) * xi)
        # a logit of NaN or +inf has no softmax
        top = torch.where(values == -math.inf, 0.0, values).detach().amax(-1)
        return torch.add(total, top, alpha=0) * scores.rival_share()

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        return (Part("pairs", 1.0, self.base),)

    def fused(self, num_classes: int) -> Form | None:
        formula = formula_of(self.base)
        if formula is None:
            return None
        return Form((Term("pairs", 1.0, formula, shared=1.0, least=0.0),))

    def _from_nothing(self, others: Tensor) -> Tensor:
        """The pair sum of a target of probability 0: it loses to some, and ties the other zeros."""
        xi = float(self.base.h(0.5)) if self.xi is None else self.xi
        winners = (others > -math.inf).sum(-1, dtype=others.dtype)
        ties = others.shape[1] - 1 - winners
        return winners * float(self.base.h(0.0)) + ties * xi

    def __str__(self) -> str:
        xi = "" if self.xi is None else f", {format_arguments({'xi': self.xi})}"
        return f"BR({self.base}{xi})"


class _PairSum(torch.autograd.Function):
    """The sum over rivals of h(sigma(own - rival)), by the closed-form gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(own: Tensor, others: Tensor, base: BaseFunction) -> Tensor:
        def pair_sum(others: Tensor, own: Tensor) -> tuple[Tensor]:
            return (base.value(Margin(own[:, None] - others)).sum(-1),)

        (value,) = in_blocks(pair_sum, others, own)
        return value

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        own, others, ctx.base = inputs
        ctx.save_for_backward(own, others)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        own, others = ctx.saved_tensors
        base = ctx.base

        def gradients(others: Tensor, own: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
            at = Margin(own[:, None] - others)
            to_others = grad[:, None] * (base.slope(at) * at.q)
            return to_others, -to_others.sum(-1)

        to_others, to_own = in_blocks(gradients, others, own, grad)
        return to_own, to_others, None

"""The bounded cosine: how well the centred logits point towards the target."""

import math
from typing import Unpack

import torch
from torch import Tensor

from ..base import Linear
from ..base.function import format_arguments
from ..errors import check_factor, check_integer
from ..kernels import Form, Formula, Term
from ..loss import Policy, Scores
from .parts import DeclaredLoss, Part


class BoundedCosine(DeclaredLoss):
    r"""Bounded cosine term: :math:`C = 1 - c \, \tilde z_t / \sqrt{|\tilde z|^2 + 1}`.

    :math:`\tilde z` is the logits less their mean and :math:`c = \sqrt{K / (K - 1)}`, so
    :math:`c \, \tilde z_t / |\tilde z|` is the cosine of the angle between the logits and the
    centred one-hot vector of the target. With :math:`\bar z` the mean of the rivals, S the sum of
    their squared deviations from it and :math:`g = (z_t - \bar z) \sqrt{(K - 1) / K}`,

    .. math:: |\tilde z|^2 = g^2 + S, \qquad C = 1 - g / n, \qquad n^2 = 1 + S + g^2,

    which is :math:`(1 + S) / (n (n + g))` where g > 0 and cancels. Hence C lies in (0, 2), its sum
    over all labels is K (it is symmetric), and

    .. math::
        \partial_{z_t} = - \sqrt{\tfrac{K - 1}{K}} \, \frac{1 + S}{n^3} < 0, \qquad
        \partial_{z_i} = \frac1{n^3}
        \left( \frac{1 + S}{\sqrt{K (K - 1)}} + g (z_i - \bar z) \right).

    Gradients vanish like a power of n, not exponentially: like 1 / n where S grows with n^2, like
    1 / n^3 where S is bounded, as with two classes or where all rivals are level. C - 1 is odd in
    z, so the Hessian is 0 at equal logits; its norm is at most :math:`6 c |\tilde z| / n^3`
    anywhere. A centred z of length :math:`\sigma \sqrt K` has gradients of about :math:`1 /
    (\sigma \sqrt K)`, which `rivals` makes up for.

    Only differences of logits count, so `from_probs` is the same loss of their logarithms. Where
    probabilities are 0 it is the limit as all of these vanish together, with gradient 0. A single
    class, of which there is no rival, costs 0.

    Args:
        rivals: From more rivals than this on, the loss is multiplied by the square root of their
            number over this one. Not if None.
    """

    def __init__(self, *, rivals: int | None = None, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        if rivals is not None:
            check_integer("rivals", rivals, 1)
            check_factor("rivals", rivals)
        self.rivals = rivals

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        values, present, one = _halved(scores)
        index = target[:, None]
        rival = present.scatter(1, index, False)
        x, scale = _scaled(values, present, rival)
        share = _share(rival.sum(-1), x)
        mean = torch.where(rival, x, 0.0).sum(-1) * share
        scatter = torch.where(rival, x - mean[:, None], 0.0).square().sum(-1)
        own = x.gather(1, index)[:, 0]
        lead = (own - mean) / torch.sqrt(1 + share)
        # in units of the scale, so that no square leaves the number range
        rest = (one / scale).square() + scatter
        n = torch.sqrt(rest + lead.square())
        ahead = lead > 0
        # 1 - |g| / n; where g < 0 the loss is 2 less that
        below = rest / (n * (n + torch.where(ahead, lead, -lead)))
        value = torch.where(ahead, below, 2 - below)
        return self._factor(share) * torch.where(rival.any(-1), value, 0.0 * own)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        values, present, one = _halved(scores)
        x, scale = _scaled(values, present, present)
        number = present.sum(-1)
        mean = x.sum(-1) * _share(number, x)
        centred = torch.where(present, x - mean[:, None], 0.0)
        n = torch.sqrt((one / scale).square() + centred.square().sum(-1))
        share = _share(number - 1, x)
        cosine = torch.sqrt(1 + share) * (weights * centred).sum(-1) / n
        value = torch.where(number > 1, weights.sum(-1), 0.0) - cosine
        return self._factor(share) * value

    def _factor(self, share: Tensor) -> Tensor | float:
        if self.rivals is None:
            return 1.0
        return (share * self.rivals).clamp(max=1) ** -0.5

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        factor = 1.0 if self.rivals is None else max(1.0, (num_classes - 1) / self.rivals) ** 0.5
        return (Part("cosine", 2 * factor, Linear()),)

    def fused(self, num_classes: int) -> Form | None:
        formula = Formula("bounded_cosine", a=float(self.rivals or 0))
        return Form((Term("cosine", 1.0, formula),))

    def __str__(self) -> str:
        given = {} if self.rivals is None else {"rivals": self.rivals}
        return f"bounded_cosine({format_arguments(given)})"


def _halved(scores: Scores) -> tuple[Tensor, Tensor, Tensor]:
    """(N, C) finite values, which classes count, (N,) what its square adds to the squared length.

    All are halved, so that no difference of two logits overflows. The limit of probabilities that
    vanish together is a direction, the same negative number for these and 0 for all others, to
    whose length nothing is added. A row without a softmax stays infinite, and its loss is NaN.
    """
    values = 0.5 * scores.values
    absent = (values == -math.inf) & values.detach().amax(-1, keepdim=True).isfinite()
    half = torch.full_like(values[:, 0], 0.5)
    if not scores.normalised:
        return torch.where(absent, 0.0, values), ~absent, half
    limit = absent.any(-1)
    values = torch.where(limit[:, None], -absent.to(values.dtype), values)
    return values, torch.ones_like(absent), torch.where(limit, 0.0, half)


def _scaled(values: Tensor, kept: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
    """(N, C) values that are kept, 0 elsewhere, and (N,) the unit they are measured in.

    The unit is the largest of them, or 1. They are counted from the largest of those `near` each
    other: what these differ by is not rounded.
    """
    start = torch.where(near, values, -math.inf).detach().amax(-1, keepdim=True)
    x = torch.where(kept, values - torch.where(start == -math.inf, 0.0, start), 0.0)
    scale = x.detach().abs().amax(-1).clamp(min=1.0)
    return x / scale[:, None], scale


def _share(number: Tensor, x: Tensor) -> Tensor:
    return 1 / number.clamp(min=1).to(x.dtype)

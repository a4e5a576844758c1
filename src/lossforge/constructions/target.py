"""Target separation: the target's term minus scaled terms of all other classes."""

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from ..base import BaseFunction, Point
from ..base.function import format_arguments, formula_of, integrate
from ..errors import check_factor
from ..kernels import Form, Term
from ..loss import Policy, Scores
from ..numerics import in_blocks
from .parts import DeclaredLoss, Part


class TargetSeparation(DeclaredLoss):
    r"""Target-separated loss: :math:`h(u_t) - a \sum_{i \ne t} h_-(u_i)`.

    With a bounded :math:`h_-` the constant :math:`a (K-1) h_-(0)` is added, so that the value is 0
    at the correct one-hot prediction and never negative:

    .. math:: h(u_t) + a \sum_{i \ne t} H_-(u_i), \qquad H_-(x) = \int_0^x \varphi_-.

    Where :math:`h_-(0)` is infinite (cross entropy) and a > 0 the value stays unshifted and may be
    negative. With tau = 1 and one base function the loss is symmetric: its sum over all labels is
    constant. Gradient, with :math:`A = \sum_{i \ne t} u_i \varphi_-(u_i)`:

    .. math::
        \partial_{z_t} &= -u_t (\varphi(u_t) (1 - u_t) + a A) \\
        \partial_{z_k} &= u_k (a \varphi_-(u_k) + u_t \varphi(u_t) - a A), \qquad k \ne t.

    Args:
        base: The base function h of the target.
        tau: Strength of the separation, 0 or more; a = tau / (K - 1).
        a: The coefficient itself, for any number of classes. Given both, the larger one counts.
        nontarget: A base function :math:`h_-` of its own for the other classes; h if None.

    References:
        Definition 4.1 of the paper the project implements.
    """

    def __init__(
        self,
        base: BaseFunction,
        *,
        tau: float | None = None,
        a: float | None = None,
        nontarget: BaseFunction | None = None,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(**policy)
        check_base("base", base)
        if nontarget is not None:
            check_base("nontarget", nontarget)
        if tau is None and a is None:
            raise TypeError("tau or a must be given, got neither")
        for name, strength in (("tau", tau), ("a", a)):
            if strength is not None:
                check_factor(name, strength, "0 or more", lambda v: v >= 0)
        self.base = base
        self.nontarget = base if nontarget is None else nontarget
        self.tau = tau
        self.a = a

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        if not (self.tau or self.a):
            log_p = scores.log_probs.gather(1, target[:, None])[:, 0]
            return integrate(self.base, log_p, upward=False)
        own, others, share = scores.rivals_of(target)
        value, *_ = _Separated.apply(  # type: ignore[no-untyped-call]
            own, others, self._coefficient(share), self.base, self.nontarget
        )
        result: Tensor = value
        return result

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        log_probs = scores.log_probs
        total = scores.weighed(weights, integrate(self.base, log_probs, upward=False)).sum(-1)
        if not (self.tau or self.a):
            return total
        # sum_c w_c sum_{i != c} H_i = sum_i (W - w_i) H_i, W the sum of all w
        rest = weights.sum(-1, keepdim=True) - weights
        terms = rest * integrate(self.nontarget, log_probs, upward=True)
        spread = terms.sum(-1) if self.nontarget.bounded else scores.over_classes(terms)
        return total + self._coefficient(scores.rival_share()) * spread

    def _coefficient(self, share: Tensor) -> Tensor:
        return (share * (self.tau or 0.0)).clamp(min=self.a or 0.0)

    def coefficient(self, num_classes: int) -> float:
        """The coefficient a of the other classes' terms."""
        return max((self.tau or 0.0) / (num_classes - 1), self.a or 0.0)

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        own = Part("target", 1.0, self.base)
        return own, Part("others", self.coefficient(num_classes), self.nontarget)

    def fused(self, num_classes: int) -> Form | None:
        own, others = formula_of(self.base), formula_of(self.nontarget)
        if own is None or others is None:
            return None
        tau, a = self.tau or 0.0, self.a or 0.0
        terms = (Term("target", 1.0, own), Term("others", 1.0, others, shared=tau, least=a))
        return Form(terms if tau or a else terms[:1])

    def __str__(self) -> str:
        given = {"tau": self.tau, "a": self.a}
        strength = {name: value for name, value in given.items() if value is not None}
        second = "" if self.nontarget == self.base else f", nontarget={self.nontarget}"
        return f"TS({self.base}, {format_arguments(strength)}{second})"


class TargetLoss(DeclaredLoss):
    """A base function of the target's probability alone: scale * h(u_t) + offset.

    The scale and the constant make the value the published one.

    Args:
        base: The base function h.
        scale: Factor, positive.
        offset: The value at the correct one-hot prediction.
    """

    def __init__(
        self,
        base: BaseFunction,
        *,
        scale: float = 1.0,
        offset: float = 0.0,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(**policy)
        check_base("base", base)
        check_factor("scale", scale, "positive", lambda v: v > 0)
        check_factor("offset", offset)
        self.base = base
        self.scale = scale
        self.offset = offset

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        return self.from_log_p(scores.log_probs.gather(1, target[:, None])[:, 0])

    def from_log_p(self, log_p: Tensor) -> Tensor:
        """Values at logarithms of the target's probability."""
        return self.scale * integrate(self.base, log_p, upward=False) + self.offset

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        terms = integrate(self.base, scores.log_probs, upward=False)
        total = scores.weighed(weights, terms).sum(-1)
        return self.scale * total + self.offset * weights.sum(-1)

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        return (Part("target", self.scale, self.base),)

    def constant(self, num_classes: int) -> float:
        return self.offset

    def __str__(self) -> str:
        affine = {"scale": self.scale, "offset": self.offset}
        return f"target_loss({self.base}, {format_arguments(affine)})"


class _Separated(torch.autograd.Function):
    """The separated value of each row by the closed-form gradient.

    The other outputs are the row's maximum and the log-sum-exp above it, kept apart because their
    sum would round away what matters for large logits. They are outputs so that the backward pass
    can use them and still be differentiated; the maximum cancels and counts as a constant.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        own: Tensor, others: Tensor, a: Tensor, base: BaseFunction, nontarget: BaseFunction
    ) -> tuple[Tensor, ...]:
        def separated(others: Tensor, own: Tensor, a: Tensor) -> tuple[Tensor, ...]:
            top = torch.maximum(others.amax(-1), own)
            others, own = others - top[:, None], own - top
            others_exp, own_exp = torch.exp(others), torch.exp(own)
            rest = others_exp.sum(-1)
            total = rest + own_exp
            excess = torch.log(total)
            inverse = 1 / total
            at_own = Point(own - excess, p=own_exp * inverse, q=rest * inverse)
            at_others = Point(others - excess[:, None], p=others_exp * inverse[:, None])
            terms = _present(nontarget, others, nontarget.cumulative(at_others))
            return base.value(at_own) + a * terms.sum(-1), excess, top

        return in_blocks(separated, others, own, a)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        own, others, a, ctx.base, ctx.nontarget = inputs
        _, excess, top = output
        ctx.mark_non_differentiable(top)
        ctx.save_for_backward(own, others, a, excess, top)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_excess: Tensor, _: Tensor) -> tuple[Any, ...]:
        own, others, a, excess, top = ctx.saved_tensors
        base, nontarget = ctx.base, ctx.nontarget

        def gradients(
            others: Tensor, own: Tensor, a: Tensor, excess: Tensor, top: Tensor, *grads: Tensor
        ) -> tuple[Tensor, Tensor]:
            grad, grad_excess = grads
            log_others = others - top[:, None] - excess[:, None]
            log_own = own - top - excess
            u, u_own = torch.exp(log_others), torch.exp(log_own)
            # 1 - u_t as a sum: the difference would cancel near the one-hot prediction
            rest = u.sum(-1)
            slopes = _present(nontarget, others, nontarget.slope(Point(log_others, p=u)))
            pull = base.slope(Point(log_own, p=u_own, q=rest))
            push = a * slopes.sum(-1)
            row = grad * (pull - push) + grad_excess
            to_others = (grad * a)[:, None] * slopes + row[:, None] * u
            return to_others, u_own * grad_excess - grad * (pull * rest + push * u_own)

        to_others, to_own = in_blocks(gradients, others, own, a, excess, top, grad, grad_excess)
        return to_own, to_others, None, None, None


def _present(base: BaseFunction, others: Tensor, terms: Tensor) -> Tensor:
    """Terms of the classes that are there; a bounded base gives 0 for the others by itself."""
    return terms if base.bounded else torch.where(others > -math.inf, terms, 0.0)


def check_base(name: str, base: object) -> None:
    """Raise unless `base` is a base function."""
    if not isinstance(base, BaseFunction):
        raise TypeError(f"{name} must be a base function from lossforge.base, got {base!r}")

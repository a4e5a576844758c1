r"""A loss taken apart into what the theory knows.

Every weighted sum of target separations is, in its effect on class j of weight w out of S,

.. math:: \Theta_j(x) = w_j A(x) - (S - w_j) B(x),

where A sums the densities of the target terms and B those of the other classes' terms times their
coefficient a. One base function and one coefficient give B = a A and
:math:`\Theta_j = c_j A` with :math:`c_j = (1 + a) w_j - a S`. Binary reductions sum to one density.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..base import BaseFunction, Focal, MirroredPower, Power
from ..constructions import (
    BinaryReduction,
    Normalised,
    NormalisedNegative,
    PowerDistance,
    TargetLoss,
    TargetSeparation,
)
from ..loss import Loss, WeightedSum


@dataclass(frozen=True)
class Mixture:
    """A sum of densities with positive factors."""

    parts: tuple[tuple[float, BaseFunction], ...]

    def density(self, p: Tensor) -> Tensor:
        """The sum at probabilities."""
        return sum((scale * base.density(p) for scale, base in self.parts), torch.zeros_like(p))

    def integral(self, p: Tensor) -> Tensor:
        """The sum of the integrals from 0."""
        return sum((scale * base.H(p) for scale, base in self.parts), torch.zeros_like(p))

    @property
    def bounded(self) -> bool:
        """Whether the integral from 0 is finite."""
        return all(base.bounded for _, base in self.parts)

    @property
    def only(self) -> BaseFunction | None:
        """The one base function it consists of, up to a factor."""
        bases = {base for _, base in self.parts}
        return bases.pop() if len(bases) == 1 else None


@dataclass(frozen=True)
class Separation:
    """The target separations of a loss: densities A and B, and a where B = a A."""

    own: Mixture
    others: Mixture
    a: float | None

    def theta(self, weight: Tensor, total: Tensor, p: Tensor) -> Tensor:
        """The effect of a class of this weight at probabilities p."""
        own = weight * self.own.density(p)
        if not self.others.parts:
            return own
        return own - (total - weight) * self.others.density(p)


@dataclass(frozen=True)
class Form:
    """A loss as target separation, binary reduction, normalised parts, and what is left.

    Args:
        num_classes: K.
        separation: The target separations, if any.
        reduction: The density of the binary reductions, if any.
        normalised: Parts that are symmetric and fall with the target's logit by construction.
        unknown: Parts of which nothing is known.
    """

    num_classes: int
    separation: Separation | None
    reduction: Mixture | None
    normalised: tuple[Loss, ...]
    unknown: tuple[Loss, ...]

    @property
    def understood(self) -> bool:
        """Whether target separation and binary reduction are all there is."""
        return not self.normalised and not self.unknown


def take_apart(loss: Loss, num_classes: int) -> Form:
    """The form of a loss for K classes; parts with coefficient 0 do not count."""
    own: list[tuple[float, BaseFunction]] = []
    others: list[tuple[float, BaseFunction]] = []
    strengths: set[float | None] = set()
    pairs: list[tuple[float, BaseFunction]] = []
    normalised: list[Loss] = []
    unknown: list[Loss] = []
    for scale, member in _terms(loss):
        separated = None if scale < 0 else _separated(member, num_classes)
        if scale == 0:
            continue
        if separated is not None:
            factor, base, nontarget, a = separated
            own.append((scale * factor, base))
            strengths.add(a if a == 0 or base == nontarget else None)
            if a > 0:
                others.append((scale * factor * a, nontarget))
        elif scale > 0 and isinstance(member, BinaryReduction) and _is_reduction(member):
            pairs.append((scale * member.factor(num_classes), member.base))
        elif scale > 0 and _is_normalised(member):
            normalised.append(member)
        else:
            unknown.append(member)
    if not (own or pairs or normalised or unknown):
        raise ValueError(f"loss must have a part whose coefficient is not 0, got {loss}")
    common = strengths.pop() if len(strengths) == 1 else None
    separation = Separation(Mixture(tuple(own)), Mixture(tuple(others)), common) if own else None
    reduction = Mixture(tuple(pairs)) if pairs else None
    return Form(num_classes, separation, reduction, tuple(normalised), tuple(unknown))


def _separated(
    loss: Loss, num_classes: int
) -> tuple[float, BaseFunction, BaseFunction, float] | None:
    """Factor, base functions of the target and of the others, and a; None if it is no TS."""
    if _is(loss, TargetLoss) or _is(loss, TargetSeparation):
        assert isinstance(loss, TargetSeparation)
        if _held(loss.base) or _held(loss.nontarget):
            return None
        factor = loss.scale if isinstance(loss, TargetLoss) else 1.0
        return factor, loss.base, loss.nontarget, loss.coefficient(num_classes)
    if isinstance(loss, PowerDistance) and _is(loss, PowerDistance) and loss.a > 1 and loss.r >= 1:
        # |a - u_t|^r + sum of the others' u^r: densities r (a - x)^(r-1) and r x^(r-1)
        factor = loss.scale * loss.r / (num_classes if loss.average else 1)
        return factor, MirroredPower(loss.a, loss.r), Power(loss.r), 1.0
    return None


def _terms(loss: Loss) -> tuple[tuple[float, Loss], ...]:
    if isinstance(loss, WeightedSum) and _is(loss, WeightedSum):
        return loss.terms
    return ((1.0, loss),)


def _is_reduction(loss: BinaryReduction) -> bool:
    return _is(loss, BinaryReduction) and not _held(loss.base)


def _is(loss: Loss, kind: type[Loss]) -> bool:
    """Whether it is of a construction and computes its values as that does."""
    methods = ("per_sample", "from_scores", "from_log_p", "expected")
    own = [getattr(type(loss), name, None) for name in methods]
    return isinstance(loss, kind) and own == [getattr(kind, name, None) for name in methods]


def _held(base: BaseFunction) -> bool:
    """Whether its gradient is not the derivative of its value."""
    inner = getattr(base, "base", None)
    if isinstance(inner, BaseFunction):
        return _held(inner)
    return isinstance(base, Focal) and base.stop_gradient


def _is_normalised(loss: Loss) -> bool:
    if _is(loss, Normalised) or _is(loss, NormalisedNegative):
        assert isinstance(loss, Normalised | NormalisedNegative)
        return not _held(loss.base)
    return False

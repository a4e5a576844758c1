r"""A loss taken apart into what the theory knows.

Every weighted sum of target separations is, in its effect on class j of weight w out of S,

.. math:: \Theta_j(x) = w_j A(x) - (S - w_j) B(x),

where A sums the densities of the target terms and B those of the other classes' terms times their
coefficient a. One base function and one coefficient give B = a A and
:math:`\Theta_j = c_j A` with :math:`c_j = (1 + a) w_j - a S`. Binary reductions sum to one density.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from ..base import BaseFunction, Linear, Series
from ..constructions import ByRivals, Declared, Part
from ..loss import Loss, WeightedSum
from .trust import declarer, deviation, doubt, draws, is_foreign, nested


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

    def effect(self, weight: Tensor, total: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """Theta of a class of this weight at probabilities, and the size of its two terms."""
        own = weight * self.own.density(p)
        if not self.others.parts:
            return own, own
        rest = (total - weight) * self.others.density(p)
        return own - rest, own + rest.abs()


@dataclass(frozen=True)
class Form:
    """A loss as target separation, binary reduction, normalised parts, cosine, and what is left.

    Args:
        num_classes: K.
        separation: The target separations, if any.
        reduction: The density of the binary reductions, if any.
        normalised: Parts that are symmetric and fall with the target's logit by construction.
        unknown: Losses of which nothing is known.
        doubts: Why nothing is known of them, in words.
        assumptions: What the form rests on besides the library's own code.
        cosine: The coefficient of the bounded cosine.
    """

    num_classes: int
    separation: Separation | None
    reduction: Mixture | None
    normalised: tuple[Part, ...]
    unknown: tuple[Loss, ...]
    doubts: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    cosine: float = 0.0

    @property
    def understood(self) -> bool:
        """Whether target separation and binary reduction are all there is."""
        return not self.normalised and not self.unknown and self.cosine == 0


def take_apart(loss: Loss, num_classes: int) -> Form:
    """The form that a loss declares for K classes, if it computes what it declares.

    Parts with coefficient 0 do not count. A loss that declares nothing, or a class that overrides
    what it inherits, is unknown; so is the whole sum if its values are not those of its parts.
    """
    known: list[tuple[float, Part]] = []
    unknown: list[Loss] = []
    doubts: list[str] = []
    strengths: set[float | None] = set()
    trusted = _declarations(loss, num_classes)
    for scale, member in _terms(loss, num_classes):
        if scale == 0:
            continue
        parts, reason = _declared(member, num_classes)
        if scale < 0:
            reason = "its coefficient is negative"
        if reason is not None:
            unknown.append(member)
            doubts.append(f"{member}: {reason}")
            continue
        known += [(scale, part) for part in parts]
        strengths |= _strengths(parts)
        trusted |= _declarations(member, num_classes) | _assumptions(parts)
    if not (known or unknown):
        raise ValueError(f"loss must have a part whose coefficient is not 0, got {loss}")
    if not unknown:
        wrong = deviation(loss, tuple(known), num_classes)
        if wrong is not None:
            known, unknown, doubts = [], [loss], [f"{loss}: {wrong}"]
    own, others, pairs = (_mixture(known, role) for role in ("target", "others", "pairs"))
    common = next(iter(strengths)) if len(strengths) == 1 else None
    return Form(
        num_classes,
        Separation(own, others, common) if own.parts else None,
        pairs if pairs.parts else None,
        tuple(part for _, part in known if part.role in ("share", "remainder")),
        tuple(unknown),
        tuple(doubts),
        tuple(sorted(trusted)),
        # of C = 2 h((1 + cos) / 2), h(x) = 1 - x
        float(_mixture(known, "cosine").density(torch.ones((), dtype=torch.float64))) / 2,
    )


def _terms(loss: Loss, num_classes: int) -> list[tuple[float, Loss]]:
    """The members of a sum for K classes, each of which is then judged by itself."""
    if doubt(loss) is not None:
        return [(1.0, loss)]
    if isinstance(loss, ByRivals):
        return _terms(loss.at(num_classes), num_classes)
    if not isinstance(loss, WeightedSum):
        return [(1.0, loss)]
    return [
        (scale * factor, inner)
        for scale, member in loss.terms
        for factor, inner in _terms(member, num_classes)
    ]


def _declared(member: Loss, num_classes: int) -> tuple[tuple[Part, ...], str | None]:
    """The parts of a member whose factors are not 0, or why they are of no use."""
    reason = doubt(member)
    if reason is not None:
        return (), reason
    declared = member.parts(num_classes) if isinstance(member, Declared) else ()
    parts = tuple(part for part in declared if part.factor != 0)
    roles = {part.role for part in parts}
    if not parts:
        reason = "it declares no parts"
    elif not all(0 < part.factor < math.inf for part in parts):
        reason = "a factor of its parts is not positive and finite"
    elif "others" in roles and "target" not in roles:
        reason = "it has terms of the others and none of the target"
    elif not all(part.base.bounded for part in parts if part.role == "remainder"):
        reason = "a remainder of an unbounded function rises with the target"
    elif not all(isinstance(part.base, Linear) for part in parts if part.role == "cosine"):
        reason = "a cosine of a function that is not linear is not symmetric"
    return parts, reason


def _strengths(parts: tuple[Part, ...]) -> set[float | None]:
    """What the others' terms of each base function are in units of its target's term.

    A single number a if B = a A; None where a base function has no target's term.
    """
    own: defaultdict[BaseFunction, float] = defaultdict(float)
    others: defaultdict[BaseFunction, float] = defaultdict(float)
    for part in parts:
        if part.role in ("target", "others"):
            (own if part.role == "target" else others)[part.base] += part.factor
    found: set[float | None] = {others[base] / own[base] for base in own}
    return found if others.keys() <= own.keys() else {*found, None}


def _mixture(known: list[tuple[float, Part]], role: str) -> Mixture:
    chosen = ((scale * part.factor, part.base) for scale, part in known if part.role == role)
    return Mixture(tuple(chosen))


def _declarations(loss: Loss, num_classes: int) -> set[str]:
    """What is taken on trust about a class that is not the library's."""
    if not is_foreign(declarer(loss)):
        return set()
    name, n = type(loss).__name__, draws(num_classes)
    return {f"{name} is the sum of the parts it declares, as it was at {n} predictions"}


def _assumptions(parts: tuple[Part, ...]) -> set[str]:
    """What is taken on trust about base functions."""
    found = set()
    for base in (one for part in parts for one in nested(part.base)):
        if isinstance(base, Series):
            found.add("the function is the fitted series, not the one that it was fitted to")
        if is_foreign(type(base)):
            name = type(base).__name__
            found.add(f"the turning points or Lipschitz constant that {name} gives are right")
    return found

"""The mathematical form of a loss, as plain data that theory can reason about."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..base import BaseFunction
from ..base.function import formula_of
from ..kernels import Form, Role, Term
from ..loss import ProbabilityLoss


@dataclass(frozen=True)
class Part:
    r"""One term of a loss of the class probabilities u at label t.

    ============  ==================================================================
    role          term, times the factor
    ============  ==================================================================
    "target"      :math:`h(u_t)`
    "others"      :math:`\sum_{i \ne t} H(u_i)`, or of -h where h(0) is infinite
    "pairs"       the mean over :math:`i \ne t` of :math:`h(u_t / (u_t + u_i))`
    "share"       :math:`h(u_t) / \sum_k h(u_k)`
    "remainder"   :math:`-H(u_t) / \sum_k H(u_k)`, h bounded
    "cosine"      :math:`h((1 + \cos) / 2)`, the cosine of `BoundedCosine`, h linear
    ============  ==================================================================

    Args:
        role: What the base function is applied to.
        factor: Finite; theory decides nothing where it is negative.
        base: The base function h, with H its integral from 0.
    """

    role: Role
    factor: float
    base: BaseFunction

    def __str__(self) -> str:
        return f"{self.factor:g} times the {self.role} of {self.base}"


@runtime_checkable
class Declared(Protocol):
    """A loss that declares its form: what `lossforge.theory` decides it by.

    A class of your own may have this method too. Before anything is proved, theory compares the
    loss as it is called with the parts that it declares.
    """

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        """The terms that sum to the value, up to a constant, for K classes."""


class DeclaredLoss(ProbabilityLoss):
    """A loss of the library that declares its form, from which a kernel can evaluate it."""

    @abstractmethod
    def parts(self, num_classes: int) -> tuple[Part, ...]:
        """The terms that sum to the value, but for `constant`."""

    def constant(self, num_classes: int) -> float:
        """What the value has besides its parts."""
        return 0.0

    def fused(self, num_classes: int) -> Form | None:
        terms, parts = [], self.parts(num_classes)
        if not parts:  # nothing is known of it
            return None
        for part in parts:
            formula = formula_of(part.base)
            if formula is None:
                return None
            if part.factor != 0:
                terms.append(Term(part.role, part.factor, formula))
        return Form(tuple(terms), self.constant(num_classes))

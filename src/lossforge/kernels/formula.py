"""A loss as data that a kernel evaluates: a sum of base functions in known roles.

The kernel covers these, in the roles that published losses use them in:

============================================  =====================================================
base function                                 role
============================================  =====================================================
a polynomial density (f2, most smooth ones)   target, others, pairs
the logarithm, a focal logarithm              target, share; truncated: remainder
a power                                       target, others
a shifted or mirrored power                   target
============================================  =====================================================
"""

import math
import sys
from array import array
from dataclasses import dataclass, replace
from typing import Literal

from ..numerics import Positive

Kind = Literal["polynomial", "log", "focal", "power", "shifted_power", "mirrored_power"]
Role = Literal["target", "others", "pairs", "share", "remainder"]

# The places in these are the numbers of rows.c.
_KINDS = ("polynomial", "log", "focal", "power", "shifted_power", "mirrored_power")
_ROLES = ("target", "others", "pairs", "share", "remainder")
_COVERED = {
    "polynomial": ("target", "others", "pairs"),
    "log": ("target", "share", "remainder"),
    "focal": ("target", "share", "remainder"),
    "power": ("target", "others"),
    "shifted_power": ("target",),
    "mirrored_power": ("target",),
}
_LARGEST_SINGLE = (2 - 2**-23) * 2.0**127
_MOST_TERMS, _MOST_COEFFICIENTS = 8, 32  # as in rows.c


@dataclass(frozen=True)
class Formula:
    """A base function by its formula.

    Args:
        kind: Which formula.
        a: Its first parameter.
        b: Its second one.
        floor: The logarithm of the probability below which it is constant.
        top: Its value there.
        series: Of a polynomial: the density of p, its mean over [0, p], and its mean over [p, 1] as
            a function of 1 - p.
    """

    kind: Kind
    a: float = 0.0
    b: float = 0.0
    floor: float = -math.inf
    top: float = 0.0
    series: tuple[Positive, ...] = ()

    def coefficients(self, double: bool) -> list[tuple[float, ...]]:
        """The polynomials in powers of 2x - 1, filled up to one length."""
        powers = [one.double if double else one.single for one in self.series]
        longest = max(map(len, powers), default=0)
        filled = [(*one, *(0.0,) * (longest - len(one))) for one in powers]
        return [_without_noise(one) for one in filled]


def _without_noise(powers: tuple[float, ...]) -> tuple[float, ...]:
    """An even polynomial without its odd powers, which a fit leaves as rounding errors."""
    if max(map(abs, powers[1::2]), default=0.0) > 2**-52 * max(map(abs, powers)):
        return powers
    return tuple(0.0 if k % 2 else power for k, power in enumerate(powers))


@dataclass(frozen=True)
class Term:
    """A base function in its role, see `constructions.Part`; pairs are a sum here, not a mean.

    Its factor in the sum is `factor` times the larger of `shared` / rivals and `least`, where the
    rivals are the classes beside the label that are not masked.

    Args:
        role: What the function is applied to.
        factor: Of the term in the sum.
        formula: The function.
        shared: What the rivals share.
        least: The least of it, however many they are.
        relaxation: The weight m of an eps-softmax in front of it.
    """

    role: Role
    factor: float
    formula: Formula
    shared: float = 0.0
    least: float = 1.0
    relaxation: float = 0.0

    @property
    def covered(self) -> bool:
        """Whether the kernel has this term."""
        formula = self.formula
        if self.role not in _COVERED[formula.kind] or (self.relaxation and self.role != "target"):
            return False
        if (formula.floor > -math.inf) != (self.role == "remainder"):
            return False
        return all(
            one.line is None and len(one.double) <= _MOST_COEFFICIENTS for one in formula.series
        )


@dataclass(frozen=True)
class Rescaling:
    """What is done to the logits first: to a length, where their Euclidean norm exceeds a bound.

    Args:
        length: The length.
        above: The bound.
        added: To the norm that is divided by.
    """

    length: float
    above: float
    added: float = 0.0


@dataclass(frozen=True)
class Form:
    """A loss for one number of classes: a constant and a sum of terms.

    Args:
        terms: The terms.
        constant: Added to their sum.
        rescaling: Of the logits, before anything else.
    """

    terms: tuple[Term, ...]
    constant: float = 0.0
    rescaling: Rescaling | None = None

    def __mul__(self, factor: float) -> "Form":
        terms = tuple(replace(term, factor=factor * term.factor) for term in self.terms)
        return replace(self, terms=terms, constant=factor * self.constant)

    def __add__(self, other: "Form") -> "Form":
        """The sum of two losses of the same logits."""
        terms, constant = self.terms + other.terms, self.constant + other.constant
        return replace(self, terms=terms, constant=constant)

    @property
    def covered(self) -> bool:
        """Whether the kernel has all terms."""
        return 1 <= len(self.terms) <= _MOST_TERMS and all(term.covered for term in self.terms)

    @property
    def smooth(self) -> bool:
        """Whether any row can be evaluated, masked and infinite logits included."""
        polynomials = all(term.formula.kind == "polynomial" for term in self.terms)
        return polynomials and self.rescaling is None

    @property
    def is_cross_entropy(self) -> bool:
        """Whether torch has this loss itself."""
        return self == Form((Term("target", 1.0, Formula("log")),))

    def numbers(self, *, double: bool) -> "array[float]":
        """What `read_plan` of rows.c reads."""
        found = array("d", [len(self.terms), self.constant])
        first = self.rescaling or Rescaling(0.0, 0.0)
        # a row so short that the derivative overflows counts as zero
        shortest = 1024 * first.length / (sys.float_info.max if double else _LARGEST_SINGLE)
        found.extend([first.length, max(first.above, shortest), first.added])
        for term in self.terms:
            formula, powers = term.formula, term.formula.coefficients(double)
            found.extend([_ROLES.index(term.role), _KINDS.index(formula.kind)])
            found.extend([term.factor, term.shared, term.least, term.relaxation])
            found.extend([formula.a, formula.b, formula.floor, formula.top])
            found.append(len(powers[0]) if powers else 0)
            for one in powers:
                found.extend(one)
        return found

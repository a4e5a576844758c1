"""A loss as data that a kernel evaluates: a sum of base functions in known roles.

The kernel covers these, in the roles that published losses use them in:

============================================  =====================================================
base function                                 role
============================================  =====================================================
a polynomial density (f2, most smooth ones)   target, others, pairs
the logarithm, a focal logarithm              target, share; truncated: remainder
a power                                       target, others
a shifted or mirrored power                   target
the bounded cosine of the logits              cosine
============================================  =====================================================
"""

import math
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..numerics import Positive

Kind = Literal[
    "polynomial", "log", "focal", "power", "shifted_power", "mirrored_power", "bounded_cosine"
]
Role = Literal["target", "others", "pairs", "share", "remainder", "cosine"]

# The places in these are the numbers of rows.c.
_KINDS = get_args(Kind)
_ROLES = get_args(Role)
_COVERED = {
    "polynomial": ("target", "others", "pairs"),
    "log": ("target", "share", "remainder"),
    "focal": ("target", "share", "remainder"),
    "power": ("target", "others"),
    "shifted_power": ("target",),
    "mirrored_power": ("target",),
    "bounded_cosine": ("cosine",),
}
_LARGEST_SINGLE = (2 - 2**-23) * 2.0**127
_MOST_TERMS, _MOST_COEFFICIENTS, _NEAR = 8, 32, 5  # as in rows.c
_REACHES = [2.0**-k for k in range(4, 8)]
_SINGLE = 2**-24  # relative error of a polynomial in single precision


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
        """The polynomials in powers of 2x - 1, as short as the precision allows."""
        return [one.double if double else one.economised(1.0, _SINGLE) for one in self.series]

    def numbers(self, double: bool) -> list[float]:
        """The polynomials in powers of 2x - 1, and those near 0, as rows.c reads them."""
        if not self.series:
            return [0.0, 0.0, 0.0]
        density, up, down = self.coefficients(double)
        means = max(len(up), len(down))
        found = [len(density), means, *density, *_filled(up, means), *_filled(down, means)]
        short = double or max(len(density), means) <= _NEAR
        return [*found, *([0.0] if short else _near(self.series[:2]))]


def _near(functions: Sequence[Positive]) -> list[float]:
    """How far a few powers of 2x / reach - 1 reach, and these; 0 if not far enough.

    Most classes of many have a small probability: there a short polynomial does.
    """
    for reach in _REACHES:
        density, up = (one.economised(reach, _SINGLE) for one in functions)
        if max(len(density), len(up)) <= _NEAR:
            return [reach, *_filled(density, _NEAR), *_filled(up, _NEAR)]
    return [0.0]


def _filled(powers: tuple[float, ...], length: int) -> tuple[float, ...]:
    return powers + (0.0,) * (length - len(powers))


@dataclass(frozen=True)
class Term:
    """A base function in its role, see `constructions.Part`; pairs are a sum here, not a mean.

    Its factor in the sum is `factor` times the larger of `shared` / rivals and `least`, where the
    rivals are the classes beside the label that are not masked; it is 0 in rows with fewer of them
    than `fewest` or more than `most`.

    Args:
        role: What the function is applied to.
        factor: Of the term in the sum.
        formula: The function.
        shared: What the rivals share.
        least: The least of it, however many they are.
        relaxation: The weight m of an eps-softmax in front of it.
        fewest: The least number of rivals at which it counts.
        most: The largest one.
    """

    role: Role
    factor: float
    formula: Formula
    shared: float = 0.0
    least: float = 1.0
    relaxation: float = 0.0
    fewest: int = 0
    most: float = math.inf

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

    def within(self, *, fewest: int = 0, most: float = math.inf) -> "Form":
        """The same terms, but none in rows with fewer or more rivals."""
        terms = (
            replace(term, fewest=max(term.fewest, fewest), most=min(term.most, most))
            for term in self.terms
        )
        return replace(self, terms=tuple(terms))

    @property
    def covered(self) -> bool:
        """Whether the kernel has all terms."""
        return 1 <= len(self.terms) <= _MOST_TERMS and all(term.covered for term in self.terms)

    @property
    def smooth(self) -> bool:
        """Whether any row can be evaluated, masked and infinite logits included."""
        kinds = {term.formula.kind for term in self.terms}
        return kinds <= {"polynomial", "bounded_cosine"} and self.rescaling is None

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
            formula = term.formula
            found.extend([_ROLES.index(term.role), _KINDS.index(formula.kind)])
            found.extend([term.factor, term.shared, term.least, term.relaxation])
            found.extend([term.fewest, term.most])
            found.extend([formula.a, formula.b, formula.floor, formula.top])
            found.extend(formula.numbers(double))
        return found

"""The paper's statements as functions: hypothesis and conclusion at given inputs.

Every statement takes a base function, label weights and the coefficient a, and returns a `Check`.
Fractions give exact answers; the library's base functions give floats. Names such as CE4 are the
counterexamples of docs/theory.md.
"""

from .check import (
    Check,
    Curve,
    coefficients,
    curve,
    quadratic,
    reduced,
    separated,
    simplex,
    weighted,
)
from .reduction import (
    corollary_2,
    lemma_2,
    lemma_3,
    theorem_3,
    theorem_4,
    theorem_5,
    theorem_5_restated,
)
from .separation import corollary_1, corollary_3, lemma_1, theorem_1, theorem_2

__all__ = [
    "Check",
    "Curve",
    "coefficients",
    "corollary_1",
    "corollary_2",
    "corollary_3",
    "curve",
    "lemma_1",
    "lemma_2",
    "lemma_3",
    "quadratic",
    "reduced",
    "separated",
    "simplex",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "theorem_4",
    "theorem_5",
    "theorem_5_restated",
    "weighted",
]

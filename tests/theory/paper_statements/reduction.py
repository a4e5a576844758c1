"""The paper's statements on binary reduction: theorems 3 to 5, lemmas 2 and 3, corollary 2."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

from lossforge.base import BaseFunction

from .check import (
    GRID,
    Check,
    Curve,
    Function,
    Number,
    Vector,
    at_most,
    constant,
    curve,
    divide,
    first,
    minimum_at,
    reduced,
    simplex,
    target_of,
    weighted,
)

HALF = GRID[len(GRID) // 2]


def theorem_3(
    base: Curve | BaseFunction, num_classes: int, points: Iterable[Vector] | None = None
) -> Check:
    """With xi = l(1/2): the pair loss l is symmetric if and only if the reduced loss is. True.

    Args:
        base: The pair loss l.
        num_classes: K.
        points: Predictions to look at. For K = 3 the converse needs one inside the simplex.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> both = theorem_3(quadratic(3, Fraction(1, 2)), 4)
    >>> neither = theorem_3(quadratic(3, Fraction(1, 3)), 4)
    >>> both.hypothesis, both.conclusion, neither.hypothesis, neither.conclusion
    (True, True, False, False)
    """
    h = curve(base).h
    symmetric, words = _reduction_is_symmetric(h, num_classes, points)
    return Check(_is_symmetric(h), symmetric, words, equivalence=True)


def theorem_4(base: Curve | BaseFunction, points: Sequence[Number] = GRID) -> Check:
    """The pair loss l is symmetric if and only if g = l - l(1/2) is odd about 1/2. True.

    Args:
        base: The pair loss l.
        points: Probabilities to look at.

    >>> from lossforge.base import Exponential
    >>> theorem_4(Exponential(beta=-2, gamma=0.5)).conclusion
    True
    >>> theorem_4(Exponential(beta=-2, gamma=0.4)).conclusion
    False
    """
    h = curve(base).h
    odd, words = _is_odd(h, points)
    return Check(_is_symmetric(h, points), odd, words, equivalence=True)


def corollary_2(
    base: Curve | BaseFunction, num_classes: int, points: Iterable[Vector] | None = None
) -> Check:
    """With xi = l(1/2): g is odd about 1/2 if and only if the reduced loss is symmetric. True.

    Args:
        base: The pair loss l.
        num_classes: K.
        points: Predictions to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> corollary_2(quadratic(3, Fraction(1, 2)), 3).conclusion
    True
    """
    h = curve(base).h
    odd, first_words = _is_odd(h, GRID)
    symmetric, words = _reduction_is_symmetric(h, num_classes, points)
    return Check(odd, symmetric, f"{first_words}; {words}", equivalence=True)


def lemma_2(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    *,
    xi: Number | None = None,
    unique: bool = True,
    points: Iterable[Vector] | None = None,
) -> Check:
    """If every pair prefers its heavier class, moving mass of light classes to t never raises W.

    The inequality is true; "asymmetric" is true only as e_t being one of the minimisers (CE3 is a
    case of two classes). The pairs of t alone are enough, and that l(1) and l(0) are extreme
    follows. The constant: xi = inf l excludes the l(1/2) of theorem 3, unless l is constant; with
    l(1/2) and unequal weights there is no minimiser at all (CE7). On open predictions, all a
    softmax can make, xi never occurs.

    Args:
        base: The pair loss l.
        w: Label weights, in any order; they are sorted.
        xi: The value of a pair of zeros; l(1), as the lemma assumes, if None.
        unique: Conclude that e_t is the only minimiser, as printed.
        points: Predictions to look at, the heaviest class first.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> symmetric = quadratic(7, Fraction(1, 2))
    >>> w = [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)]
    >>> lemma_2(symmetric, w).holds
    True
    >>> ce7 = lemma_2(symmetric, w, xi=symmetric.h(Fraction(1, 2)))
    >>> ce7.hypothesis, ce7.conclusion
    (False, False)
    """
    h = curve(base).h
    target_of(w)
    w = sorted(w, reverse=True)
    k = len(w)
    value = h(1) if xi is None else xi
    fits = value == h(1) and _is_extreme(h)
    worse = first((v, x) for v, x in _ordered(w) if _pair_rise(h, v, x))
    looked = list(simplex(k) if points is None else points)

    @cache
    def W(u: Vector) -> Number:
        return weighted(w, reduced(h, u, value))

    def moved(u: Vector, s: int) -> Vector:
        return (u[0] + sum(u[s:]), *u[1:s], *([0] * (k - s)))

    rise = first(u for u in looked for s in range(1, k) if not at_most(W(moved(u, s)), W(u)))
    good, words, better = minimum_at(W, k, 0, looked, unique)
    return Check(fits and worse is None, rise is None and good, words, rise or better or worse)


def lemma_3(
    base: Curve | BaseFunction,
    heavy: Number,
    light: Number,
    points: Sequence[Number] = GRID,
) -> Check:
    """A pair's weighted loss never rises with p (1), iff w_1 g'(p) <= w_2 g'(1-p) (2). True.

    Here p + q = 1; that w_1 >= w_2 is not needed.

    Args:
        base: The pair loss l.
        heavy: w_1.
        light: w_2.
        points: Probabilities to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> lemma_3(quadratic(2, 1), 3, 1).conclusion, lemma_3(quadratic(2, 1), 2, 1).conclusion
    (True, False)
    """
    h, dh, _ = curve(base)
    rise = _pair_rise(h, heavy, light, points)
    steep = first((x,) for x in points if not at_most(heavy * dh(x), light * dh(1 - x)))
    words = "not contradicted" if steep is None else f"(2) fails at p = {steep[0]}"
    return Check(rise is None, steep is None, words, steep or rise, equivalence=True)


def theorem_5(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    *,
    unique: bool = True,
    points: Iterable[Vector] | None = None,
) -> Check:
    """If w_i g'(p) <= w_j g'(1-p) for all w_i >= w_j, e_t is the only minimiser of W; xi = l(1).

    True for e_t as one minimiser, false for the only one (CE3, two classes). It says less than it
    seems: two equal positive weights put the condition in force both ways and make g odd, so for
    three or more classes and symmetric noise gamma = 1/2 is all that passes. Pairs without t need
    no condition: with w_t (l(p) - l(1)) > w_j (l(0) - l(1-p)) for all j and p < 1, minimising
    sequences tend to e_t.

    Args:
        base: The pair loss l.
        w: Label weights.
        unique: Conclude that e_t is the only minimiser, as printed.
        points: Predictions to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> tilted, half = quadratic(Fraction(1, 2), 1), Fraction(1, 2)
    >>> theorem_5(tilted, [3 * half / 2, half / 2, 0]).hypothesis
    True
    >>> symmetric_noise = theorem_5(tilted, [half, half / 2, half / 2])
    >>> symmetric_noise.hypothesis, symmetric_noise.conclusion
    (False, True)
    """
    h, dh, _ = curve(base)
    steep = _pair_condition(dh, w)
    value = h(1)
    good, words, better = minimum_at(
        lambda u: weighted(w, reduced(h, u, value)), len(w), target_of(w), points, unique
    )
    return Check(steep is None and _is_extreme(h), good, words, better or steep)


def theorem_5_restated(base: Curve | BaseFunction, w: Sequence[Number]) -> Check:
    """The condition of theorem 5, if and only if its restatement by ratios.

    The restatement: g' <= 0; where g'(p) = 0 also g'(1-p) = 0; and where g'(p) < 0 the ratio
    g'(1-p)/g'(p) is at most every w_i/w_j with w_i >= w_j > 0. True if some weight besides w_t is
    positive, otherwise false: CE8 has g' = -2p and clean labels.

    Args:
        base: The pair loss l.
        w: Label weights.

    >>> from fractions import Fraction
    >>> from paper_statements import Curve
    >>> ce8 = Curve(lambda p: 1 - p * p, lambda p: -2 * p)
    >>> check = theorem_5_restated(ce8, [1, 0, 0])
    >>> check.hypothesis, check.conclusion, check.witness
    (True, False, (Fraction(0, 1),))
    """
    dh = curve(base).dh
    pairs = [(v, x) for v, x in _ordered(w) if x > 0]

    def fits(p: Number) -> bool:
        slope, mirrored = dh(p), dh(1 - p)
        if slope >= 0:
            return slope == 0 == mirrored
        return all(at_most(divide(x * mirrored, slope), v) for v, x in pairs)

    wrong = first((p,) for p in GRID if not fits(p))
    steep = _pair_condition(dh, w)
    words = "not contradicted" if wrong is None else f"the restatement fails at p = {wrong[0]}"
    return Check(steep is None, wrong is None, words, wrong or steep, equivalence=True)


def _is_symmetric(h: Function, points: Sequence[Number] = GRID) -> bool:
    return constant(h(p) + h(1 - p) for p in points)


def _is_odd(h: Function, points: Sequence[Number]) -> tuple[bool, str]:
    middle = h(HALF)
    sums = [(h(p) - middle) + (h(1 - p) - middle) for p in points]
    words = f"g(p) + g(1-p) from {float(min(sums)):.6g} to {float(max(sums)):.6g}"
    return at_most(max(sums), 0) and at_most(0, min(sums)), words


def _reduction_is_symmetric(
    h: Function, k: int, points: Iterable[Vector] | None
) -> tuple[bool, str]:
    sums = [sum(reduced(h, u, h(HALF))) for u in (simplex(k) if points is None else points)]
    words = f"sums over labels from {float(min(sums)):.6g} to {float(max(sums)):.6g}"
    return constant(sums), words


def _is_extreme(h: Function) -> bool:
    return all(at_most(h(1), h(p)) and at_most(h(p), h(0)) for p in GRID)


def _ordered(w: Sequence[Number]) -> list[tuple[Number, Number]]:
    """The different pairs (w_i, w_j), i != j, with w_i >= w_j."""
    k = range(len(w))
    return sorted({(w[i], w[j]) for i in k for j in k if i != j and w[i] >= w[j]})


def _pair_condition(dh: Function, w: Sequence[Number]) -> Vector | None:
    """Where w_i g'(p) <= w_j g'(1-p) fails: (w_i, w_j, p)."""
    pairs = _ordered(w)
    return first((v, x, p) for v, x in pairs for p in GRID if not at_most(v * dh(p), x * dh(1 - p)))


def _pair_rise(
    h: Function, heavy: Number, light: Number, points: Sequence[Number] = GRID
) -> Vector | None:
    """Two probabilities between which the pair's loss rises."""

    def pair(p: Number) -> Number:
        return heavy * h(p) + light * h(1 - p)

    return first((p, q) for p, q in pairwise(sorted(points)) if not at_most(pair(q), pair(p)))

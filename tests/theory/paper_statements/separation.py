"""The paper's statements on target separation: theorems 1 and 2, lemma 1, corollaries 1 and 3."""

from collections.abc import Callable, Iterable, Sequence

from lossforge.base import BaseFunction

from .check import (
    GRID,
    Check,
    Curve,
    Number,
    Vector,
    at_most,
    coefficients,
    constant,
    curve,
    divide,
    first,
    minimum_at,
    separated,
    simplex,
    target_of,
    weighted,
)


def theorem_1(
    losses: Callable[[Vector], Sequence[Number]],
    num_classes: int,
    a: Number,
    points: Iterable[Vector] | None = None,
) -> Check:
    """If a = 1/(K-1), the separated loss is symmetric. True, for every finite base loss.

    The sum over labels is (1 - a (K-1)) times that of the base loss. Nothing follows about where
    the loss is small: CE6 is symmetric and prefers a wrong corner.

    Args:
        losses: u to the base loss of each of the K labels; any function of u, not only h(u_i).
        num_classes: K.
        a: The separation coefficient.
        points: Predictions to look at.

    >>> from fractions import Fraction
    >>> squares = lambda u: [(1 - x) ** 2 + u[0] for x in u]
    >>> theorem_1(squares, 3, Fraction(1, 2)).conclusion
    True
    >>> theorem_1(squares, 3, Fraction(1, 3)).conclusion
    False
    """
    looked = simplex(num_classes) if points is None else points
    sums = [sum(separated(losses(u), a)) for u in looked]
    return Check(
        hypothesis=a * (num_classes - 1) == 1,
        conclusion=constant(sums),
        detail=f"sums over labels from {float(min(sums)):.6g} to {float(max(sums)):.6g}",
    )


def lemma_1(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    *,
    rival: int | None = None,
    on_simplex: bool = False,
    points: Sequence[Number] = GRID,
) -> Check:
    """Moving mass from s to t never raises W (1), if and only if c_t phi(u_t) >= c_s phi(u_s) (2).

    False as printed: (2) is asked on the whole square, while a prediction has u_s + u_t <= 1, and
    CE2 satisfies (1) and not (2). True for weights that sum to one if (2) is asked of predictions
    only: on the triangle u_s + u_t <= 1, for two classes on its edge u_s + u_t = 1.

    Args:
        base: h and h'.
        w: Label weights.
        a: The separation coefficient.
        rival: The class s; the heaviest one if None.
        on_simplex: Ask (2) only where predictions are, which is the repaired lemma.
        points: Values of u_s and u_t to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> ce2 = quadratic(-1, Fraction(3, 10)), [Fraction(37, 57), Fraction(20, 57)], 0
    >>> lemma_1(*ce2).holds, lemma_1(*ce2, on_simplex=True).holds
    (False, True)
    """
    h, dh, _ = curve(base)
    t = target_of(w)
    s = max((i for i in range(len(w)) if i != t), key=w.__getitem__) if rival is None else rival
    c = coefficients(w, a)
    printed = coefficients(w, a, total=1)
    pairs = [(x, y) for x in points for y in points]
    inside = [(x, y) for x, y in pairs if (x + y == 1 if len(w) == 2 else x + y <= 1)]
    rise = first(
        (x, y, d)
        for x, y in inside
        for d in points
        if 0 < d <= y and not at_most(c[t] * h(x + d) + c[s] * h(y - d), c[t] * h(x) + c[s] * h(y))
    )
    steep = first(
        (x, y)
        for x, y in (inside if on_simplex else pairs)
        if not at_most(printed[t] * dh(x), printed[s] * dh(y))
    )
    words = [
        f"(1) {_at('u_t, u_s, step', rise)}",
        f"(2) {_at('u_t, u_s', steep)}",
    ]
    return Check(rise is None, steep is None, "; ".join(words), steep or rise, equivalence=True)


def theorem_2(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    *,
    unique: bool = True,
    points: Iterable[Vector] | None = None,
) -> Check:
    """If (2) of lemma 1 holds for every rival, e_t is the only minimiser of W.

    False as printed, twice. Equality in (2) lets other minimisers in: CE3, or a constant h. And
    weights that do not sum to one make the printed coefficients wrong when a > 0: CE1. True for
    S = 1: e_t is one minimiser, the only one if (2) is strict or phi is positive and analytic, as
    f1 and f2 are. It is enough to have (2) where u_s + u_t <= 1.

    Args:
        base: h and h'.
        w: Label weights.
        a: The separation coefficient.
        unique: Conclude that e_t is the only minimiser, as printed; False asks for one of them.
        points: Predictions to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> w = [Fraction(3, 100), Fraction(2, 100)]
    >>> ce1 = theorem_2(quadratic(Fraction(-9, 10), 0), w, Fraction(1, 40))
    >>> ce1.hypothesis, ce1.conclusion
    (True, False)
    >>> theorem_2(quadratic(Fraction(-9, 10), 0), [Fraction(3, 5), Fraction(2, 5)], 1).holds
    True
    """
    dh = curve(base).dh
    t = target_of(w)
    printed = coefficients(w, a, total=1)
    rising = first((x,) for x in GRID if not at_most(dh(x), 0))
    steep = first(
        (x, y)
        for c in {c for s, c in enumerate(printed) if s != t}
        for x in GRID
        for y in GRID
        if not at_most(printed[t] * dh(x), c * dh(y))
    )
    good, words, better = _minimum(base, w, a, unique, points)
    return Check(rising is None and steep is None, good, words, better or steep or rising)


def corollary_1(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    *,
    unique: bool = True,
    points: Iterable[Vector] | None = None,
) -> Check:
    """Four ranges of a, each of which makes e_t the only minimiser of W.

    (1) max w_s/(1-w_s) <= a <= w_t/(1-w_t): true, for every strictly decreasing h.
    (2), (3) a below or above it, and the ratio of two slopes bounded: true for one minimiser, not
    for the only one (CE3 meets (2) with equality).
    (4) a = 1/(K-1): false when the other weights differ (CE4; CE5 is the paper's own 0.4
    asymmetric noise); true when they are equal, as in symmetric noise.

    Args:
        base: h and h'.
        w: Label weights; the paper asks for 0 < w_t < 1.
        a: The separation coefficient.
        unique: Conclude that e_t is the only minimiser, as printed.
        points: Predictions to look at.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> ce4 = [Fraction(1, 2), Fraction(9, 20), Fraction(1, 20)]
    >>> check = corollary_1(quadratic(10, 1), ce4, Fraction(1, 2))
    >>> check.cases, check.conclusion
    ((4,), False)
    >>> check = corollary_1(quadratic(10, 1), ce4, Fraction(9, 10))
    >>> check.cases, check.conclusion
    ((1,), True)
    """
    dh = curve(base).dh
    t = target_of(w)
    rivals = [weight for s, weight in enumerate(w) if s != t]
    minus_c = [(1 - weight) * a - weight for weight in rivals]
    minus_ct = (1 - w[t]) * a - w[t]
    slopes = [(dh(x), dh(y)) for x in GRID for y in GRID]

    def ratios(sign: int) -> bool:
        """Whether h'(u_t)/h'(u_s) >= c_s/c_t for sign 1, <= for sign -1, at all points."""
        return all(
            y < 0 and at_most(sign * divide(c, minus_ct), sign * divide(x, y))
            for c in minus_c
            for x, y in slopes
        )

    below = any(a * (1 - weight) < weight for weight in rivals)
    conditions = {
        1: not below and minus_ct <= 0,
        2: below and ratios(1),
        3: minus_ct > 0 and ratios(-1),
        4: a * (len(w) - 1) == 1,
    }
    return _by_cases(base, w, a, conditions, unique, points)


def corollary_3(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    *,
    unique: bool = True,
    points: Iterable[Vector] | None = None,
) -> Check:
    """Corollary 1 for f1 and f2, whose slopes differ by a factor xi at most.

    (1) max_s (w_t - w_s xi)/((1-w_t) - (1-w_s) xi) <= a <= w_t/(1-w_t), and (2) a above it with
    xi <= ((1-w_s) a - w_s)/((1-w_t) a - w_t): true, the minimiser is unique, S = 1 assumed.
    (3) a = 1/(K-1): false when the other weights differ (CE4, CE5). The values of xi are right.

    Args:
        base: A curve with its ratio xi, such as `quadratic`, or the library's f1 or f2.
        w: Label weights; the paper asks for 0 < w_t < 1.
        a: The separation coefficient.
        unique: Conclude that e_t is the only minimiser, as printed.
        points: Predictions to look at.

    The worked example, ten classes with 0.8 symmetric noise: a = 1/30 needs xi <= 234/79.

    >>> from fractions import Fraction
    >>> from paper_statements import quadratic
    >>> w = [Fraction(1, 5)] + [Fraction(4, 45)] * 9
    >>> largest = quadratic(Fraction(234, 79) - 1, 1)
    >>> corollary_3(largest, w, Fraction(1, 30)).cases
    (1,)
    >>> corollary_3(quadratic(Fraction(2), 1), w, Fraction(1, 30)).cases
    ()
    """
    xi = curve(base).xi
    if xi is None:
        raise ValueError(f"base must be f1, f2 or a curve with its ratio xi, got {base}")
    t = target_of(w)
    top, rivals = w[t], [weight for s, weight in enumerate(w) if s != t]
    above = (1 - top) * a - top
    # both sides of (1) times its denominator, which is negative because xi >= 1
    lower = all(at_most(a * ((1 - top) - (1 - v) * xi), top - v * xi) for v in rivals)
    conditions = {
        1: above <= 0 and lower,
        2: above > 0 and all(at_most(xi * above, (1 - v) * a - v) for v in rivals),
        3: a * (len(w) - 1) == 1,
    }
    return _by_cases(base, w, a, conditions, unique, points)


def _by_cases(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    conditions: dict[int, bool],
    unique: bool,
    points: Iterable[Vector] | None,
) -> Check:
    cases = tuple(case for case, met in conditions.items() if met)
    good, words, better = _minimum(base, w, a, unique, points)
    inside = 0 < max(w) < 1
    return Check(inside and bool(cases), good, words, better, cases)


def _minimum(
    base: Curve | BaseFunction,
    w: Sequence[Number],
    a: Number,
    unique: bool,
    points: Iterable[Vector] | None,
) -> tuple[bool, str, Vector | None]:
    """Where the weighted separated loss is smallest."""
    h = curve(base).h
    return minimum_at(
        lambda u: weighted(w, separated([h(x) for x in u], a)), len(w), target_of(w), points, unique
    )


def _at(names: str, point: Vector | None) -> str:
    found = "" if point is None else f" at {names} = {', '.join(map(str, point))}"
    return "fails" + found if found else "not contradicted"

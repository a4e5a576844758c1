"""What the paper's statements are made of, on plain numbers, exactly if the numbers are exact."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, pairwise
from math import comb, exp
from typing import NamedTuple

from lossforge.base import BaseFunction, Exponential, Quadratic

Number = Fraction | float
Vector = tuple[Number, ...]
Function = Callable[[Number], Number]

GRID: tuple[Number, ...] = tuple(Fraction(i, 20) for i in range(21))
"""The points of [0, 1] that a statement looks at unless it is given others."""


@dataclass(frozen=True)
class Check:
    """What one statement says about one set of inputs.

    Where a side speaks of all points, finitely many are looked at. In exact arithmetic False is
    then a fact, and True says that none of these points contradicts.

    Attributes:
        hypothesis: Whether what the statement assumes is true here.
        conclusion: Whether what it concludes is true here.
        detail: What was found, in words.
        witness: The point behind a False conclusion, otherwise behind a False hypothesis.
        cases: The numbers of the statement's own cases that apply.
        equivalence: Whether the statement claims both directions.
    """

    hypothesis: bool
    conclusion: bool
    detail: str
    witness: Vector | None = None
    cases: tuple[int, ...] = ()
    equivalence: bool = False

    @property
    def holds(self) -> bool:
        """Whether the statement survives these inputs."""
        if self.equivalence:
            return self.hypothesis == self.conclusion
        return self.conclusion or not self.hypothesis


class Curve(NamedTuple):
    """A base function h as two callables, with the ratio max h' / min h' where it is known."""

    h: Function
    dh: Function
    xi: Number | None = None


def quadratic(r: Number, gamma: Number) -> Curve:
    """f2 with h' = -(1 + r (x - gamma)^2) and h(1) = 0, exact on fractions.

    >>> quadratic(4, Fraction(1, 2)).h(Fraction(1, 2))
    Fraction(2, 3)
    """

    def total(x: Number) -> Number:
        return x * (1 + r * (x * x / Fraction(3) - gamma * x + gamma * gamma))

    end = 1 + r * max(gamma, 1 - gamma) ** 2
    xi = max(end, divide(1, end))
    return Curve(lambda x: total(1) - total(x), lambda x: -(1 + r * (x - gamma) ** 2), xi)


def curve(base: Curve | BaseFunction) -> Curve:
    """The callables of a curve, or of one of the library's base functions in floating point.

    They remember their values: a grid asks for the same ones many times.
    """
    if not isinstance(base, BaseFunction):
        return Curve(cache(base.h), cache(base.dh), base.xi)
    if not base.bounded:
        raise ValueError(f"base must be finite at 0, got {base}")
    function = base
    xi: float | None = None
    if isinstance(base, Exponential):
        xi = exp(abs(base.beta) * max(base.gamma, 1 - base.gamma) ** 2)
    elif isinstance(base, Quadratic):
        end = 1 + base.alpha / base.beta * max(base.gamma, 1 - base.gamma) ** 2
        xi = max(end, 1 / end)
    return Curve(
        cache(lambda x: float(function.h(float(x)))),
        cache(lambda x: -float(function.phi(float(x)))),
        xi,
    )


def separated(values: Sequence[Number], a: Number) -> list[Number]:
    """The target-separated loss for every label, from the base loss L(u, i) for every i.

    >>> separated([1, 2, 5], Fraction(1, 2))
    [Fraction(-5, 2), Fraction(-1, 1), Fraction(7, 2)]
    """
    total = sum(values)
    return [value - a * (total - value) for value in values]


def reduced(l: Function, u: Sequence[Number], xi: Number) -> list[Number]:  # noqa: E741
    """The binary-reduced loss for every label; `xi` is the value of a pair of zeros.

    >>> reduced(lambda p: 1 - p, (Fraction(1, 2), Fraction(1, 2), 0), 0)
    [Fraction(1, 4), Fraction(1, 4), Fraction(1, 1)]
    """

    def pair(x: Number, y: Number) -> Number:
        return l(divide(x, x + y)) if x + y else xi

    k = len(u)
    sums = [sum(pair(u[t], u[i]) for i in range(k) if i != t) for t in range(k)]
    return [total * Fraction(1, k - 1) for total in sums]


def weighted(w: Sequence[Number], losses: Sequence[Number]) -> Number:
    """W, the sum of the labels' losses with weights w."""
    return sum(weight * loss for weight, loss in zip(w, losses, strict=True))


def coefficients(w: Sequence[Number], a: Number, total: Number | None = None) -> list[Number]:
    """c_j = (1 + a) w_j - a S: the weighted separated loss is the sum of c_j h(u_j).

    Args:
        w: Label weights.
        a: Separation coefficient.
        total: S, the sum of the weights if None. The paper prints -c_j with S = 1 whatever the sum.

    >>> coefficients([Fraction(1, 2), Fraction(9, 20), Fraction(1, 20)], Fraction(1, 2))
    [Fraction(1, 4), Fraction(7, 40), Fraction(-17, 40)]
    """
    size = sum(w) if total is None else total
    return [(1 + a) * weight - a * size for weight in w]


def target_of(w: Sequence[Number]) -> int:
    """The class of the largest weight, which must be one."""
    top = max(w)
    if len(w) < 2 or min(w) < 0 or list(w).count(top) != 1:
        raise ValueError(f"w must be non-negative with one largest entry, got {tuple(w)}")
    return list(w).index(top)


def one_hot(k: int, t: int) -> Vector:
    """The corner e_t of the simplex of k classes."""
    return tuple(int(i == t) for i in range(k))


def simplex(k: int, parts: int | None = None) -> Iterator[Vector]:
    """All predictions of k classes in multiples of 1 / parts; by default about 200 of them.

    >>> [tuple(map(str, u)) for u in simplex(2, 2)]
    [('0', '1'), ('1/2', '1/2'), ('1', '0')]
    """
    if parts is None:
        parts = next(n for n in range(1, 1000) if comb(n + k, k - 1) > 200)
    for bars in combinations(range(parts + k - 1), k - 1):
        ends = (-1, *bars, parts + k - 1)
        yield tuple(Fraction(right - left - 1, parts) for left, right in pairwise(ends))


def predictions(k: int, t: int) -> Iterator[Vector]:
    """A grid on the simplex, and a finer one on the edges that meet in e_t."""
    edges = (
        tuple(1 - x if i == t else x if i == s else Fraction(0) for i in range(k))
        for s in range(k)
        for x in GRID[1:-1]
        if s != t
    )
    return chain(simplex(k), edges)


def at_most(x: Number, y: Number) -> bool:
    """x <= y: exactly for exact numbers, up to rounding for floats."""
    if isinstance(x, float) or isinstance(y, float):
        return bool(x <= y + 1e-12 * max(1.0, abs(float(x)), abs(float(y))))
    return x <= y


def divide(x: Number, y: Number) -> Number:
    """x / y, exactly also for integers."""
    return Fraction(x) / y if isinstance(x, int) else x / y


def first(points: Iterable[Vector]) -> Vector | None:
    """The first of the points that contradict, if there is one."""
    return next(iter(points), None)


def constant(values: Iterable[Number]) -> bool:
    """Whether all values agree."""
    found = list(values)
    return at_most(max(found), min(found))


def minimum_at(
    W: Callable[[Vector], Number], k: int, t: int, points: Iterable[Vector] | None, unique: bool
) -> tuple[bool, str, Vector | None]:
    """Whether W is smallest at e_t (and nowhere else), how it compares, and the better point."""
    corner = one_hot(k, t)
    here = W(corner)
    others = (u for u in (predictions(k, t) if points is None else points) if u != corner)
    there, best = min((W(u), u) for u in others)
    smaller = at_most(here, there)
    good = smaller and not (unique and at_most(there, here))
    words = f"W(e_t) = {float(here):.6g}, elsewhere W >= {float(there):.6g}"
    return good, words, None if good else best

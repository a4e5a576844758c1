"""Exact arithmetic for the counterexamples: the two losses, f2, polynomials, powers of e."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, factorial

Q = Fraction
Exact = Callable[[Fraction], Fraction]


def separated_loss(h: Exact, w: Sequence[Q], a: Q, u: Sequence[Q]) -> Q:
    """Sum of w_t (h(u_t) - a sum over i != t of h(u_i)), term by term."""
    k = range(len(w))
    return sum((w[t] * (h(u[t]) - a * sum(h(u[i]) for i in k if i != t)) for t in k), Q(0))


def reduced_loss(l: Exact, w: Sequence[Q], u: Sequence[Q], xi: Q) -> Q:  # noqa: E741
    """Sum of w_t times the mean over i != t of l(u_t / (u_t + u_i)), xi for two zeros."""
    k = range(len(w))

    def pair(x: Q, y: Q) -> Q:
        return l(Q(x) / (x + y)) if x + y else xi

    return sum((w[t] * pair(u[t], u[i]) for t in k for i in k if i != t), Q(0)) / (len(w) - 1)


def f2(r: Q | int | str, gamma: Q | int | str) -> tuple[Exact, Exact]:
    """The density 1 + r (x - gamma)^2 and its integral H from 0."""
    r, gamma = Q(r), Q(gamma)
    return (
        lambda x: 1 + r * (x - gamma) ** 2,
        lambda x: x + r * ((x - gamma) ** 3 + gamma**3) / 3,
    )


def grid(n: int) -> list[Q]:
    return [Q(i, n) for i in range(n + 1)]


def nonnegative(
    f: Exact, degree: int, low: Q | int = 0, high: Q | int = 1, depth: int = 10
) -> bool:
    """Whether a polynomial f of at most this degree is proved >= 0 on [low, high].

    The Bernstein coefficients on an interval bound the polynomial; it is halved until they do.
    """
    low, high = Q(low), Q(high)
    if min(bernstein(f, degree, low, high)) >= 0:
        return True
    middle = (low + high) / 2
    if depth == 0 or min(map(f, (low, middle, high))) < 0:
        return False
    return nonnegative(f, degree, low, middle, depth - 1) and nonnegative(
        f, degree, middle, high, depth - 1
    )


def bernstein(f: Exact, degree: int, low: Q, high: Q) -> list[Q]:
    """The Bernstein coefficients of f on [low, high], by exact interpolation."""
    n = degree
    rows = [
        [*(comb(n, k) * s**k * (1 - s) ** (n - k) for k in range(n + 1)), f(low + s * (high - low))]
        for s in grid(n)
    ]
    for i in range(n + 1):
        pivot = next(j for j in range(i, n + 1) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(n + 1):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exp_below(x: Q, terms: int = 12) -> Q:
    """A lower bound of e^x for x >= 0: a partial sum of its series."""
    return sum((x**n / factorial(n) for n in range(terms)), Q(0))


def exp_above(x: Q, terms: int = 12) -> Q:
    """An upper bound of e^x for 0 <= x < terms: the rest of the series is below a geometric one."""
    rest = x**terms / factorial(terms) / (1 - x / (terms + 1))
    return exp_below(x, terms) + rest

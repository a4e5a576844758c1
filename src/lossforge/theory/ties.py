r"""Ties: the inequalities of the ratio tests in rational arithmetic.

A ratio that equals what a noise allows passes the test, but no rounded number shows it. Sums of
linear and quadratic base functions have densities :math:`P(x) = a_0 + a_1 x + a_2 x^2`, so that

.. math:: c_t P(x) - c_s P(y) \ge 0 \quad (x + y \le 1), \qquad
    w_t P(p) - w_s P(1 - p) \ge 0 \quad (0 \le p \le 1)

are decided by the values at finitely many rational points: where a gradient vanishes inside, along
an edge, or at a corner. Only numbers with few binary digits count: those are what they seem to be,
while 0.6 or 1/9 was rounded before it came here.
"""

from fractions import Fraction

from ..base import Linear, Quadratic
from .forms import Mixture

Polynomial = tuple[Fraction, Fraction, Fraction]
_LARGEST = 2**26  # denominator of a number that was not rounded


def exact(*numbers: float) -> list[Fraction] | None:
    """The numbers as fractions; None if one has many binary digits."""
    found = [Fraction(number) for number in numbers]
    return found if all(number.denominator <= _LARGEST for number in found) else None


def polynomial(mixture: Mixture) -> Polynomial | None:
    """The density as a polynomial of degree two, up to a factor; None if it is not one."""
    total = (Fraction(0), Fraction(0), Fraction(0))
    for scale, base in mixture.parts:
        # the factor of a single base function does not matter
        factor = scale if len(mixture.parts) > 1 else 1.0
        if type(base) is Linear:
            numbers = exact(factor, 0.0, base.scale, 0.0)
        elif type(base) is Quadratic:
            numbers = exact(factor, -base.alpha, -base.beta, base.gamma)
        else:
            return None
        if numbers is None:
            return None
        factor_, curve, start, centre = numbers
        terms = (start + curve * centre**2, -2 * curve * centre, curve)
        total = tuple(a + factor_ * b for a, b in zip(total, terms, strict=True))  # type: ignore[assignment]
    return total


def transfers_hold(density: Polynomial, own: Fraction, rival: Fraction, *, two: bool) -> bool:
    """Whether own P(x) >= rival P(y) for x + y <= 1; with two classes, for x + y = 1."""
    one, zero = Fraction(1), Fraction(0)
    across = [*_turn(density, own, rival), zero, one]
    points = [(x, 1 - x) for x in across]
    if not two:
        centre = -density[1] / (2 * density[2]) if density[2] else zero
        inside = min(max(centre, zero), one)
        points += [(zero, zero), (zero, inside), (inside, zero)]
        points += [(inside, inside)] if 2 * inside <= 1 else []
    return all(own * _at(density, x) >= rival * _at(density, y) for x, y in points)


def _turn(density: Polynomial, own: Fraction, rival: Fraction) -> list[Fraction]:
    """Where own P(x) - rival P(1 - x) is stationary in [0, 1]."""
    _, slope, curve = density
    steep = 2 * curve * (own - rival)
    if not steep:
        return []
    x = -(own * slope + rival * (slope + 2 * curve)) / steep
    return [x] if 0 <= x <= 1 else []


def _at(density: Polynomial, x: Fraction) -> Fraction:
    return density[0] + density[1] * x + density[2] * x * x

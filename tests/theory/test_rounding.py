"""Rounding never lowers a ratio by more than the slack that the ratio tests grant."""

import math
import random
from fractions import Fraction

import mpmath
import pytest
import torch

from lossforge import base
from lossforge.base import Exponential, Quadratic
from lossforge.constructions import BinaryReduction
from lossforge.theory import allowed_ratio, certify
from lossforge.theory.ratios import ratios
from lossforge.theory.weights import read_noise


def nearly_vanishing(*gammas):
    """Quadratics whose density falls to between 1e-17 and 1e-2 of its value at the centre."""
    draw = random.Random(5)
    while True:
        gamma = draw.choice(gammas or [0.0, 0.25, 0.423, 0.5, 1.0, draw.random(), draw.random()])
        scale = draw.choice([1.0, draw.uniform(0.1, 5)])
        reach = max(gamma, 1 - gamma) ** 2
        try:
            yield Quadratic(scale / reach * (1 - 10 ** draw.uniform(-17, -2)), -scale, gamma)
        except ValueError:  # it vanished
            continue


def exact(function, m):
    """The quotients of which the seven ratios are suprema, at m and the centre, as fractions."""
    alpha, beta, gamma = (
        Fraction(value) for value in (function.alpha, function.beta, function.gamma)
    )

    def phi(x):
        return -beta - alpha * (x - gamma) ** 2

    def mean(x, y):
        return -beta - alpha * ((y - gamma) ** 3 - (x - gamma) ** 3) / (3 * (y - x))

    left = [phi(Fraction(0)), *(mean(0, x) for x in (m / 3, m / 2, min(m, 3 * gamma / 2), m) if x)]
    right = mean(1 - m, Fraction(1)) if m else phi(Fraction(1))
    points = (m, 1 - m, gamma, Fraction(0), Fraction(1))
    values = [phi(x) for x in points]
    return {
        "xi_box": (max(values), min(values)),
        "xi_tri": max(
            ((phi(y), phi(x)) for x in points for y in points if x + y <= 1),
            key=lambda pair: pair[0] / pair[1] if pair[1] > 0 else math.inf,
        ),
        "kappa_A": (max(left), right),
        "kappa_B": (right, min(left)),
        "rho_M": (phi(1 - m), phi(m)),
        "R_G": (left[-1], right),
        "R_mirror": (right, left[-1]),
    }


def test_ratios_of_quadratics_are_never_below_exact_quotients():
    """By more than half the slack that the ratio tests grant, however nearly a density vanishes."""
    draw = random.Random(6)
    for function, _ in zip(nearly_vanishing(), range(150), strict=False):
        found = ratios(function)
        for m in (Fraction(0), Fraction(1), Fraction(draw.random()), Fraction(2) ** -30):
            for name, (above, below) in exact(function, m).items():
                context = (str(function), name, float(m))
                value = getattr(found, name)
                if below <= 0:  # the density vanishes as a real function
                    assert math.isinf(value), context
                elif math.isfinite(value):
                    assert Fraction(value) >= above / below * (1 - Fraction(1, 10**12) / 2), context


def test_pointwise_ratios_of_vanishing_quadratics_are_the_nearest_floats():
    for function, _ in zip(nearly_vanishing(), range(150), strict=False):
        found = ratios(function)
        pairs = [exact(function, m) for m in (Fraction(0), Fraction(1))]
        for name in ("xi_box", "xi_tri", "rho_M"):
            values = [a / b if b > 0 else math.inf for a, b in (pair[name] for pair in pairs)]
            assert getattr(found, name) == float(max(values)), (str(function), name)


def test_ratio_of_one_is_that_of_a_constant_density_alone():
    assert ratios(Quadratic(0.0, -1.0, 0.3)).xi_box == 1
    assert 1 < ratios(Quadratic(-1e-17, -1.0, 0.3)).xi_box < 1 + 1e-15
    # even about 1/2: a pair's two densities are the same
    for r in (-2.0, 3.0, 1e9):
        assert ratios(Quadratic(-r, -1.0, 0.5)).rho_M == 1


def test_quadratic_that_fails_by_rounding_alone_is_not_proved():
    function = Quadratic(3.0036434159154783, -1.0, 0.423)
    weights = [0.9999999974432008, 2.5567991801640243e-09]
    own, rival = map(Fraction, weights)
    above, below = exact(function, Fraction(1))["rho_M"]
    assert own * below < rival * above
    assert certify(BinaryReduction(function), weights, refute=False).status != "PROVED"


class Halved(Quadratic):
    """A quadratic by another name."""


def test_monotone_quadratic_of_another_name_is_not_trusted_where_it_cancels():
    for function, _ in zip(nearly_vanishing(0.0, 1.0), range(40), strict=False):
        found, sure = ratios(Halved(**function.parameters()), 100), ratios(function)
        for name in exact(function, Fraction(1)):
            assert getattr(found, name) >= getattr(sure, name) * (1 - 1e-12), str(function)


@pytest.mark.parametrize(
    ("beta", "gamma"),
    [(90.27750695458036, 0.1341491109048326), (195.37, 0.583), (-358.7, 0.2633), (-146.8, 0.0)],
)
def test_raised_ratios_cover_the_rounding_of_steep_exponentials(beta, gamma):
    """Their running means are off by more than 1e-12."""
    found = ratios(Exponential(-1.0, beta, gamma))
    with mpmath.workdps(250):
        b, g = mpmath.mpf(beta), mpmath.mpf(gamma)
        root = mpmath.sqrt(b)

        def area(low, high):
            ends = (mpmath.erfi(root * (end - g)) for end in (high, low))
            return mpmath.re((next(ends) - next(ends)) / root)

        def quotient(m):
            return area(0, m) / area(1 - m, 1)

        for m in (mpmath.mpf(1), mpmath.mpf(0.7), min(mpmath.mpf(1), 1.5 * g) or mpmath.mpf(0.1)):
            assert quotient(m) <= found.kappa_A * (1 + mpmath.mpf(1e-12) / 2)
            assert 1 / quotient(m) <= found.kappa_B * (1 + mpmath.mpf(1e-12) / 2)


@pytest.mark.parametrize(("a", "q"), [(0.3, 30.7), (0.9, 30.1), (2.5, 50.3)])
def test_raised_ratios_cover_the_rounding_of_large_powers(a, q):
    for function in (base.ShiftedPower(a, q), base.MirroredPower(max(a, 1.1), q)):
        with mpmath.workdps(40):
            exponent = mpmath.mpf(q) - 1
            first = mpmath.mpf(function.a)
            last = first + 1 if isinstance(function, base.ShiftedPower) else first - 1
            ratio = (max(first, last) / min(first, last)) ** exponent
            assert ratio <= ratios(function).xi_box * (1 + mpmath.mpf(1e-12) / 2)


def test_density_that_overflows_at_both_ends_has_no_finite_ratio():
    with pytest.raises(ValueError, match="single precision"):
        base.ShiftedPower(1e8, 1e8)

    class Overflown(base.BaseFunction):  # as one of somebody else may be
        def density(self, p):
            return torch.full_like(p, torch.inf)

        def turning_points(self):
            return ()

        value = cumulative = density

    assert ratios(Overflown()).xi_box == math.inf


def test_allowed_ratio_is_never_above_the_exact_one_by_more_than_half_the_slack():
    """However small the coefficients that rounding leaves; those of rounding's size count as 0."""
    draw = random.Random(8)
    seen = 0
    for _ in range(400):
        a = draw.choice([1 / 9, 0.5, draw.uniform(0.05, 3)])
        near = a / (1 + a) + draw.choice([-1, 1]) * 10 ** draw.uniform(-14, -3)
        own, rival = (0.999 - near, near) if near < 0.49 else (near + 1e-3 * draw.random(), near)
        weights = torch.tensor([own, rival, 1 - own - rival]).double()
        if weights.min() < 0 or own <= rival or rival < weights[2]:
            continue
        allowed = float(allowed_ratio(read_noise(weights), a).ratio)
        total = sum(map(Fraction, weights.tolist()))
        c = [(1 + Fraction(a)) * Fraction(w) - Fraction(a) * total for w in weights.tolist()]
        if math.isfinite(allowed):
            exact_ratio = c[0] / c[1] if c[1] > 0 else c[1] / c[0]
            assert Fraction(allowed) <= exact_ratio * (1 + Fraction(1, 10**12) / 2)
            seen += 1
    assert seen > 50

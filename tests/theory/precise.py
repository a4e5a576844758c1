"""Slopes of weighted losses in fifty digits, from their definitions: more than rounding, or not.

W(u) = sum_i w_i L(u, i) is a sum of functions of one class's probability, of pairs, and of
normalised losses. Its derivatives by the logits are written out here for numbers of mpmath, with
the parameters of the losses and the given logits taken as exact.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mpmath import MPContext

from lossforge import BinaryReduction, TargetSeparation, base
from lossforge.base import BaseFunction
from lossforge.constructions import (
    ByRivals,
    Normalised,
    NormalisedNegative,
    PowerDistance,
    TargetLoss,
)
from lossforge.loss import Loss, WeightedSum

mp = MPContext()
mp.dps = 50
mpf = mp.mpf
Number = Any  # an mpf; mpmath has no types
Numbers = Sequence[Number]


def density(b: BaseFunction, x: Number) -> Number:
    """phi = -h' of a base function."""
    rules: dict[type, Callable[[], Number]] = {
        base.Exponential: lambda: -_(b.alpha) * mp.exp(_(b.beta) * (x - _(b.gamma)) ** 2),
        base.Quadratic: lambda: -_(b.beta) - _(b.alpha) * (x - _(b.gamma)) ** 2,
        base.Series: lambda: _series(b, x),
        base.Log: lambda: 1 / x,
        base.Linear: lambda: _(b.scale),
        base.Power: lambda: x ** (_(b.q) - 1),
        base.ShiftedPower: lambda: (_(b.a) + x) ** (_(b.q) - 1),
        base.MirroredPower: lambda: (_(b.a) - x) ** (_(b.q) - 1),
        base.ExponentialDecay: lambda: mp.exp(-x / _(b.a)) / _(b.a),
        base.Taylor: lambda: mp.fsum((1 - x) ** j for j in range(int(b.t))),
        base.HuberLog: lambda: min(_(b.tau), 1 / x),
        base.ShiftedLog: lambda: 1 / (_(b.a) + x),
        base.JensenShannon: lambda: (1 - _(b.pi0)) * mp.log1p(_(b.pi0) / ((1 - _(b.pi0)) * x)),
    }
    return rules[type(b)]()


def value(b: BaseFunction, x: Number) -> Number:
    """The integral h of the density from x to 1; in twenty digits where it has no pole at 0."""
    if isinstance(b, base.Log):
        return -mp.log(x)
    if isinstance(b, base.Power):
        return (1 - x ** _(b.q)) / _(b.q)
    if isinstance(b, base.JensenShannon):
        rest = 1 - _(b.pi0)
        m = 1 - rest * (1 - x)
        inner = rest * x * mp.log(x) if x else 0
        return inner - m * mp.log(m) - rest * (1 - x) * mp.log(rest)
    return _integral(b, x, mpf(1))


def cumulative(b: BaseFunction, x: Number) -> Number:
    """The integral H of a bounded base function from 0 to x."""
    if isinstance(b, base.Power):
        return x ** _(b.q) / _(b.q)
    if isinstance(b, base.JensenShannon):
        return value(b, mpf(0)) - value(b, x)
    return _integral(b, mpf(0), x)


def _integral(b: BaseFunction, start: Number, stop: Number) -> Number:
    knee = 1 / _(b.tau) if isinstance(b, base.HuberLog) else start
    inner = [knee] if start < knee < stop else []
    with mp.workdps(20):
        return mp.quad(lambda s: density(b, s), [start, *inner, stop], method="gauss-legendre")


def gradient(loss: Loss, w: Numbers, z: Numbers, k: int) -> tuple[Number, Number]:
    """dW/dz_k, and the sum of the magnitudes of what it is made of."""
    u, w, total = softmax(z), [_(x) for x in w], mp.fsum(map(_, w))
    parts = []
    for factor, member in _terms(loss, len(w)):
        if isinstance(member, BinaryReduction):
            scale = factor * mpf(1) / (len(w) - 1)
            for i in range(len(w)):
                if i != k:
                    p, q = _pair(z[k], z[i]), _pair(z[i], z[k])
                    parts.append(-scale * w[k] * density(member.base, p) * p * q)
                    parts.append(scale * w[i] * density(member.base, q) * p * q)
            continue
        # W as a function of u: its derivatives, and u_j' = u_j ([j = k] - u_k)
        for j, slopes in enumerate(_class_slopes(member, w, total, u)):
            inner = mp.fsum(u[i] for i in range(len(u)) if i != k) if j == k else -u[k]
            parts += [factor * slope * u[j] * inner for slope in slopes]
    return mp.fsum(parts), mp.fsum(abs(part) for part in parts)


def rise(loss: Loss, w: Numbers, z: Numbers, target: int, rival: int) -> tuple[Number, Number]:
    """What W gains per unit of probability moved from the rival to the target, and its size."""
    u = softmax(z)
    (own, size), (other, more) = (gradient(loss, w, z, k) for k in (target, rival))
    return own / u[target] - other / u[rival], size / u[target] + more / u[rival]


def softmax(z: Numbers) -> list[Number]:
    """Probabilities of logits."""
    powers = [mp.exp(_(x)) for x in z]
    total = mp.fsum(powers)
    return [x / total for x in powers]


def _(x: Any) -> Number:
    return mpf(x)


def _series(b: BaseFunction, x: Number) -> Number:
    assert isinstance(b, base.Series)
    t, before, last = 2 * x - 1, mpf(0), mpf(0)
    for c in reversed(b.coefficients[1:]):
        before, last = last, 2 * t * last - before + _(c)
    total = t * last - before + _(b.coefficients[0])
    return mp.exp(total) if b.logarithmic else total


def _terms(loss: Loss, classes: int) -> list[tuple[Number, Loss]]:
    if isinstance(loss, ByRivals):
        return _terms(loss.few if classes - 1 <= loss.most else loss.many, classes)
    if not isinstance(loss, WeightedSum):
        return [(mpf(1), loss)]
    return [
        (_(factor) * inner, one)
        for factor, member in loss.terms
        for inner, one in _terms(member, classes)
        if factor
    ]


def _pair(x: Number, y: Number) -> Number:
    return 1 / (1 + mp.exp(_(y) - _(x)))


def _distance(loss: PowerDistance, classes: int) -> Number:
    return _(loss.scale) / (classes if loss.average else 1)


def _coefficient(loss: TargetSeparation, classes: int) -> Number:
    return max(_(loss.tau or 0) / (classes - 1), _(loss.a or 0))


def _class_slopes(loss: Loss, w: Numbers, total: Number, u: Numbers) -> list[list[Number]]:
    """Of each class j the summands of dW/du_j."""
    if isinstance(loss, PowerDistance):
        a, r, scale = _(loss.a), _(loss.r), _distance(loss, len(w))
        return [
            [-scale * x * r * (a - p) ** (r - 1), scale * (total - x) * r * p ** (r - 1)]
            for x, p in zip(w, u, strict=True)
        ]
    if isinstance(loss, Normalised | NormalisedNegative):
        down = isinstance(loss, Normalised)
        scale = _(loss.scale) if down else mpf(-1)
        h = [value(loss.base, p) if down else cumulative(loss.base, p) for p in u]
        whole, mean = mp.fsum(h), mp.fsum(x * y for x, y in zip(w, h, strict=True))
        sign = -scale if down else scale
        slopes = [sign * density(loss.base, p) for p in u]
        return [
            [slope * x / whole, -slope * mean / whole**2]
            for slope, x in zip(slopes, w, strict=True)
        ]
    if isinstance(loss, TargetLoss):
        return [[-_(loss.scale) * x * density(loss.base, p)] for x, p in zip(w, u, strict=True)]
    assert isinstance(loss, TargetSeparation)
    a = _coefficient(loss, len(w))
    return [
        [
            -x * density(loss.base, p),
            a * (total - x) * density(loss.nontarget, p) if a else mpf(0),
        ]
        for x, p in zip(w, u, strict=True)
    ]

r"""Losses made for a noise: which coefficients, curvatures and tilts it admits.

Target separation admits a base function of ratio k at coefficient a where the noise allows that
ratio; binary reduction admits every base function whose densities at p and 1 - p differ by no more
than :math:`\Lambda = \min_y T_{yy} / \max_{s \ne y} T_{ys}`. A density even about 1/2 always
passes, so the recommended reduction is even, and the recommended separation uses as much of its
budget as the default shape asks for.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch

from ..base import BaseFunction, Exponential, Quadratic
from ..constructions import BinaryReduction, TargetSeparation
from ..constructions.pairs import steady_mu
from ..errors import check_integer, check_number
from ..loss import WeightedSum
from .certify import certify
from .device import on_cpu
from .frontier import Frontier, frontier, separated_rate
from .ratio_tests import allowed_ratio, coefficient_interval, threshold_interval
from .ratios import ratios
from .verdict import Verdict
from .weights import Rows, read_noise

Family = Literal["exponential", "quadratic"]
_SHARE = 0.98  # of an admitted curvature, so that the verdict has a margin
_STEEPEST = {"exponential": -8.0, "quadratic": -1.5}  # the most that is proposed
_HUGE = 1e9  # a curvature that no ratio but an unlimited one admits
_UNKNOWN_RATIO = 1.5  # of the separation where nothing is known about the noise


@dataclass(frozen=True)
class Design:
    """What a noise admits, and a loss within it.

    Args:
        num_classes: K.
        family: "exponential" (f1) or "quadratic" (f2).
        a_interval: Coefficients at which every decreasing base function is robust; None if there
            are none, or if the noise is not known.
        a: The coefficient chosen.
        ratio: The ratio of densities that the noise allows at it.
        curvature: Of the chosen base function: beta of f1, r = alpha / beta of f2, at gamma = 1/2.
        tilt: Largest log ratio of densities at 0 and 1 of the reduction, ln Lambda.
        loss: The recommended lam TS + mu BR.
        verdict: Its certificate; None where the noise is not known.
        frontiers: Its frontiers for symmetric noise and pair flips.
    """

    num_classes: int
    family: Family
    a_interval: tuple[float, float] | None
    a: float
    ratio: float
    curvature: float
    tilt: float
    loss: WeightedSum
    verdict: Verdict | None
    frontiers: tuple[Frontier, ...]

    @property
    def tau(self) -> float:
        """The separation strength a (K - 1)."""
        return self.a * (self.num_classes - 1)

    @property
    def tau_interval(self) -> tuple[float, float] | None:
        """`a_interval` times K - 1."""
        if self.a_interval is None:
            return None
        low, high = self.a_interval
        return low * (self.num_classes - 1), high * (self.num_classes - 1)

    def curvatures(self, gamma: float) -> tuple[float, float]:
        """The curvatures (beta of f1, r of f2) that the separation admits at a centre gamma."""
        return curvature_interval(self.family, self.ratio, gamma, self.num_classes)

    def admits(self, *, a: float, curvature: float, gamma: float, noise: object) -> bool:
        """Whether a separation of this family passes the ratio test under a noise."""
        base = make_base(self.family, 1.0, curvature, gamma)
        separated = TargetSeparation(base, a=a)
        return certify(separated, noise, claim="transfers").status == "PROVED"


@on_cpu
def design(
    num_classes: int,
    noise: object = None,
    family: Family = "exponential",
    *,
    scale: float = 8.0,
    lam: float = 0.9,
    mu: float | None = None,
) -> Design:
    """The admissible losses of a family for a noise, and a recommended one.

    Args:
        num_classes: K.
        noise: As for `certify`; None if it is not known: then the coefficient with the largest
            joint frontier, the one that comes closest to the limits of symmetric noise and of pair
            flips at once.
        family: "exponential" for f1, a BEF; "quadratic" for f2, a BQF.
        scale: Largest density of both parts.
        lam: Coefficient of target separation.
        mu: Coefficient of binary reduction. If None, that of BEF and BQF up to 150 classes, and
            beyond them one that grows like K - 1, to four digits: the bounded cosine that BEF and
            BQF have there is provably not monotone under noise that is not symmetric.

    Example:
        >>> from lossforge.noise import pair
        >>> found = design(10, pair(10, 0.4))
        >>> found.verdict.status, [round(tau, 2) for tau in found.tau_interval]
        ('PROVED', [6.0, 13.5])
    """
    check_integer("num_classes", num_classes, 2)
    _check_family(family)
    if mu is None:
        mu = float(f"{steady_mu(num_classes):.4g}")
    for name, number in (("scale", scale), ("lam", lam), ("mu", mu)):
        check_number(name, number, "positive", lambda v: v > 0)
    interval, tilt = None, 0.0
    if noise is None:
        a, ratio = _for_unknown(num_classes)
    else:
        rows = read_noise(noise, num_classes)
        low, high = threshold_interval(noise)
        if low <= high:
            interval = coefficient_interval(rows, math.inf)
        a, ratio = _for_rows(rows, interval)
        tilt = math.log(float((rows.own / rows.rivals[0]).min()))
    least, _ = curvature_interval(family, ratio, 0.5, num_classes)
    curvature = float(f"{max(_STEEPEST[family], _SHARE * least):.4g}")
    base = make_base(family, scale, curvature, 0.5)
    loss = WeightedSum([(lam, TargetSeparation(base, a=a)), (mu, BinaryReduction(base))])
    return Design(
        num_classes,
        family,
        interval,
        a,
        ratio,
        curvature,
        tilt,
        loss,
        None if noise is None else certify(loss, noise),
        tuple(frontier(loss, num_classes, way) for way in ("symmetric", "pair")),
    )


def _check_family(family: str) -> None:
    if family not in get_args(Family):
        raise ValueError(f"family must be {' or '.join(get_args(Family))}, got {family!r}")


def make_base(family: Family, scale: float, curvature: float, gamma: float) -> BaseFunction:
    """The base function of a family whose density at gamma is `scale`."""
    if family == "exponential":
        return Exponential(-scale, curvature, gamma)
    return Quadratic(-scale * curvature, -scale, gamma)


def curvature_interval(
    family: Family, ratio: float, gamma: float, num_classes: int = 3
) -> tuple[float, float]:
    """The curvatures at which a base function stays within a ratio.

    For f1 the logarithm of the ratio is proportional to |beta|; for f2 the ratio grows with |r| on
    either side of 0 and is inverted by bisection.

    Args:
        family: Whose curvature.
        ratio: The allowed ratio.
        gamma: The centre, in [0, 1].
        num_classes: With 2 classes only predictions x + y = 1 occur, which admits more.
    """
    _check_family(family)
    if not ratio >= 1:
        raise ValueError(f"ratio must be 1 or more, got {ratio}")
    if family == "exponential":
        reach = abs(1 - 2 * gamma) if num_classes == 2 else max(1 - 2 * gamma, gamma**2)
        bound = math.inf if math.isinf(ratio) or reach == 0 else math.log(ratio) / reach
        return -bound, bound
    lowest = -1 / max(gamma, 1 - gamma) ** 2
    if math.isinf(ratio):
        return lowest, math.inf
    highest = _bisect(ratio, gamma, num_classes, _HUGE)
    return (
        _bisect(ratio, gamma, num_classes, lowest),
        math.inf if highest == _HUGE else highest,
    )


def _bisect(ratio: float, gamma: float, num_classes: int, end: float) -> float:
    """The curvature between 0 and `end` at which f2 reaches a ratio; `end` if it does not."""

    def within(curvature: float) -> bool:
        found = ratios(Quadratic(-curvature, -1.0, gamma))
        return (found.rho_M if num_classes == 2 else found.xi_tri) <= ratio

    inner, outer = 0.0, end * (1 - 1e-9)
    if within(outer):
        return end
    for _ in range(80):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if within(middle) else (inner, middle)
    return inner


def _for_rows(rows: Rows, interval: tuple[float, float] | None) -> tuple[float, float]:
    """The coefficient whose vote lies in the middle, or the one that allows the largest ratio."""
    if interval is not None:
        low, high = (a / (1 + a) if math.isfinite(a) else 1.0 for a in interval)
        vote = (low + high) / 2
        return _shortest(vote / (1 - vote), interval), math.inf
    votes = torch.linspace(0, 0.95, 400, dtype=torch.float64).tolist()
    allowed = {v / (1 - v): float(allowed_ratio(rows, v / (1 - v)).ratio.min()) for v in votes}
    best = max(allowed, key=lambda a: allowed[a])
    a = float(f"{best:.4g}")
    return a, float(allowed_ratio(rows, a).ratio.min())


def _shortest(number: float, interval: tuple[float, float]) -> float:
    """The number with the fewest digits, four or more, that stay within the interval."""
    low, high = interval
    texts = (float(f"{number:.{digits}g}") for digits in range(4, 17))
    return next((short for short in texts if low < short < high), number)


def _for_unknown(num_classes: int) -> tuple[float, float]:
    """The coefficient that comes closest to both limits at once, at a modest ratio."""
    even = 1 / (num_classes - 1)

    def reach(a: float) -> float:
        """The smaller share of a limit that is reached."""
        return min(separated_rate(_UNKNOWN_RATIO, a, m) * (1 + m) for m in (even, 1.0))

    steps = torch.linspace(0, 1, 401, dtype=torch.float64).tolist()
    candidates = [even ** (1 - step) for step in steps]
    return float(f"{max(candidates, key=reach):.4g}"), _UNKNOWN_RATIO

"""The paper's balanced losses: target separation plus what keeps it trainable."""

from typing import Unpack

from ..base import BaseFunction, Exponential, Quadratic
from ..constructions import BinaryReduction, BoundedCosine, ByRivals, TargetSeparation
from ..constructions.pairs import BALANCE, MANY_RIVALS
from ..errors import check_factor
from ..loss import Loss, Policy, WeightedSum
from .entry import Named, register

SEPARATION = 0.2
r"""The coefficient a of TS, unless 1/(K - 1) is more or `tau` is given.

Over all labels that a sample may get, with probabilities w, TS is :math:`\sum_i ((1 + a) w_i - a)
h(u_i)`: it pulls towards the classes with :math:`w_i > a / (1 + a)` and away from all others. With
a = 1/(K - 1) these are the classes above 1/K, too many of 150 under noise between similar classes;
with 0.2 those above 1/6, whatever K. So the true class must be right for one label in six.
"""

COSINE = 0.3
"""The coefficient of the bounded cosine that stands in for BR beyond `MANY_RIVALS` rivals.

In units of the density of TS at gamma, and times the square root of the number of rivals over
`MANY_RIVALS`. Its gradient falls like a power of the length of the logits and not
exponentially with the margin, so the dip between the two parts does not deepen with K.
"""

_CAVEAT = (
    "Symmetric for tau = 1 and br_gamma = 0.5: by default up to six classes. With more than 150 "
    "classes and no mu given, a bounded cosine takes the place of BR."
)


@register(
    "BEF",
    "lam TS + mu BR of h' = alpha exp(beta (x - gamma)^2)",
    kind="symmetric",
    bounded=True,
    paper="paper",
    caveat=_CAVEAT,
)
class BEF(Named, WeightedSum):
    """Balanced Exponential Function, Section 4.4 of the paper.

    Target separation makes it robust, binary reduction keeps it trainable. With more than 150
    classes that are not masked it does so no longer; unless `mu` is given, `COSINE` times
    -alpha times a `BoundedCosine` takes its place there. How the defaults were found, and where
    they lose, is in docs/defaults.md and docs/results.md.

    Args:
        alpha: Scale of all parts, negative.
        beta: Curvature of the exponent in TS.
        gamma: Centre of h' in TS, in [0, 1].
        tau: Separation strength, 0 or more; 1 makes TS symmetric. By default 1 or, if that is more,
            `SEPARATION` times K - 1: see there.
        lam: Coefficient of TS, 0 or more.
        mu: Coefficient of BR, 0 or more. By default 0.1, with the bounded cosine in place of BR
            beyond 150 classes.
        br_beta: Curvature in BR; `beta` if None.
        br_gamma: Centre in BR; 0.5 makes BR symmetric.
    """

    def __init__(
        self,
        *,
        alpha: float = -8.0,
        beta: float = -1.0,
        gamma: float = 0.5,
        tau: float | None = None,
        lam: float = 0.9,
        mu: float | None = None,
        br_beta: float | None = None,
        br_gamma: float = 0.5,
        **policy: Unpack[Policy],
    ) -> None:
        br_beta = self.settings["br_beta"] = beta if br_beta is None else br_beta
        bases = Exponential(alpha, beta, gamma), Exponential(alpha, br_beta, br_gamma)
        super().__init__(_balance(*bases, -alpha, tau, lam, mu), **policy)


@register(
    "BQF",
    "lam TS + mu BR of h' = alpha (x - gamma)^2 + beta",
    kind="symmetric",
    bounded=True,
    paper="paper",
    caveat=_CAVEAT,
)
class BQF(Named, WeightedSum):
    """Balanced Quadratic Function, Section 4.4 of the paper.

    With more than 150 classes as `BEF`, the bounded cosine times -beta instead of -alpha.

    Args:
        alpha: Curvature of h' in both parts.
        beta: Derivative at gamma, negative.
        gamma: Centre of h' in TS, in [0, 1].
        tau: Separation strength, as of `BEF`.
        lam: Coefficient of TS, 0 or more.
        mu: Coefficient of BR, as of `BEF`.
        br_beta: Derivative at `br_gamma` in BR; `beta` if None.
        br_gamma: Centre in BR; 0.5 makes BR symmetric.
    """

    def __init__(
        self,
        *,
        alpha: float = 7.0,
        beta: float = -8.0,
        gamma: float = 0.5,
        tau: float | None = None,
        lam: float = 0.9,
        mu: float | None = None,
        br_beta: float | None = None,
        br_gamma: float = 0.5,
        **policy: Unpack[Policy],
    ) -> None:
        br_beta = self.settings["br_beta"] = beta if br_beta is None else br_beta
        bases = Quadratic(alpha, beta, gamma), Quadratic(alpha, br_beta, br_gamma)
        super().__init__(_balance(*bases, -beta, tau, lam, mu), **policy)


def default_tau(num_classes: int) -> float:
    """Return the separation strength of BEF and BQF where none is given."""
    return max(1.0, SEPARATION * (num_classes - 1))


def _balance(
    base: BaseFunction,
    pair_base: BaseFunction,
    scale: float,
    tau: float | None,
    lam: float,
    mu: float | None,
) -> list[tuple[float, Loss]]:
    """Return the terms of lam TS + mu BR; tau and mu, if None, follow the number of classes."""
    for name, coefficient in (("lam", lam), ("mu", BALANCE if mu is None else mu)):
        check_factor(name, coefficient, "0 or more", lambda v: v >= 0)
    strength, least = (1.0, SEPARATION) if tau is None else (tau, None)
    separated = lam, TargetSeparation(base, tau=strength, a=least)
    paired = BinaryReduction(pair_base)
    if mu is not None:
        return [separated, (mu, paired)]
    cosine = COSINE * scale * BoundedCosine(rivals=MANY_RIVALS)
    return [separated, (1.0, ByRivals(BALANCE * paired, cosine, most=MANY_RIVALS))]

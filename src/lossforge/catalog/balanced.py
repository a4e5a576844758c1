"""The paper's balanced losses: target separation plus binary reduction."""

from typing import Unpack

from ..base import Exponential, Quadratic
from ..constructions import BinaryReduction, TargetSeparation
from ..errors import check_number
from ..loss import Loss, Policy, WeightedSum
from .named import Named


class BEF(Named, WeightedSum):
    r"""Balanced Exponential Function: :math:`\lambda` TS + :math:`\mu` BR of f1.

    .. math:: h'(x) = \alpha \exp(\beta (x - \gamma)^2)

    Target separation makes it robust, binary reduction keeps it trainable. The defaults are
    starting values; see the README for what they were tried on.

    Args:
        alpha: Scale of both parts, negative.
        beta: Curvature of f1 in TS.
        gamma: Centre of f1 in TS, in [0, 1].
        tau: Separation strength, 0 or more; 1 makes TS symmetric.
        lam: Coefficient of TS, 0 or more.
        mu: Coefficient of BR, 0 or more.
        br_beta: Curvature in BR; `beta` if None.
        br_gamma: Centre in BR; 0.5 makes BR symmetric.

    References:
        Section 4.4, "Instantiation of Robust Functions", of the paper the project implements.
    """

    def __init__(
        self,
        *,
        alpha: float = -8.0,
        beta: float = -8.0,
        gamma: float = 0.5,
        tau: float = 1.0,
        lam: float = 0.9,
        mu: float = 0.1,
        br_beta: float | None = None,
        br_gamma: float = 0.5,
        **policy: Unpack[Policy],
    ) -> None:
        br_beta = beta if br_beta is None else br_beta
        separated = TargetSeparation(Exponential(alpha, beta, gamma), tau=tau)
        paired = BinaryReduction(Exponential(alpha, br_beta, br_gamma))
        super().__init__(_balance(lam, separated, mu, paired), **policy)
        self.settings = {"alpha": alpha, "beta": beta, "gamma": gamma, "tau": tau}
        self.settings |= {"lam": lam, "mu": mu, "br_beta": br_beta, "br_gamma": br_gamma}


class BQF(Named, WeightedSum):
    r"""Balanced Quadratic Function: :math:`\lambda` TS + :math:`\mu` BR of f2.

    .. math:: h'(x) = \alpha (x - \gamma)^2 + \beta

    Args:
        alpha: Curvature of f2 in both parts.
        beta: Derivative at gamma, negative.
        gamma: Centre of f2 in TS, in [0, 1].
        tau: Separation strength, 0 or more; 1 makes TS symmetric.
        lam: Coefficient of TS, 0 or more.
        mu: Coefficient of BR, 0 or more.
        br_beta: Derivative at `br_gamma` in BR; `beta` if None.
        br_gamma: Centre in BR; 0.5 makes BR symmetric.

    References:
        Section 4.4, "Instantiation of Robust Functions", of the paper the project implements.
    """

    def __init__(
        self,
        *,
        alpha: float = 12.0,
        beta: float = -8.0,
        gamma: float = 0.5,
        tau: float = 1.0,
        lam: float = 0.9,
        mu: float = 0.1,
        br_beta: float | None = None,
        br_gamma: float = 0.5,
        **policy: Unpack[Policy],
    ) -> None:
        br_beta = beta if br_beta is None else br_beta
        separated = TargetSeparation(Quadratic(alpha, beta, gamma), tau=tau)
        paired = BinaryReduction(Quadratic(alpha, br_beta, br_gamma))
        super().__init__(_balance(lam, separated, mu, paired), **policy)
        self.settings = {"alpha": alpha, "beta": beta, "gamma": gamma, "tau": tau}
        self.settings |= {"lam": lam, "mu": mu, "br_beta": br_beta, "br_gamma": br_gamma}


def _balance(lam: float, separated: Loss, mu: float, paired: Loss) -> list[tuple[float, Loss]]:
    check_number("lam", lam, "0 or more", lambda v: v >= 0)
    check_number("mu", mu, "0 or more", lambda v: v >= 0)
    return [(lam, separated), (mu, paired)]

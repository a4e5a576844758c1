r"""How much of each class's term is left in the weighted loss, and what that allows.

Under label weights w that sum to S, the weighted loss of target separation is
:math:`W(u) = \mathrm{const} - \sum_j c_j H(u_j)` with :math:`c_j = (1 + a) w_j - a S`. The ratio of
the largest to the smallest density that a base function may have is then a matter of the c alone.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .weights import Rows, read_noise

_ROUNDING = 8 * torch.finfo(torch.float64).eps


def coefficients(weights: Tensor, totals: Tensor, a: float) -> Tensor:
    """Coefficients of classes with these weights; what is 0 up to rounding is 0."""
    c = (1 + a) * weights - a * totals
    return torch.where(c.abs() <= _ROUNDING * (1 + a), 0.0, c)


@dataclass(frozen=True)
class Allowed:
    """What target separation tolerates in each row.

    Args:
        ratio: (R,) largest ratio of densities; infinite where any base function will do.
        rival: (R,) the class that binds: the heaviest of the others.
        case_b: (R,) whether the target's own coefficient is negative.
    """

    ratio: Tensor
    rival: Tensor
    case_b: Tensor


def allowed_ratio(rows: Rows, a: float) -> Allowed:
    r"""The ratio of densities that target separation with coefficient `a` tolerates.

    Infinite where :math:`\max_s c_s \le 0 \le c_t`; :math:`c_t / \max_s c_s` where a rival's
    coefficient is positive (case A); :math:`\min_s |c_s| / |c_t|` where the target's is negative
    (case B). In every case only the heaviest rival matters.
    """
    own = coefficients(rows.own, rows.totals, a)
    best = coefficients(rows.rivals[0], rows.totals, a)
    free = (best <= 0) & (own >= 0)
    case_b = own < 0
    divisor = torch.where(free, 1.0, torch.where(case_b, own, best))
    ratio = torch.where(case_b, best, own) / divisor
    return Allowed(torch.where(free, torch.inf, ratio), rows.rivals[1], case_b)


def threshold_interval(noise: object) -> tuple[float, float]:
    r"""The votes :math:`\theta = a / (1 + a)` at which every decreasing base function is robust.

    From the largest weight of a wrong class to the smallest of a true one, over all rows; empty
    (the first above the second) where no coefficient serves all rows.

    Example:
        >>> low, high = threshold_interval(torch.tensor([[0.6, 0.4], [0.3, 0.7]]))
        >>> round(low, 6), round(high, 6)
        (0.4, 0.6)
    """
    rows = read_noise(noise)
    return float(rows.rivals[0].max()), float(rows.own.min())


def coefficient_interval(rows: Rows, ratio: float) -> tuple[float, float]:
    r"""The coefficients a at which a base function of this ratio is tolerated in all rows.

    In a row, :math:`c_t \ge k c_s` asks for :math:`a \ge (k w_s - w_t) / (k (1-w_s) - (1-w_t))`,
    and :math:`|c_s| \ge k |c_t|` for :math:`a \le (k w_t - w_s) / (k (1-w_t) - (1-w_s))` where that
    denominator is positive, any a where it is not. Empty where the first end is above the second.

    Args:
        rows: The noise.
        ratio: The ratio k of the base function, 1 or more; infinite for any base function.
    """
    own, rival = rows.own, rows.rivals[0]
    rest_own, rest_rival = rows.totals - own, rows.totals - rival
    if math.isinf(ratio):
        low, high = rival / rest_rival, torch.where(rest_own > 0, own / rest_own, torch.inf)
    else:
        low = (ratio * rival - own) / (ratio * rest_rival - rest_own)
        below = ratio * rest_own - rest_rival
        high = torch.where(below > 0, (ratio * own - rival) / below, torch.inf)
    return max(0.0, float(low.max())), float(high.min())

r"""The largest noise rate that is tolerated in a direction.

A direction is a distribution N of the wrong labels of each class; at rate :math:`\eta` the row of
class y is :math:`(1 - \eta) e_y + \eta N_y`. Only the peak m, the largest entry of N, matters to
the ratio tests, which invert in closed form. With k the ratio of the base function and R that of
the binary reduction,

.. math::
    \eta_{TS} = \frac{1 + k a}{(1 + a)(1 + k m)} \; (a \le m), \qquad
    \frac{a + k}{(1 + a)(k + m)} \; (a \ge m), \qquad
    \eta_{BR} = \frac{1}{1 + R m},

never above :math:`1 / (1 + m)`, where the wrong label becomes as frequent as the true one.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..errors import check_integer
from ..loss import Loss
from .certify import certify, check_claim, check_policy
from .form import Form, take_apart
from .parts import mixture_ratios
from .verdict import Claim

_CELLS = 4000
_FINE = 1e-8  # relative width at which bisection stops
_ABOVE = 1e-7  # how far above a closed form it is tried whether more can be proved


@dataclass(frozen=True)
class Frontier:
    """The largest rate at which a claim is proved.

    Args:
        rate: The rate; below it the claim is proved, above it it is not.
        limit: The rate at which a wrong label becomes as frequent as the true one.
        claim: The claim.
        direction: "symmetric", "pair" or "given".
        peak: The largest entry of the direction.
        closed_form: Whether the rate is a closed form, or found by bisection.
    """

    rate: float
    limit: float
    claim: Claim
    direction: str
    peak: float
    closed_form: bool

    def __str__(self) -> str:
        how = "closed form" if self.closed_form else "by bisection"
        return f"{self.direction}: {self.rate:.4f} of at most {self.limit:.4f} ({how})"


def frontier(
    loss: Loss,
    num_classes: int,
    direction: Literal["symmetric", "pair"] | Tensor = "symmetric",
    *,
    claim: Claim = "monotone",
    cells: int = _CELLS,
) -> Frontier:
    """The largest noise rate in a direction at which a claim is proved.

    Args:
        loss: A loss.
        num_classes: K.
        direction: "symmetric", "pair", or a (K, K) matrix of the distributions of wrong labels,
            with a zero diagonal.
        claim: See `certify`.
        cells: Of enclosure tables.

    Example:
        >>> from lossforge import MAE
        >>> round(frontier(MAE(), 10, "symmetric").rate, 6)
        0.9
    """
    check_integer("num_classes", num_classes, 2)
    check_claim(claim)
    check_policy(loss)
    name, ray = _direction(direction, num_classes)
    peak = float(ray.max())
    limit = 1 / (1 + peak)
    start = closed_form(take_apart(loss, num_classes), peak, claim, cells)

    def proved(rate: float) -> bool:
        weights = (1 - rate) * torch.eye(num_classes, dtype=torch.float64) + rate * ray
        # the rows of symmetric noise and of pair flips are the same up to the classes' names
        noise = weights if name == "given" else weights[0]
        return certify(loss, noise, claim=claim, cells=cells, refute=False).status == "PROVED"

    def answer(rate: float, closed: bool) -> Frontier:
        return Frontier(rate, limit, claim, name, peak, closed)

    if start is not None and (start >= limit * (1 - _FINE) or not proved(start * (1 + _ABOVE))):
        return answer(min(start, limit), True)
    low, high = start or 0.0, limit
    if not low and not proved(limit * _FINE):
        return answer(0.0, False)
    if proved(limit * (1 - _FINE)):
        return answer(limit, False)
    while high - low > _FINE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if proved(middle) else (low, middle)
    return answer(low, False)


def closed_form(form: Form, peak: float, claim: Claim, cells: int) -> float | None:
    """The rate up to which the ratio tests pass; None where they do not apply.

    Args:
        form: The loss taken apart.
        peak: The largest entry of the direction.
        claim: The claim.
        cells: Of enclosure tables.
    """
    if not form.understood or (form.separation is not None and form.separation.a is None):
        return None
    two, single = form.num_classes == 2, peak == 1.0
    rates = []
    if form.separation is not None and form.separation.a is not None:
        a = form.separation.a
        found = mixture_ratios(form.separation.own, cells, {})
        ratio = found.rho_M if two else found.xi_tri
        if claim == "global":
            below = found.R_G if two or single else found.kappa_A
            ratio = below if a <= peak else found.R_mirror if two else found.kappa_B
        if not found.certified and not math.isclose(a, peak):
            return None
        rates.append(separated_rate(ratio, a, peak))
    if form.reduction is not None:
        found = mixture_ratios(form.reduction, cells, {})
        if not found.certified:
            return None
        rates.append(1 / (1 + (found.R_G if claim == "global" else found.rho_M) * peak))
    return min(rates)


def separated_rate(ratio: float, a: float, peak: float) -> float:
    """The rate at which target separation with coefficient a tolerates just this ratio."""
    if math.isinf(ratio):
        return a / ((1 + a) * peak) if a <= peak else 1 / (1 + a)
    if a <= peak:
        return (1 + ratio * a) / ((1 + a) * (1 + ratio * peak))
    return (a + ratio) / ((1 + a) * (ratio + peak))


def _direction(direction: object, num_classes: int) -> tuple[str, Tensor]:
    if isinstance(direction, str):
        eye = torch.eye(num_classes, dtype=torch.float64)
        if direction == "symmetric":
            return direction, (1 - eye) / (num_classes - 1)
        if direction == "pair":
            return direction, eye.roll(1, 1)
        raise ValueError(f"direction must be symmetric, pair or a matrix, got {direction!r}")
    ray = torch.as_tensor(direction, dtype=torch.float64)
    if ray.shape != (num_classes, num_classes):
        raise ValueError(
            f"direction must be {num_classes} x {num_classes}, got shape {tuple(ray.shape)}"
        )
    wrong = ~((ray >= 0).all(1) & ((ray.sum(1) - 1).abs() <= 1e-6) & (ray.diagonal() == 0))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"row {row} of the direction must be a distribution over the other classes: 0 or more, "
            f"0 at class {row}, summing to 1; got sum {float(ray[row].sum()):.9g}"
        )
    return "given", ray

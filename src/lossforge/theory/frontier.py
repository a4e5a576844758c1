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

from ..errors import check_integer, check_rows
from ..loss import Loss
from .certify import check_claim, check_loss, decide
from .device import on_cpu
from .enclosure import CELLS
from .forms import Form, take_apart
from .ratio_tests import mixture_ratios
from .verdict import Claim
from .weights import read_noise

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
        return f"{self.direction}: {rate_text(self.rate)} of at most {self.limit:.4f} ({how})"


def rate_text(rate: float) -> str:
    """Write a rate to four digits, rounded down: more is not proved.

    >>> rate_text(0.40319)
    '0.4031'
    """
    return f"{math.floor(rate * 1e4 + 1e-3) / 1e4:.4f}"


def wrong_labels(noise: Tensor) -> Tensor:
    """Return the distribution of each class's wrong labels: a direction, as `frontier` takes it.

    A class without wrong labels takes the distribution of the first class that has some, with the
    two classes exchanged: it then binds exactly where that class does.

    Args:
        noise: A transition matrix (K, K), or the shares of the labels of one instance (K,): of the
            class with the largest share, or of class 0 if its own share is 0.
    """
    weights = noise.clone()
    if weights.ndim == 1:
        check_rows("the noise", weights[None])
        true = 0 if weights[0] == 0 else int(weights.argmax())
        weights[[0, true]] = weights[[true, 0]]
        weights[0] = 0
        weights = weights[None]
    else:
        weights.fill_diagonal_(0)
    noisy = weights.sum(1) > 0
    if not bool(noisy.any()):
        raise ValueError("the noise has no wrong labels, so it has no direction")
    first = int(noisy.nonzero()[0])
    for clean in (~noisy).nonzero()[:, 0].tolist():
        order = torch.arange(len(weights))
        order[[first, clean]] = order[[clean, first]]
        weights[clean] = weights[first, order]
    return weights / weights.sum(1, keepdim=True)


@on_cpu
def frontier(
    loss: Loss,
    num_classes: int,
    direction: Literal["symmetric", "pair"] | Tensor = "symmetric",
    *,
    claim: Claim = "monotone",
    cells: int = CELLS,
    tolerance: float = _FINE,
) -> Frontier:
    """The largest noise rate in a direction at which a claim is proved.

    Args:
        loss: A loss.
        num_classes: K.
        direction: "symmetric", "pair", or a (K, K) matrix of the distributions of wrong labels,
            with a zero diagonal; its first row alone, (K,), if the others are the same up to the
            names of the classes.
        claim: See `certify`.
        cells: Of enclosure tables.
        tolerance: Relative, of a rate that is found by bisection.

    Example:
        >>> from lossforge import MAE
        >>> round(frontier(MAE(), 10, "symmetric").rate, 6)
        0.9
    """
    check_integer("num_classes", num_classes, 2)
    check_claim(claim)
    check_loss(loss, num_classes)
    form = take_apart(loss, num_classes)
    name, ray = _direction(direction, num_classes)
    true = torch.eye(num_classes, dtype=torch.float64)[: len(ray)]
    peak = float(ray.max())
    limit = 1 / (1 + peak)

    def proved(rate: float) -> bool:
        rows = read_noise((1 - rate) * true + rate * ray)
        return decide(loss, form, rows, claim, cells, {}, False).status == "PROVED"

    def answer(rate: float, closed: bool) -> Frontier:
        return Frontier(rate, limit, claim, name, peak, closed)

    start = _ratio_rate(form, peak, claim, cells)
    if start and proved(start * (1 - _ABOVE)):
        if start >= limit * (1 - _FINE) or not proved(start * (1 + _ABOVE)):
            return answer(min(start, limit), True)
    elif not proved(limit * _FINE):
        return answer(0.0, False)
    else:
        start = 0.0
    if proved(limit * (1 - _FINE)):
        return answer(limit, False)
    low, high = start, limit
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (middle, high) if proved(middle) else (low, middle)
    return answer(low, False)


def _ratio_rate(form: Form, peak: float, claim: Claim, cells: int) -> float:
    """The rate up to which the ratio tests pass; 0 where they do not apply."""
    if not form.understood or (form.separation is not None and form.separation.a is None):
        return 0.0
    two, single = form.num_classes == 2, peak == 1.0
    rates = []
    if form.separation is not None and form.separation.a is not None:
        a = form.separation.a
        found = mixture_ratios(form.separation.own, cells, {})
        ratio = found.rho_M if two else found.xi_tri
        if claim == "global":
            below = found.R_G if two or single else found.kappa_A
            ratio = below if a <= peak else found.R_mirror if two else found.kappa_B
        rates.append(separated_rate(ratio, a, peak))
    if form.reduction is not None:
        found = mixture_ratios(form.reduction, cells, {})
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
        # one row stands for all: the others are the same up to the classes' names
        ray = torch.zeros(1, num_classes, dtype=torch.float64)
        if direction == "symmetric":
            ray[0, 1:] = 1 / (num_classes - 1)
        elif direction == "pair":
            ray[0, 1] = 1.0
        else:
            raise ValueError(f"direction must be symmetric, pair or a matrix, got {direction!r}")
        return direction, ray
    ray = torch.as_tensor(direction, dtype=torch.float64, device="cpu").detach()
    ray = ray[None] if ray.ndim == 1 else ray
    if ray.shape not in ((num_classes, num_classes), (1, num_classes)):
        raise ValueError(
            f"direction must be {num_classes} x {num_classes} or one row of it, "
            f"got shape {tuple(ray.shape)}"
        )
    wrong = ~((ray >= 0).all(1) & ((ray.sum(1) - 1).abs() <= 1e-6) & (ray.diagonal() == 0))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"row {row} of the direction must be a distribution over the other classes: 0 or more, "
            f"0 at class {row}, summing to 1; got sum {float(ray[row].sum()):.9g}"
        )
    return "given", ray

"""Whether a loss is symmetric: its sum over all labels is the same for every prediction."""

from dataclasses import dataclass

import torch

from ..errors import check_integer
from ..loss import Loss, Scores
from .device import on_cpu
from .forms import Form, take_apart
from .ratio_tests import mixture_ratios

_SCALES = (0.3, 1.0, 3.0, 8.0)
_DRAWS = 32
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Symmetry:
    """Whether a loss is symmetric, and how that is known.

    Args:
        symmetric: The answer.
        derived: Whether it follows from the construction; measured otherwise.
        deviation: How much the sum over labels varied over random predictions, relatively.
        reason: In words.
    """

    symmetric: bool
    derived: bool
    deviation: float
    reason: str

    def __bool__(self) -> bool:
        return self.symmetric


@on_cpu
def is_symmetric(loss: Loss, num_classes: int) -> Symmetry:
    """Measure the sum over all labels at random predictions, and derive it where possible.

    Example:
        >>> from lossforge import BEF, CE
        >>> is_symmetric(BEF(tau=1), 10).reason
        'every part is symmetric by construction'
        >>> bool(is_symmetric(CE(), 10))
        False
    """
    check_integer("num_classes", num_classes, 2)
    deviation = _deviation(loss, num_classes)
    if _derived(take_apart(loss, num_classes)):
        return Symmetry(True, True, deviation, "every part is symmetric by construction")
    same = deviation <= _TOLERANCE
    words = "is the same" if same else "differs"
    reason = f"the sum over all labels {words} at {_DRAWS * len(_SCALES)} random predictions"
    return Symmetry(same, False, deviation, reason)


def _derived(form: Form) -> bool:
    if form.unknown:
        return False
    if form.separation is not None:
        a = form.separation.a
        # a flat density makes the other classes' terms a multiple of the target's
        flat = a is not None and mixture_ratios(form.separation.own, 8, {}).xi_box == 1.0
        even = a is not None and abs(a * (form.num_classes - 1) - 1) <= 1e-12
        if not (flat or even):
            return False
    if form.reduction is None:
        return True
    found = mixture_ratios(form.reduction, 8, {})
    return found.exact and found.rho_M == 1.0


def _deviation(loss: Loss, num_classes: int) -> float:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(len(_SCALES), _DRAWS, num_classes, generator=generator, dtype=torch.float64)
    scales = torch.tensor(_SCALES, dtype=torch.float64)[:, None, None]
    logits = (noise * scales).reshape(-1, num_classes)
    weights = torch.ones_like(logits, requires_grad=True)
    # For their derivatives every label is evaluated, also where a base function declares the sum.
    with torch.enable_grad():
        sums = loss.expected(Scores(logits), weights).detach()
    return float((sums.max() - sums.min()) / sums.abs().max().clamp(min=1e-300))

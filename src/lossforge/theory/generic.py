"""Losses of which nothing is known: only a witness can decide."""

import torch
from torch import Tensor

from ..loss import Loss, Scores
from .slots import candidates, fill_slots
from .verdict import Witness
from .weights import Rows

_NUMBERS = 1 << 23  # in a batch, all labels evaluated
_RELATIVE = 1e-8  # of the gradient's size: losses are evaluated by their own code


def find_rise_of(loss: Loss, row: Rows) -> Witness | None:
    """A prediction at which the gradient of the weighted loss lowers the target's logit."""
    slots = fill_slots(row)
    probs = candidates(slots)
    most = max(8, _NUMBERS // row.num_classes**2)
    probs = slots.full(probs[:: -(-len(probs) // most)])
    target = int(row.targets[0])
    gradient = _gradients(loss, row, torch.log(probs))
    rise = gradient[:, target] - _RELATIVE * gradient.abs().sum(1)
    place = int(rise.nan_to_num(nan=-torch.inf).argmax())
    # a derivative this small may be rounding of the loss itself
    if float(rise[place]) <= 1e-9:
        return None
    weights = tuple(row.weights[0].tolist())
    return Witness(weights, target, tuple(probs[place].tolist()), float(gradient[place, target]))


def _gradients(loss: Loss, row: Rows, logits: Tensor) -> Tensor:
    logits = logits.requires_grad_()
    with torch.enable_grad():
        total = loss.expected(Scores(logits), row.weights.expand(len(logits), -1)).sum()
        (gradient,) = torch.autograd.grad(total, logits)
    return gradient

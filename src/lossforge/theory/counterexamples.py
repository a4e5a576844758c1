"""Counterexamples to the claim "monotone": predictions at which raising the target hurts."""

import torch
from torch import Tensor

from ..loss import Loss, Scores
from .forms import Form
from .predictions import Slots, candidates, fill_slots
from .verdict import Witness
from .weights import Rows

_RELATIVE = 1e-11  # of the terms' size: what exceeds rounding
_ENOUGH = 1e-6  # of it: a climb has arrived
_LEAST, _NUDGE = 1e-18, 1e-10
_STEPS, _STARTS = 60, 16
_NUMBERS = 1 << 23  # in a batch, all labels evaluated
_MEASURED = 1e-8  # of the gradient's size: losses are evaluated by their own code


def slope(form: Form, slots: Slots, probs: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) derivatives of the weighted loss with respect to the target's logit, and their scale.

    Args:
        form: Target separation and binary reduction.
        slots: One row of weights.
        probs: (B, J) predictions, positive.
    """
    x, y = probs[:, :1], probs[:, 1:]
    own, rivals = slots.weights[0], slots.weights[1:]
    value = size = torch.zeros_like(y)
    if form.separation is not None:
        pull = form.separation.theta(own, slots.total, x)
        push = form.separation.theta(rivals, slots.total, y)
        value = value + pull - push
        size = size + pull.abs() + push.abs()
    if form.reduction is not None:
        p, q = x / (x + y), y / (x + y)
        scale = (form.num_classes - 1) * (x + y) ** 2
        gain = own * form.reduction.density(p) / scale
        loss = rivals * form.reduction.density(q) / scale
        value = value + gain - loss
        size = size + gain + loss
    products = slots.counts[1:] * x * y
    return -(products * value).sum(1), (products * size).sum(1)


def find_rise(form: Form, row: Rows, hints: list[Tensor], *, climb: bool = False) -> Witness | None:
    """A prediction at which raising the target's logit increases the weighted loss.

    Args:
        form: Target separation and binary reduction.
        row: One row of weights.
        hints: Further predictions of the row's slots to try.
        climb: Whether to improve the most promising ones.
    """
    slots = fill_slots(row)
    tried = torch.cat([candidates(slots), *hints])
    if climb:
        tried = _climb(form, slots, _promising(form, slots, tried))
    best = _best(form, slots, tried)
    if best is None:
        return None
    value, _ = slope(form, slots, best)
    probs = tuple(slots.full(best)[0].tolist())
    return Witness(tuple(row.weights[0].tolist()), int(row.targets[0]), probs, float(value[0]))


def _promising(form: Form, slots: Slots, probs: Tensor) -> Tensor:
    value, size = slope(form, slots, probs)
    score = (value / size.clamp(min=1e-300)).nan_to_num(nan=-torch.inf)
    return probs[score.argsort(descending=True)[:_STARTS]]


def _best(form: Form, slots: Slots, probs: Tensor) -> Tensor | None:
    """(1, J) the prediction with the largest derivative, if it exceeds rounding."""
    score = _score(form, slots, probs)
    probs = probs[score.topk(min(_STARTS, len(probs))).indices]
    # on a jump of a density, rounding decides; a witness must be one beside it too
    beside = [_nudged(slots, probs, nudge) for nudge in (0.0, _NUDGE, -_NUDGE)]
    score = torch.stack([_score(form, slots, near) for near in beside]).amin(0)
    place = int(score.argmax())
    return probs[place : place + 1] if float(score[place]) > _LEAST else None


def _score(form: Form, slots: Slots, probs: Tensor) -> Tensor:
    """(B,) derivatives less what rounding may have added."""
    value, size = slope(form, slots, probs)
    return (value - _RELATIVE * size).nan_to_num(nan=-torch.inf)


def _nudged(slots: Slots, probs: Tensor, nudge: float) -> Tensor:
    factors = torch.ones(probs.shape[1], dtype=torch.float64)
    factors[0] += nudge
    return slots.inside(probs * factors)


def _climb(form: Form, slots: Slots, probs: Tensor) -> Tensor:
    """Gradient steps in the logits towards a larger relative derivative."""
    logits = torch.log(probs).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.1)
    with torch.enable_grad():
        for _ in range(_STEPS):
            value, size = slope(form, slots, slots.softmax(logits))
            if bool((value > _ENOUGH * size).any()):
                break
            loss = -(value / size.clamp(min=1e-300)).sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if logits.grad is None or not bool(logits.grad.isfinite().all()):
                break
            optimizer.step()
    return slots.inside(slots.softmax(logits.detach()))


def find_rise_of(loss: Loss, row: Rows) -> Witness | None:
    """A prediction at which the gradient of the weighted loss lowers the target's logit."""
    slots = fill_slots(row)
    probs = candidates(slots)
    most = max(8, _NUMBERS // row.num_classes**2)
    probs = slots.full(probs[:: -(-len(probs) // most)])
    target = int(row.targets[0])
    gradient = _gradients(loss, row, torch.log(probs))
    rise = gradient[:, target] - _MEASURED * gradient.abs().sum(1)
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

"""Counterexamples to the claim "monotone": predictions at which raising the target hurts."""

import copy
import math

import torch
from torch import Tensor

from ..loss import Loss
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
_MEASURABLE = 1e-9  # a derivative this small may be rounding of the loss itself
_STEP = 1e-5  # of a logit, in values of a loss
_LENGTHS = (0.05, 0.2, 0.6, 1.2, 2.5, 6.0, 15.0, 50.0)  # of logits


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
        pull, above = form.separation.effect(own, slots.total, x)
        push, below = form.separation.effect(rivals, slots.total, y)
        value = value + pull - push
        size = size + above + below
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


def find_rise_of(loss: Loss, row: Rows, hints: Tensor | None = None) -> Witness | None:
    """Logits at which raising the target's increases the weighted loss, by the loss itself.

    Args:
        loss: Any loss.
        row: One row of weights.
        hints: (B, K) further logits to try.
    """
    slots, target = fill_slots(row), int(row.targets[0])
    most = max(8, _NUMBERS // row.num_classes**2)
    logits = torch.log(slots.full(candidates(slots)))
    of_probs = _shift_invariant(loss, row)
    if not of_probs:
        logits = torch.cat([logits, *_rescaled(logits)])
    logits = logits[:: -(-len(logits) // most)]
    logits = logits if hints is None else torch.cat([hints, logits])
    random = torch.Generator().manual_seed(0)
    for scale in (1.0, 0.3, 0.1, 0.0):
        rise = _measured_rises(loss, row, logits)
        logits = logits[rise.topk(min(_STARTS, len(logits))).indices]
        if float(rise.max()) > _MEASURABLE or not scale:
            break
        steps = scale * torch.randn(
            min(8, most), *logits.shape, generator=random, dtype=torch.float64
        )
        logits = torch.cat([logits, (logits + steps).flatten(0, 1)])
    for z in logits[_measured_rises(loss, row, logits) > _MEASURABLE]:
        value = float(_gradients(loss, row, z[None])[0, target])
        # a gradient need not be the derivative of what is computed
        if _increases(loss, row, z, value):
            return Witness(
                tuple(row.weights[0].tolist()),
                target,
                tuple(torch.softmax(z, 0).tolist()),
                value,
                logits=None if of_probs else tuple(z.tolist()),
            )
    return None


def _rescaled(logits: Tensor) -> list[Tensor]:
    """The same directions at other lengths, centred and shifted."""
    centred = logits - logits.mean(1, keepdim=True)
    unit = centred / torch.linalg.vector_norm(centred, dim=1, keepdim=True).clamp(min=1e-12)
    shift = torch.ones_like(unit) / math.sqrt(logits.shape[1])
    found = []
    for length in _LENGTHS:
        for turn in (0.0, 0.8, -0.8):
            found.append(length * (math.cos(turn) * unit + math.sin(turn) * shift))
    return found


def _shift_invariant(loss: Loss, row: Rows) -> bool:
    """Whether a loss sees the probabilities alone."""
    random = torch.Generator().manual_seed(0)
    z = torch.randn(4, row.num_classes, generator=random, dtype=torch.float64)
    z = z * torch.tensor([[0.1], [1.0], [5.0], [20.0]], dtype=torch.float64)
    with torch.no_grad():
        here, there = (_values(loss, row, z + shift) for shift in (0.0, 3.0))
    return bool(torch.allclose(here, there, rtol=1e-9, atol=1e-12, equal_nan=True))


def _measured_rises(loss: Loss, row: Rows, logits: Tensor) -> Tensor:
    """(B,) derivatives by the target's logit, less what rounding of the loss may have added."""
    gradient = _gradients(loss, row, logits)
    rise = gradient[:, int(row.targets[0])] - _MEASURED * gradient.abs().sum(1)
    return rise.nan_to_num(nan=-torch.inf)


def _increases(loss: Loss, row: Rows, z: Tensor, slope: float) -> bool:
    """Whether the weighted loss itself rises with the target's logit, on both sides of z."""
    near = z.repeat(3, 1)
    near[:, int(row.targets[0])] += torch.tensor([-_STEP, 0.0, _STEP], dtype=torch.float64)
    with torch.no_grad():
        rises = _values(loss, row, near).diff()
    return bool((rises > slope * _STEP / 2).all())


def _gradients(loss: Loss, row: Rows, logits: Tensor) -> Tensor:
    logits = logits.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(_values(loss, row, logits).sum(), logits)
    return gradient


def _values(loss: Loss, row: Rows, logits: Tensor) -> Tensor:
    """(B,) weighted losses, by calling the loss with every label."""
    n, classes = logits.shape
    called = copy.copy(loss)
    called.reduction = "none"
    labels = torch.arange(classes).repeat(n)
    values: Tensor = called(logits.repeat_interleave(classes, 0), labels)
    return (row.weights * values.view(n, classes)).sum(1)

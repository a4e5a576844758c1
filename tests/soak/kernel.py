"""The compiled kernel against torch operations: random losses, shapes, masks, weights, extremes.

What counts is the distance from the composed path in double precision, in units of rounding errors
at the size of the row's largest logit gap, loss and gradient. The composed path in single precision
is held against the same measure, so that a problem that is hard for both is not a fault of one.
"""

import math
import random

import torch
from torch import Tensor

import lossforge
from lossforge import kernels
from lossforge.catalog.entry import TABLES
from lossforge.loss import Loss, shortcut
from soak.random_losses import random_loss

SIZE = 10_000
ERROR = 64  # units of rounding beyond four times what single precision costs the composed path


def attack(seed: int) -> list[str]:
    """Compare one batch."""
    error = largest_error(seed)
    return [f"{error:.0f} units of rounding apart"] if error > ERROR else []


def largest_error(seed: int) -> float:
    """The largest error of values and gradients, in units of rounding; 0 without a kernel."""
    chance = random.Random(seed)
    classes = _classes(chance)
    dtype = chance.choice([torch.float32, torch.float64])
    loss, (logits, target) = _loss(chance, classes), _batch(chance, classes, dtype)
    if shortcut._kernel_of(loss, classes, dtype) is None:
        return 0.0
    loss.weight = _weight(chance, classes, dtype)
    loss.reduction = chance.choice(["none", "mean", "sum"])
    loss.ignore_index = -7
    found = _values(loss, logits, target)
    with kernels.composed():
        same = _values(loss, logits, target)
        loss.weight = None if loss.weight is None else loss.weight.double()
        expected = _values(loss, logits.double(), target)
    worst = 0.0
    for one, other, exact in zip(found, same, expected, strict=True):
        size = float(exact[exact.isfinite()].abs().max()) if exact.isfinite().any() else 0.0
        unit = torch.finfo(dtype).eps * max(size, 1.0)
        allowed = _distance(other, exact, unit)
        if allowed < math.inf:  # where the composed path overflows, nothing is known
            worst = max(worst, _distance(one, exact, unit) - 4 * allowed)
    return worst


def _loss(chance: random.Random, classes: int) -> Loss:
    """Any loss that the kernel may know; wrappers with a K x K matrix only of few classes."""
    if classes > 3000 or chance.random() < 0.3:
        return lossforge.make(chance.choice(TABLES))
    return random_loss(chance.randrange(1 << 30), classes).loss


def _classes(chance: random.Random) -> int:
    top = chance.choice([3, 20, 300, 3000] + [100_000] * (chance.random() < 0.05))
    return chance.randint(2, top)


def _batch(chance: random.Random, classes: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(chance.randrange(1 << 40))
    rows = chance.randint(1, max(1, min(40, 200_000 // classes)))
    scale = 10 ** chance.uniform(-3, 4 if chance.random() < 0.3 else 1.3)
    logits = scale * torch.randn(rows, classes, generator=generator, dtype=dtype)
    target = torch.randint(classes, (rows,), generator=generator)
    if chance.random() < 0.3:
        masked = torch.rand(rows, classes, generator=generator) < chance.random()
        if chance.random() < 0.8:  # the label is one of the classes that are left
            masked = masked.scatter(1, target[:, None], False)
        logits = logits.masked_fill(masked, -math.inf)
    if chance.random() < 0.3:
        target[torch.rand(rows, generator=generator) < 0.3] = -7
    if chance.random() < 0.1:
        logits = logits.T.contiguous().T
    return logits, target


def _weight(chance: random.Random, classes: int, dtype: torch.dtype) -> Tensor | None:
    return torch.rand(classes, dtype=dtype) if chance.random() < 0.2 else None


def _values(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    values = loss(logits, target)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach().double(), gradient.double()


def _distance(found: Tensor, exact: Tensor, unit: float) -> float:
    """In units; infinite where one is finite, infinite or NaN and the other is not."""
    known = exact.isfinite()
    if not torch.equal(found[~known].nan_to_num(9.0), exact[~known].nan_to_num(9.0)):
        return math.inf
    if not found[known].isfinite().all():
        return math.inf
    return float(((found - exact).abs()[known]).max()) / unit if known.any() else 0.0

"""Random certificate problems near the frontier, of every form that the theory decides.

Target separation, binary reduction, sums of the two, losses of the target alone, two base
functions, distances, normalised losses under symmetric noise, and wrapped losses, which are not
understood. The rate lies within 10 %, 1 % or 1e-6 of the frontier that one rival gives (see
`_edge`), or now and then of the one that `certify` claims. A tenth are ties in dyadic numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from problems import draw_base, draw_confusion, draw_tau
from torch import Tensor

from lossforge import BinaryReduction, TargetSeparation, base
from lossforge.base import BaseFunction
from lossforge.constructions import (
    EpsSoftmax,
    LogitClip,
    Normalised,
    NormalisedNegative,
    PowerDistance,
    Sharpened,
    TargetLoss,
)
from lossforge.loss import Loss
from lossforge.theory import certify

Random = np.random.Generator
Density = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """A loss, and what its frontier depends on: A and B of target separation, f of pairs."""

    loss: Loss
    own: Density | None = None
    others: Density | None = None
    pairs: Density | None = None
    understood: bool = True


@dataclass(frozen=True)
class Problem:
    loss: Loss
    rows: Tensor  # (R, K)
    targets: Tensor
    noise: object
    claim: str
    text: str
    exact: bool  # all its numbers are dyadic: nothing is rounded
    understood: bool


def draw(random: Random) -> Problem:
    """A problem near the frontier, or at a tie in exact numbers."""
    if random.random() < 0.1:
        return _tie(random)
    while True:
        classes = 100 if random.random() < 0.03 else int(random.integers(2, 21))
        claim = str(random.choice(["monotone", "transfers", "global"], p=[0.55, 0.2, 0.25]))
        kinds = ["plain", "target", "two", "distance", "normalised", "wrapped"]
        kind = str(random.choice(kinds, p=[0.5, 0.15, 0.15, 0.07, 0.08, 0.05]))
        shape = _SHAPES[kind](random, classes)
        name, confusion = draw_confusion(random, classes)
        if kind == "normalised":
            name, confusion = "symmetric", torch.full_like(confusion, 1 / (classes - 1))
            confusion.fill_diagonal_(0)
        edge = _edge(shape, claim, float(confusion.max()))
        if edge > 0:
            break
    rate, near = _rate(random, shape.loss, claim, confusion, edge)
    return _with_noise(random, shape, claim, (name, confusion), rate, f"{near} of {edge:.6g}")


def _with_noise(
    random: Random, shape: Shape, claim: str, noise: tuple[str, Tensor], rate: float, near: str
) -> Problem:
    """A matrix, one row of it with its classes shuffled, or rows of instances."""
    name, confusion = noise
    classes = len(confusion)
    rows = (1 - rate) * torch.eye(classes, dtype=torch.float64) + rate * confusion
    targets = torch.arange(classes)
    given: object = rows
    kind = random.choice(["matrix", "row", "instances"], p=[0.45, 0.45, 0.1])
    if kind == "row" or classes > 20:
        order = torch.from_numpy(random.permutation(classes))
        rows = rows[:1, order]
        targets, given = rows.argmax(1), rows[0]
    elif kind == "instances":
        # some noisier than the others
        rates = rate * (1 + torch.from_numpy(random.uniform(-0.2, 0.05, classes)))
        rows = (1 - rates)[:, None] * torch.eye(classes, dtype=torch.float64)
        rows = rows + rates[:, None] * confusion
        given = SimpleNamespace(rows=rows, true=targets)
    text = f"{shape.loss} | {name} {kind}, K = {classes}, rate {rate!r}, {near} | {claim}"
    return Problem(shape.loss, rows, targets, given, claim, text, False, shape.understood)


def _rate(
    random: Random, loss: Loss, claim: str, confusion: Tensor, edge: float
) -> tuple[float, str]:
    """A rate close to the edge: that of the ratio tests, or now and then the one claimed."""
    limit = (1 - 1e-9) / (1 + float(confusion.max()))
    if random.random() < 0.06 and len(confusion) <= 20:
        edge = _claimed(loss, claim, confusion[0], min(edge, limit), limit)
    width = float(random.choice([0.1, 0.01, 1e-6]))
    step = random.uniform(-1, 1) if width > 1e-5 else random.choice([-1, 1])
    factor = 1 + width * float(step)
    return min(edge * factor, limit), f"{factor!r}"


def _claimed(loss: Loss, claim: str, row: Tensor, low: float, high: float) -> float:
    """The rate up to which `certify` proves a row, by bisection."""
    own = torch.zeros_like(row)
    own[0] = 1
    for _ in range(10):
        middle = (low + high) / 2
        noise = (1 - middle) * own + middle * row
        proved = certify(loss, noise, claim=claim, refute=False).status == "PROVED"  # type: ignore
        low, high = (middle, high) if proved else (low, middle)
    return low


def _edge(shape: Shape, claim: str, m: float) -> float:
    """The rate from which on one rival of share m contradicts a part of a loss.

    At weights 1 - r and r m, target separation wants (1 - r) A(x) - r B(x) >= r m A(y) -
    (1 - r m) B(y) for x + y <= 1, which is linear in r; "global" the same of the integrals over
    [1 - x, 1] and [0, x]. Pairs want (1 - r) f(p) >= r m f(1 - p).
    """
    size = 161
    x = torch.linspace(0, 1, size, dtype=torch.float64)
    x = x.clamp(1e-9, 1 - 1e-12)
    rates = [1 / (1 + m)]
    for own, others in ((shape.own, shape.others), (shape.pairs, None)):
        if own is None:
            continue
        a = own(x)
        b = torch.zeros_like(x) if others is None else others(x)
        if claim == "global":
            (low_a, high_a), (low_b, high_b) = _integrals(a), _integrals(b)
            rate = (high_a + low_b) / (high_a + high_b + m * (low_a + low_b))
            rates.append(float(rate[1:].nan_to_num(nan=1.0).min()))
        elif own is shape.pairs:
            rates.append(float((a / (a + m * a.flip(0))).nan_to_num(nan=1.0).min()))
        else:
            rate = (a[:, None] + b) / ((a + b)[:, None] + m * (a + b))
            met = x[:, None] + x <= 1 + 1e-9
            rates.append(float(rate[met].nan_to_num(nan=1.0).min()))
    return min(rates)


def _integrals(values: Tensor) -> tuple[Tensor, Tensor]:
    """Integrals over [0, x] and [1 - x, 1] at the points of a grid."""
    steps = (values[1:] + values[:-1]) / 2
    zero = torch.zeros(1, dtype=torch.float64)
    return torch.cat([zero, steps.cumsum(0)]), torch.cat([zero, steps.flip(0).cumsum(0)])


def _plain(random: Random, classes: int) -> Shape:
    """Target separation, binary reduction, and their sums."""
    kind = random.choice(["TS", "BR", "both"], p=[0.35, 0.25, 0.4])
    first = _any_base(random) if random.random() < 0.3 else draw_base(random)
    second = first if random.random() < 0.4 else draw_base(random)
    tau = draw_tau(random, classes)
    a = tau / (classes - 1)
    separated = (
        TargetSeparation(first, a=a) if random.random() < 0.5 else TargetSeparation(first, tau=tau)
    )
    reduced = BinaryReduction(second)
    if kind == "TS":
        return Shape(separated, first.density, lambda x: a * first.density(x))
    if kind == "BR":
        return Shape(reduced, pairs=second.density)
    lam, mu = np.exp(random.uniform(math.log(0.1), math.log(10), 2)).tolist()
    return Shape(
        lam * separated + mu * reduced,
        first.density,
        lambda x: a * first.density(x),
        second.density,
    )


def _target(random: Random, classes: int) -> Shape:
    """Losses of the target's probability alone, and sums of two."""
    first, second = _any_base(random), _any_base(random)
    if random.random() < 0.6:
        return Shape(TargetLoss(first, scale=float(random.uniform(0.2, 5))), first.density)
    lam = float(random.uniform(0.1, 3))
    loss = lam * TargetLoss(first) + TargetLoss(second)
    return Shape(loss, lambda x: lam * first.density(x) + second.density(x))


def _two(random: Random, classes: int) -> Shape:
    """Two base functions: for target and others, or in two summands."""
    first, second = draw_base(random), draw_base(random)
    a = draw_tau(random, classes) / (classes - 1)
    if random.random() < 0.5:
        loss: Loss = TargetSeparation(first, a=a, nontarget=second)
        return Shape(loss, first.density, lambda x: a * second.density(x))
    b = draw_tau(random, classes) / (classes - 1)
    loss = TargetSeparation(first, a=a) + TargetSeparation(second, a=b)
    return Shape(
        loss,
        lambda x: first.density(x) + second.density(x),
        lambda x: a * first.density(x) + b * second.density(x),
    )


def _distance(random: Random, classes: int) -> Shape:
    a = float(random.choice([1.0, 1.2, 2.0, 5.0, 30.0]))
    r = float(random.choice([0.7, 1.0, 1.5, 2.0, 3.0]))
    flags = (random.random(2) < 0.5).tolist()
    loss = PowerDistance(a=a, r=r, centred=flags[0], average=flags[1])
    known = a > 1 and r >= 1
    if not known:
        return Shape(loss, understood=False)
    return Shape(loss, lambda x: (a - x) ** (r - 1), lambda x: x ** (r - 1))


def _normalised(random: Random, classes: int) -> Shape:
    first = _any_base(random)
    loss: Loss = NormalisedNegative(first) if first.bounded else Normalised(first)
    if first.bounded and random.random() < 0.5:
        loss = Normalised(first, scale=2.0)
    if random.random() < 0.5:
        return Shape(loss)
    more = _plain(random, classes)
    return Shape(0.5 * loss + more.loss, more.own, more.others, more.pairs)


def _wrapped(random: Random, classes: int) -> Shape:
    inner = TargetLoss(_any_base(random))
    wrappers: list[Callable[[], Loss]] = [
        lambda: LogitClip(inner, delta=float(random.uniform(0.3, 5))),
        lambda: Sharpened(inner, tau=float(random.uniform(0.1, 2))),
        lambda: EpsSoftmax(inner, m=float(random.choice([0.1, 10.0, 1e4]))),
    ]
    loss = wrappers[int(random.integers(3))]()
    return Shape(loss if random.random() < 0.6 else loss + inner, understood=False)


_SHAPES = {
    "plain": _plain,
    "target": _target,
    "two": _two,
    "distance": _distance,
    "normalised": _normalised,
    "wrapped": _wrapped,
}


def _any_base(random: Random) -> BaseFunction:
    """A base function of the published losses."""
    size = float(random.uniform(0.3, 3))
    return random.choice(  # type: ignore[no-any-return, arg-type]
        [
            base.Log(),
            base.Linear(size),
            base.Power(size),
            base.ShiftedPower(size, float(random.uniform(0.3, 3))),
            base.MirroredPower(1 + size, float(random.uniform(0.3, 3))),
            base.ExponentialDecay(size),
            base.Taylor(int(random.integers(1, 7))),
            base.HuberLog(1 + size),
            base.ShiftedLog(size),
            base.JensenShannon(float(random.uniform(0.1, 0.9))),
        ]
    )


def _tie(random: Random) -> Problem:
    """Dyadic numbers at which the inequality of a claim holds with equality, or just fails."""
    density, ratio = [
        (base.Taylor(2), 2),
        (base.MirroredPower(2.0, 2.0), 2),
        (base.MirroredPower(1.5, 2.0), 3),
        (base.Quadratic(-1.0, -1.0, 1.0), 2),
        (base.Quadratic(-2.0, -1.0, 1.0), 3),
        (base.Quadratic(-1.0, -1.0, 0.0), 2),
        (base.ShiftedPower(1.0, 2.0), 2),
        (base.Linear(), 1),
    ][int(random.integers(8))]
    rows = {
        1: [[0.375, 0.3125, 0.3125], [0.5, 0.25, 0.25]],
        2: [[0.5, 0.25, 0.25], [0.5, 0.25, 0.125, 0.125], [0.25, *[0.125] * 6]],
        3: [[0.75, 0.25], [0.75, 0.25, 0.0], [0.375, *[0.125] * 5]],
    }[ratio]
    row = torch.tensor(rows[int(random.integers(len(rows)))], dtype=torch.float64)
    moved = float(random.choice([0.0, 0.0, 2.0**-20, -(2.0**-20), 2.0**-44, -(2.0**-44)]))
    row[0] += moved
    row[1] -= moved
    kind = random.choice(["target", "BR", "separated", "sum"])
    losses: dict[str, Callable[[], Loss]] = {
        "target": lambda: TargetLoss(density),
        "BR": lambda: BinaryReduction(density),
        "separated": lambda: TargetSeparation(density, a=float(random.choice([0.125, 0.5, 1.0]))),
        "sum": lambda: TargetLoss(density) + 0.5 * BinaryReduction(density),
    }
    loss = losses[str(kind)]()
    claim = str(random.choice(["monotone", "transfers", "global"]))
    text = f"{loss} | {row.tolist()}, a tie moved by {moved!r} | {claim}"
    return Problem(loss, row[None], torch.tensor([0]), row, claim, text, True, True)

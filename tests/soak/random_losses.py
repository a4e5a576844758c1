"""Random losses with naive formulas: cases, drawn parameters, constructions, sums, wrappers."""

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import naive
import torch
from case import Cosine, Either, Reduced, Separated
from cases import CASES
from catalog import wrapped
from catalog.classwise import OF_LOGITS, TwoViews
from torch import Tensor

import lossforge
from lossforge import BEF, base
from lossforge.catalog import ENTRIES
from lossforge.constructions import (
    BackwardCorrection,
    BinaryReduction,
    BoundedCosine,
    ByRivals,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
    TargetLoss,
    TargetSeparation,
)
from lossforge.loss import Loss

Formula = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Subject:
    """A loss, its naive formula of one sample's logits, and what its case declares."""

    loss: Loss
    formula: Formula
    breaks: frozenset[str] = frozenset()
    smooth: bool = True
    views: bool = False
    scale: float = 1.0

    def __call__(self, logits: Tensor, target: Tensor, policy: dict[str, Any]) -> Tensor:
        return self.of_views(self.inputs(logits), target, policy)

    def inputs(self, logits: Tensor) -> tuple[Tensor, ...]:
        """The views of a sample that the loss takes, all made from the same logits."""
        return (logits, logits / 2) if self.views else (logits,)

    def of_views(self, views: Sequence[Tensor], target: Tensor, policy: dict[str, Any]) -> Tensor:
        self._take(policy)
        return self.loss(views if self.views else views[0], target)

    def from_probs(self, probs: Tensor, target: Tensor, policy: dict[str, Any]) -> Tensor:
        self._take(policy)
        return self.loss.from_probs(probs, target)

    def _take(self, policy: dict[str, Any]) -> None:
        for name, value in policy.items():
            setattr(self.loss, name, value)


def random_loss(index: int, classes: int) -> Subject:
    """A random loss, the same for the same index; built once, if the classes do not matter."""
    made = _built_once(index, 5)
    # a matrix has as many rows as classes; a sum over rivals that is no mean grows with them
    parts = list(made.loss.modules())
    sized = any(hasattr(part, "T") or getattr(part, "rivals", None) for part in parts)
    return _built_once(index, classes) if sized else made


@functools.cache
def _built_once(index: int, classes: int) -> Subject:
    """A random loss with the size of its values and gradients."""
    rng = random.Random(index)
    made = rng.choices((_case, _drawn, _built, _sum, _wrapped), (4, 4, 3, 2, 2))[0](rng, classes)
    text = str(made.loss)
    if rng.random() < 0.3 and not made.views and "text" not in made.breaks and "eries" not in text:
        made = replace(made, loss=lossforge.parse(text))
    policy = {"weight": None, "ignore_index": -100, "reduction": "none", "label_smoothing": 0.0}
    generator = torch.Generator().manual_seed(index)
    z = 2 * torch.randn(24, classes, generator=generator, dtype=torch.float64)
    z.requires_grad_()
    values = made(z, torch.arange(24) % classes, policy)
    (gradient,) = torch.autograd.grad(values.sum(), z)
    largest = torch.cat([values.detach(), gradient.flatten()]).abs().nan_to_num(0, 0).max()
    return replace(made, scale=max(1.0, float(largest)))


def _case(rng: random.Random, classes: int) -> Subject:
    """A case of the tests at its own parameters, often cross entropy, which torch has too."""
    case = CASES[0] if rng.random() < 0.3 else rng.choice(CASES)
    loss = case.make(classes)
    views = isinstance(loss, TwoViews)
    loss = loss.loss if views else loss
    return Subject(loss, case.naive, case.breaks, case.smooth, views)


TUNED = [case for case in CASES if case.entry and case.formula and ENTRIES[case.entry].tune]


def _drawn(rng: random.Random, classes: int) -> Subject:
    """A catalogue loss at random parameters, from the space where tuning searches."""
    case = rng.choice(TUNED)
    settings: dict[str, Any] = dict(rng.choice(case.settings)) if rng.random() < 0.3 else {}
    for name, space in ENTRIES[case.entry].tune.items():
        low, high = (math.log(x) if space.log else x for x in (space.low, space.high))
        drawn = rng.uniform(low, high)
        settings[name] = space.value(math.exp(drawn) if space.log else drawn)
    loss = lossforge.make(case.entry, **settings)
    smooth = case.smooth and not settings.get("stop_gradient")
    return Subject(loss, functools.partial(_call, case.formula, settings), case.breaks, smooth)


def _call(formula: Callable[..., Tensor], settings: dict[str, Any], z: Tensor, t: int) -> Tensor:
    return formula(z, t, **settings)


def _base(rng: random.Random) -> tuple[base.BaseFunction, naive.Base, bool]:
    """A base function with random parameters, its naive twin, and whether it is smooth."""
    a, b, c = rng.uniform(0.2, 5), rng.uniform(0.3, 2.5), rng.random()
    terms = rng.randint(1, 8)
    bend = rng.uniform(-9, 9)
    level = -max(0.0, bend * max(c, 1 - c) ** 2) - b  # a negative derivative on all of [0, 1]
    return rng.choice(
        (
            lambda: (base.Exponential(-a, -8 * c, c), naive.exponential(-a, -8 * c, c), True),
            lambda: (base.Exponential(-b, 2 * c, 1 - c), naive.exponential(-b, 2 * c, 1 - c), True),
            lambda: (base.Quadratic(bend, level, c), naive.quadratic(bend, level, c), True),
            lambda: (base.Log(), naive.log(), True),
            lambda: (base.Linear(a), naive.linear(a), True),
            lambda: (base.Power(b), naive.power(b), True),
            lambda: (base.ShiftedPower(a, b), naive.shifted_power(a, b), True),
            lambda: (base.MirroredPower(1 + a, b), naive.mirrored_power(1 + a, b), True),
            lambda: (base.ExponentialDecay(b), naive.exponential_decay(b), True),
            lambda: (base.Taylor(terms), naive.taylor(terms), True),
            lambda: (base.Focal(b), naive.focal(b), b > 1),
            lambda: (base.HuberLog(1 + a), naive.huber_log(1 + a), False),
        )
    )()


def _built(rng: random.Random, classes: int) -> Subject:
    """A construction of random base functions."""
    h, twin, smooth = _base(rng)
    tau, a = rng.uniform(0, 3), rng.uniform(0, 0.5)
    most = rng.randint(1, 1 + 2 * classes)  # of rivals
    loss, terms = rng.choice(
        (
            lambda: (TargetSeparation(h, tau=tau, a=a), [Separated(twin, tau, a)]),
            lambda: (TargetSeparation(h, tau=tau), [Separated(twin, tau)]),
            lambda: (
                ByRivals(a * BinaryReduction(h), tau * BoundedCosine(rivals=most), most=most),
                [Either(Reduced(twin, a), Cosine(tau, rivals=most), most)],
            ),
            lambda: (BinaryReduction(h), [Reduced(twin)]),
            lambda: (TargetLoss(h), [Separated(twin, a=0.0)]),
            lambda: (
                BEF(beta=-tau, gamma=a, tau=tau, lam=a, mu=1 - a, br_beta=tau, br_gamma=a),
                [
                    Separated(naive.exponential(-8, -tau, a), tau, coefficient=a),
                    Reduced(naive.exponential(-8, tau, a), coefficient=1 - a),
                ],
            ),
        )
    )()
    return Subject(loss, lambda z, t: sum(term.value(z, t) for term in terms), smooth=smooth)


def _plain(rng: random.Random, classes: int) -> Subject:
    """A loss that may stand in a sum."""
    while True:
        made = rng.choice((_case, _drawn, _built))(rng, classes)
        if not made.views:
            return made


def _sum(rng: random.Random, classes: int) -> Subject:
    """A sum or a difference of two losses."""
    one, two = _plain(rng, classes), _plain(rng, classes)
    a, b = rng.uniform(0.1, 3), rng.choice((-1, 1, 1, 1)) * rng.uniform(0.1, 3)
    return Subject(
        a * one.loss + b * two.loss,
        lambda z, t: a * one.formula(z, t) + b * two.formula(z, t),
        one.breaks | two.breaks,
        one.smooth and two.smooth,
    )


def _wrapped(rng: random.Random, classes: int) -> Subject:
    """A wrapper of a loss of the probabilities."""
    inner = _plain(rng, classes)
    while "shift" in inner.breaks:
        inner = _plain(rng, classes)
    f, delta, m = inner.formula, rng.uniform(0.3, 4), 10 ** rng.uniform(-1, 5)
    T = wrapped.transition(classes)
    inverse = torch.linalg.inv(T)

    def noisy(z: Tensor, t: int) -> Tensor:
        return f((naive.softmax(z)[:, None] * T).sum(0).log(), t)

    def relaxed(z: Tensor, t: int) -> Tensor:
        return wrapped.eps_softmax(lambda u, k: f(u.log(), k), naive.softmax(z), t, m)

    def unbiased(z: Tensor, t: int) -> Tensor:
        return sum(inverse[t, k] * f(z, k) for k in range(len(z)))

    make, formula, breaks = rng.choice(
        (
            (
                lambda: LogitClip(inner.loss, delta=delta),
                lambda z, t: f(wrapped.clipped(z, delta, 2.0, False, 0), t),
                OF_LOGITS,
            ),
            (
                lambda: Sharpened(inner.loss, tau=delta),
                lambda z, t: f(wrapped.sharpened(z, delta, True), t),
                OF_LOGITS | {"ties", "single-class"},
            ),
            (lambda: EpsSoftmax(inner.loss, m=m), relaxed, wrapped.TIES),
            (lambda: ForwardCorrection(inner.loss, T), noisy, wrapped.OF_CLASSES),
            (lambda: BackwardCorrection(inner.loss, T), unbiased, wrapped.OF_LABELS),
        )
    )
    return Subject(make(), formula, inner.breaks | breaks, inner.smooth)

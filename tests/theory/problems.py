"""Random certification problems: a loss and a noise, half of them close to where the verdict turns.

The sampler is part of what the tests claim, so it is fixed: `problems(count, seed)` always yields
the same sequence, and a longer one begins with the shorter one. A problem is drawn like this.

* **Classes**: K is the rounded exponential of a uniform number between log 2 and log 100.
* **Base functions**: f1 (40 %), f2 (30 %), or a random smooth density (30 %), which is the
  exponential of a polynomial of degree 1 to 4 (half) or of a trigonometric sum of 1 to 3 terms. The
  largest value of a density is e^U times its smallest, U uniform between 0 and log 30; its scale is
  log-uniform between 0.1 and 10. The centre gamma of f1 and f2 is 1/2 (25 %), 0 or 1 (12.5 % each),
  or uniform on [0, 1].
* **Constructions**: target separation (40 %), binary reduction (25 %), or a sum of one of each
  (35 %) with log-uniform coefficients between 0.1 and 10 and, in half of them, one base for both.
  tau is 0 (15 %), 1 (20 %), uniform on [0, 1] (25 %) or log-uniform between 1 and 2 (K - 1) (40 %);
  a third of the losses are given a = tau / (K - 1) instead.
* **Noise**: T = (1 - eta) I + eta N, N symmetric, pair flips, uniform inside blocks of random size,
  or random: rows from a Dirichlet distribution with a log-uniform concentration between 0.1 and 10
  (25 % each). A quarter of the problems hand over one row of T instead, its classes shuffled.
* **Rate**: every even problem has eta = frontier (1 + V), V uniform on [-0.1, 0.1]; every odd one
  has eta uniform between 0 and 1 / (1 + m), where the true label stops being the likeliest and m is
  the largest entry of N (of the row, where only one is handed over). No rate is larger than
  1 - 1e-4 times that limit.

The frontier is that of transfers (target separation) and of raised logits (binary reduction), and
the smaller of the two for a sum; see `frontier`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import BaseFunction, Exponential, Quadratic, from_derivative
from lossforge.loss import Loss

RATIO = math.log(30)
GRID = 2001
Generator = np.random.Generator


@dataclass(frozen=True)
class Problem:
    loss: Loss
    noise: Tensor  # (K, K) transition matrix, or the (K,) weights of one instance
    num_classes: int
    description: str
    eta: float
    frontier: float
    near: bool  # whether eta was drawn around the frontier

    def rows(self) -> tuple[Tensor, Tensor]:
        """(R, K) weights and (R,) targets."""
        rows = self.noise if self.noise.dim() == 2 else self.noise[None]
        return rows, rows.argmax(1)


def problems(count: int, seed: int = 0, start: int = 0) -> Iterator[Problem]:
    """The problems number `start` to `start + count - 1` of a seed; see the module."""
    for number in range(start, start + count):
        yield draw(np.random.default_rng((seed, number)), near=number % 2 == 0)


def draw(random: Generator, near: bool) -> Problem:
    classes = round(math.exp(random.uniform(math.log(2), math.log(100))))
    loss, separated, a, reduced = draw_loss(random, classes)
    kind, confusion = draw_confusion(random, classes)
    own = torch.eye(classes, dtype=torch.float64)
    if random.random() < 0.25:
        row, order = random.integers(classes), torch.from_numpy(random.permutation(classes))
        kind, confusion, own = f"one row of {kind}", confusion[row, order], own[row, order]
    peak = float(confusion.max())
    limit = 1 / (1 + peak)
    edge = frontier(separated, a, reduced, classes, peak)
    eta = edge * (1 + random.uniform(-0.1, 0.1)) if near else random.uniform(0, limit)
    eta = min(eta, (1 - 1e-4) * limit)
    noise = (1 - eta) * own + eta * confusion
    place = f"{'near ' if near else ''}frontier {edge:.4f}"
    description = f"{loss} under {kind} noise {eta:.4f}, {classes} classes, {place}"
    return Problem(loss, noise, classes, description, eta, edge, near)


def draw_loss(
    random: Generator, classes: int
) -> tuple[Loss, BaseFunction | None, float, BaseFunction | None]:
    """A loss, the base and a of its separated part, and the base of its reduced part."""
    kind = random.choice(["TS", "BR", "sum"], p=[0.4, 0.25, 0.35])
    base = draw_base(random)
    if kind == "BR":
        return BinaryReduction(base), None, 0.0, base
    tau = draw_tau(random, classes)
    a = tau / (classes - 1)
    given_a = random.random() < 1 / 3
    separation = TargetSeparation(base, a=a) if given_a else TargetSeparation(base, tau=tau)
    if kind == "TS":
        return separation, base, a, None
    second = base if random.random() < 0.5 else draw_base(random)
    first, other = np.exp(random.uniform(math.log(0.1), math.log(10), 2)).tolist()
    return first * separation + other * BinaryReduction(second), base, a, second


def draw_tau(random: Generator, classes: int) -> float:
    beyond = math.exp(random.uniform(0, math.log(2 * (classes - 1))))
    return float(random.choice([0, 1, random.random(), beyond], p=[0.15, 0.2, 0.25, 0.4]))


def draw_base(random: Generator) -> BaseFunction:
    kind = random.choice(["f1", "f2", "smooth"], p=[0.4, 0.3, 0.3])
    spread = random.uniform(0, RATIO)
    scale = math.exp(random.uniform(math.log(0.1), math.log(10)))
    if kind == "smooth":
        return draw_smooth(random, spread, scale)
    gamma = float(random.choice([0.5, 0, 1, random.random()], p=[0.25, 0.125, 0.125, 0.5]))
    reach = max(gamma, 1 - gamma) ** 2
    spread *= random.choice([-1, 1])
    if kind == "f1":
        return Exponential(alpha=-scale, beta=spread / reach, gamma=gamma)
    curvature = math.expm1(spread) / reach
    return Quadratic(alpha=-scale * curvature, beta=-scale, gamma=gamma)


def draw_smooth(random: Generator, spread: float, scale: float) -> BaseFunction:
    if random.random() < 0.5:
        factors = random.normal(size=random.integers(1, 5)).tolist()

        def shape(x: Tensor) -> Tensor:
            return sum((c * (2 * x - 1) ** k for k, c in enumerate(factors, 1)), start=0 * x)
    else:
        waves = random.normal(size=(random.integers(1, 4), 2)).tolist()

        def shape(x: Tensor) -> Tensor:
            terms = (
                c * torch.cos(math.pi * k * x) + s * torch.sin(math.pi * k * x)
                for k, (c, s) in enumerate(waves, 1)
            )
            return sum(terms, start=0 * x)

    values = shape(torch.linspace(0, 1, GRID, dtype=torch.float64))
    steepness = spread / float(values.max() - values.min())
    return from_derivative(lambda x: -scale * torch.exp(steepness * shape(x)))


def draw_confusion(random: Generator, classes: int) -> tuple[str, Tensor]:
    """N: where the wrong labels go, a (K, K) matrix with zeros on its diagonal."""
    kind = str(random.choice(["symmetric", "pair", "block", "random"]))
    confusion = torch.zeros(classes, classes, dtype=torch.float64)
    if kind == "symmetric":
        confusion += 1 / (classes - 1)
    elif kind == "pair":
        confusion = torch.eye(classes, dtype=torch.float64).roll(1, 1)
    elif kind == "block":
        first = 0
        while first < classes:
            size = int(random.integers(2, max(3, classes // 2 + 1)))
            last = classes if classes - first - size < 2 else first + size
            confusion[first:last, first:last] = 1 / (last - first - 1)
            first = last
    else:
        concentration = math.exp(random.uniform(math.log(0.1), math.log(10)))
        shares = random.dirichlet([concentration] * (classes - 1), size=classes)
        away = ~torch.eye(classes, dtype=torch.bool)
        confusion[away] = torch.from_numpy(shares).flatten()
    confusion.fill_diagonal_(0)
    return kind, confusion


def frontier(
    separated: BaseFunction | None, a: float, reduced: BaseFunction | None, classes: int, m: float
) -> float:
    """The rate up to which (1 - eta) I + eta N keeps both parts monotone; m the peak of N.

    Target separation, with c_j = (1 + a) w_j - a, wants c_t phi(x) >= c_s phi(y) wherever
    x + y <= 1 (x + y = 1 for two classes), so k = max phi(y) / phi(x) may be c_t / c_s where
    c_s > 0, and c_s / c_t where c_t < 0. Binary reduction wants f(1 - p) / f(p) <= w_t / w_s.
    """
    rates = []
    if separated is not None:
        k = mirror_ratio(separated) if classes == 2 else transfer_ratio(separated)
        rates.append(
            (1 + k * a) / ((1 + a) * (1 + k * m)) if a <= m else (a + k) / ((1 + a) * (k + m))
        )
    if reduced is not None:
        rates.append(1 / (1 + mirror_ratio(reduced) * m))
    return min(rates)


def transfer_ratio(base: BaseFunction) -> float:
    """The largest phi(y) / phi(x) with x + y <= 1, on a grid."""
    density = base.phi(torch.linspace(0, 1, GRID, dtype=torch.float64))
    return float((density.cummax(0).values.flip(0) / density).max())


def mirror_ratio(base: BaseFunction) -> float:
    """The largest phi(1 - x) / phi(x), on a grid."""
    density = base.phi(torch.linspace(0, 1, GRID, dtype=torch.float64))
    return float((density.flip(0) / density).max())


def highest_rate(confusion: Tensor) -> float:
    """Just below the rate at which another class is as likely as the true one."""
    return (1 - 1e-4) / (1 + float(confusion.max()))


def row_at(eta: float, confusion: Tensor) -> Tensor:
    """The weights at a rate, of class 0."""
    row = eta * confusion
    row[0] += 1 - eta
    return row

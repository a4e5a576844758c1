"""The base functions of published losses, in closed form."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import check_number
from .function import BaseFunction
from .point import Point


@dataclass(frozen=True)
class Log(BaseFunction):
    """Cross entropy: h(x) = -log x."""

    bounded = False

    def density(self, p: Tensor) -> Tensor:
        return 1 / p

    def slope(self, at: Point) -> Tensor:
        return torch.ones_like(at.log_p)

    def value(self, at: Point) -> Tensor:
        return -at.log_p

    def cumulative(self, at: Point) -> Tensor:
        # a copy: autograd takes a function that returns its argument for the identity
        return at.log_p.clone()


@dataclass(frozen=True)
class Linear(BaseFunction):
    """Mean absolute error: h(x) = scale (1 - x)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, "positive", lambda v: v > 0)

    def density(self, p: Tensor) -> Tensor:
        return torch.full_like(p, self.scale)

    def value(self, at: Point) -> Tensor:
        return self.scale * at.q

    def cumulative(self, at: Point) -> Tensor:
        return self.scale * at.p


@dataclass(frozen=True)
class Power(BaseFunction):
    """Generalised cross entropy: h(x) = (1 - x^q) / q, q > 0."""

    q: float

    def __post_init__(self) -> None:
        check_number("q", self.q, "positive", lambda v: v > 0)

    def density(self, p: Tensor) -> Tensor:
        return p ** (self.q - 1)

    def slope(self, at: Point) -> Tensor:
        return torch.exp(self.q * at.log_p)

    def value(self, at: Point) -> Tensor:
        return -torch.expm1(self.q * at.log_p) / self.q

    def cumulative(self, at: Point) -> Tensor:
        return torch.exp(self.q * at.log_p) / self.q


@dataclass(frozen=True)
class ShiftedPower(BaseFunction):
    """Asymmetric generalised cross entropy: h(x) = ((a + 1)^q - (a + x)^q) / q, a, q > 0."""

    a: float
    q: float

    def __post_init__(self) -> None:
        check_number("a", self.a, "positive", lambda v: v > 0)
        check_number("q", self.q, "positive", lambda v: v > 0)

    def density(self, p: Tensor) -> Tensor:
        return (self.a + p) ** (self.q - 1)

    def value(self, at: Point) -> Tensor:
        # a + x = (a + 1) (1 - y / (a + 1)), y = 1 - x
        return -_power_change(self.a + 1, -at.q, self.q)

    def cumulative(self, at: Point) -> Tensor:
        return _power_change(self.a, at.p, self.q)


@dataclass(frozen=True)
class MirroredPower(BaseFunction):
    """Asymmetric unhinged loss: h(x) = ((a - x)^q - (a - 1)^q) / q, a > 1, q > 0."""

    a: float
    q: float

    def __post_init__(self) -> None:
        check_number("a", self.a, "larger than 1", lambda v: v > 1)
        check_number("q", self.q, "positive", lambda v: v > 0)

    def density(self, p: Tensor) -> Tensor:
        return (self.a - p) ** (self.q - 1)

    def value(self, at: Point) -> Tensor:
        return _power_change(self.a - 1, at.q, self.q)

    def cumulative(self, at: Point) -> Tensor:
        return -_power_change(self.a, -at.p, self.q)


@dataclass(frozen=True)
class ExponentialDecay(BaseFunction):
    """Asymmetric exponential loss less its minimum: h(x) = exp(-x / a) - exp(-1 / a), a > 0."""

    a: float

    def __post_init__(self) -> None:
        check_number("a", self.a, "positive", lambda v: v > 0)

    def density(self, p: Tensor) -> Tensor:
        return torch.exp(-p / self.a) / self.a

    def value(self, at: Point) -> Tensor:
        # exp(-1/a) expm1(y/a), y = 1 - x, written so that no factor overflows for small a
        q = at.q
        return -torch.exp((q - 1) / self.a) * torch.expm1(-q / self.a)

    def cumulative(self, at: Point) -> Tensor:
        return -torch.expm1(-at.p / self.a)


@dataclass(frozen=True)
class Taylor(BaseFunction):
    """The first t terms of -log x around 1: h(x) = sum over j = 1..t of (1 - x)^j / j."""

    t: int

    def __post_init__(self) -> None:
        check_number("t", self.t, "a whole number, 1 or more", lambda v: v >= 1 and v == int(v))

    def density(self, p: Tensor) -> Tensor:
        return sum(((1 - p) ** j for j in range(1, int(self.t))), start=torch.ones_like(p))

    def value(self, at: Point) -> Tensor:
        q = at.q
        return sum((q**j / j for j in range(2, int(self.t) + 1)), start=q)

    def cumulative(self, at: Point) -> Tensor:
        # 1 - (1 - x)^j = -expm1(j log1p(-x))
        log_q = torch.log1p(-at.p)
        terms = (-torch.expm1(j * log_q) / j for j in range(2, int(self.t) + 1))
        return sum(terms, start=at.p)


@dataclass(frozen=True)
class Focal(BaseFunction):
    """Focal loss: h(x) = -(1 - x)^gamma log x, gamma >= 0."""

    gamma: float
    bounded = False

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, "0 or more", lambda v: v >= 0)

    def density(self, p: Tensor) -> Tensor:
        return self.slope(Point(torch.log(p), p)) / p

    def slope(self, at: Point) -> Tensor:
        # (1-p)^g - g p (1-p)^(g-1) log p, with log p / (1-p) -> -1 taken out: finite at p = 1
        p, q = at.p, at.q
        certain = q == 0
        ratio = torch.where(certain, -1.0, at.log_p / torch.where(certain, 1.0, q))
        # 0 * log 0 = 0 where p underflows
        product = torch.where(p == 0, 0.0, p * ratio)
        return q**self.gamma * (1 - self.gamma * product)

    def value(self, at: Point) -> Tensor:
        return -(at.q**self.gamma) * at.log_p

    def cumulative(self, at: Point) -> Tensor:
        return -self.value(at)


@dataclass(frozen=True)
class HuberLog(BaseFunction):
    """Partially Huberised cross entropy: -log x above 1 / tau, its tangent below, tau >= 1."""

    tau: float

    def __post_init__(self) -> None:
        check_number("tau", self.tau, "1 or more", lambda v: v >= 1)

    def density(self, p: Tensor) -> Tensor:
        return 1 / torch.where(p * self.tau > 1, p, 1 / self.tau)

    def value(self, at: Point) -> Tensor:
        p = at.p
        return torch.where(p * self.tau > 1, -at.log_p, self._top - self.tau * p)

    def cumulative(self, at: Point) -> Tensor:
        p = at.p
        return torch.where(p * self.tau > 1, self._top + at.log_p, self.tau * p)

    @property
    def _top(self) -> float:
        return math.log(self.tau) + 1


def _power_change(origin: float, step: Tensor, q: float) -> Tensor:
    """((origin + step)^q - origin^q) / q without cancellation for small steps."""
    scale: float = origin**q / q
    return scale * torch.expm1(q * torch.log1p(step / origin))

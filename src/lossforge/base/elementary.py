"""The base functions of published losses, in closed form."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import check_number
from ..kernels import Formula
from ..numerics import Positive
from .function import BaseFunction
from .point import Point

_MOST_TERMS = 10_000
"""Of a Taylor series: each is a pass over the batch, and so many equal -log x for x > 0.003."""


@dataclass(frozen=True)
class Log(BaseFunction):
    """Cross entropy: h(x) = -log x."""

    bounded = False

    def formula(self) -> Formula:
        return Formula("log")

    def density(self, p: Tensor) -> Tensor:
        return 1 / p

    def turning_points(self) -> tuple[float, ...]:
        return ()  # 1 / x falls

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
        self.try_out()

    def formula(self) -> Formula:
        constant = Positive((self.scale,), (self.scale,))
        return Formula("polynomial", series=(constant,) * 3)

    def density(self, p: Tensor) -> Tensor:
        return torch.full_like(p, self.scale)

    @property
    def symmetric(self) -> bool:
        return True

    def turning_points(self) -> tuple[float, ...]:
        return ()  # constant

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
        self.try_out()

    def formula(self) -> Formula:
        return Formula("power", self.q)

    def density(self, p: Tensor) -> Tensor:
        return p ** (self.q - 1)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # a power of x

    def slope(self, at: Point) -> Tensor:
        # a small q keeps alive what has underflowed in p itself
        return torch.exp(self.q * at.log_p) if self.q < 1 else at.p**self.q

    def value(self, at: Point) -> Tensor:
        return -torch.expm1(self.q * at.log_p) / self.q

    def cumulative(self, at: Point) -> Tensor:
        return self.slope(at) / self.q


@dataclass(frozen=True)
class ShiftedPower(BaseFunction):
    """Asymmetric generalised cross entropy: h(x) = ((a + 1)^q - (a + x)^q) / q, a, q > 0."""

    a: float
    q: float

    def __post_init__(self) -> None:
        check_number("a", self.a, "positive", lambda v: v > 0)
        check_number("q", self.q, "positive", lambda v: v > 0)
        self.try_out()

    def formula(self) -> Formula:
        return Formula("shifted_power", self.a, self.q)

    def density(self, p: Tensor) -> Tensor:
        return (self.a + p) ** (self.q - 1)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # a power of a + x

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
        self.try_out()

    def formula(self) -> Formula:
        return Formula("mirrored_power", self.a, self.q)

    def density(self, p: Tensor) -> Tensor:
        return (self.a - p) ** (self.q - 1)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # a power of a - x > 0

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
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        return torch.exp(-p / self.a) / self.a

    def turning_points(self) -> tuple[float, ...]:
        return ()  # falls

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
        rule = f"a whole number from 1 to {_MOST_TERMS}"
        check_number("t", self.t, rule, lambda v: 1 <= v <= _MOST_TERMS and v == int(v))
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        return sum(((1 - p) ** j for j in range(1, int(self.t))), start=torch.ones_like(p))

    def turning_points(self) -> tuple[float, ...]:
        return ()  # a sum of powers of 1 - x, which fall

    def value(self, at: Point) -> Tensor:
        q = at.q
        return sum((q**j / j for j in range(2, int(self.t) + 1)), start=q)

    def cumulative(self, at: Point) -> Tensor:
        # 1 - (1 - x)^j = -expm1(j log1p(-x))
        log_q = torch.log1p(-at.p)
        terms = (-torch.expm1(j * log_q) / j for j in range(2, int(self.t) + 1))
        return sum(terms, start=at.p)


def _power_change(origin: float, step: Tensor, q: float) -> Tensor:
    """((origin + step)^q - origin^q) / q without cancellation for small steps."""
    scale: float = origin**q / q
    return scale * torch.expm1(q * torch.log1p(step / origin))

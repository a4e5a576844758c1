"""Base functions that modify the logarithm or a power: focal, Huberised, truncated, averaged."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ..errors import check_number
from ..kernels import Formula
from .function import BaseFunction, formula_of
from .point import Point


@dataclass(frozen=True)
class Focal(BaseFunction):
    """Focal loss: h(x) = -(1 - x)^gamma log x, gamma >= 0.

    Args:
        gamma: Exponent of the focal factor.
        stop_gradient: Treat the factor as a constant in the gradient, as released code does: the
            slope is then (1 - x)^gamma, and no longer the derivative of the value.
    """

    gamma: float
    stop_gradient: bool = False
    bounded = False

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, "0 or more", lambda v: v >= 0)
        if not isinstance(self.stop_gradient, bool):
            raise TypeError(f"stop_gradient must be True or False, got {self.stop_gradient!r}")
        self.try_out()

    def formula(self) -> Formula:
        return Formula("focal", self.gamma, float(self.stop_gradient))

    def density(self, p: Tensor) -> Tensor:
        return self.slope(Point(torch.log(p), p)) / p

    def turning_points(self) -> tuple[float, ...] | None:
        # (1-x)^g (1/x + g (-log x)/(1-x)): the last quotient is the sum of (1-x)^(k-1) / k over
        # k = 1, 2, ..., so that both factors fall. Without its factor the slope is no derivative.
        return None if self.stop_gradient else ()

    def slope(self, at: Point) -> Tensor:
        p, q = at.p, at.q
        if self.stop_gradient:
            return q**self.gamma
        # (1-p)^g - g p (1-p)^(g-1) log p, with log p / (1-p) -> -1 taken out: finite at p = 1
        certain = q == 0
        # the inner selections keep 0 * inf out of second derivatives
        log_p = torch.where(p == 0, 0.0, at.log_p)
        ratio = torch.where(certain, -1.0, log_p / torch.where(certain, 1.0, q))
        return q**self.gamma * (1 - self.gamma * p * ratio)

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
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        return 1 / torch.where(p * self.tau > 1, p, 1 / self.tau)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # the smaller of tau and 1 / x

    def value(self, at: Point) -> Tensor:
        p = at.p
        return torch.where(p * self.tau > 1, -at.log_p, self._top - self.tau * p)

    def cumulative(self, at: Point) -> Tensor:
        p = at.p
        return torch.where(p * self.tau > 1, self._top + at.log_p, self.tau * p)

    @property
    def _top(self) -> float:
        return math.log(self.tau) + 1


@dataclass(frozen=True)
class HuberPower(BaseFunction):
    """Partially Huberised (1 - x^q) / q, 0 < q < 1: its tangent where it is steeper than tau."""

    q: float
    tau: float

    def __post_init__(self) -> None:
        check_number("q", self.q, "in (0, 1)", lambda v: 0 < v < 1)
        check_number("tau", self.tau, "1 or more", lambda v: v >= 1)
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        knee = max(self._knee, torch.finfo(p.dtype).tiny)  # 0 would make it infinite
        return torch.where(p > knee, p, knee) ** (self.q - 1)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # falls above the knee

    def value(self, at: Point) -> Tensor:
        p = at.p
        power = -torch.expm1(self.q * at.log_p) / self.q
        return torch.where(p > self._knee, power, self._top - self.tau * p)

    def cumulative(self, at: Point) -> Tensor:
        p = at.p
        power = self._top - 1 / self.q + torch.exp(self.q * at.log_p) / self.q
        return torch.where(p > self._knee, power, self.tau * p)

    @property
    def _knee(self) -> float:
        return float(self.tau ** (1 / (self.q - 1)))

    @property
    def _top(self) -> float:
        knee = self._knee
        return float((1 - knee**self.q) / self.q + self.tau * knee)


@dataclass(frozen=True)
class Truncated(BaseFunction):
    """Another base function, constant below a probability: h(max(x, eps)).

    Args:
        base: The function to truncate.
        eps: The probability below which value and gradient stop, in (0, 1).
    """

    base: BaseFunction
    eps: float

    def __post_init__(self) -> None:
        check_number("eps", self.eps, "in (0, 1)", lambda v: 0 < v < 1)
        top = self.base.value(Point(torch.tensor(math.log(self.eps), dtype=torch.float64)))
        object.__setattr__(self, "_top", float(top))
        self.try_out()

    def formula(self) -> Formula | None:
        whole = formula_of(self.base)
        return whole and replace(whole, floor=math.log(self.eps), top=self._top)

    def density(self, p: Tensor) -> Tensor:
        return torch.where(p > self.eps, self.base.density(p), 0.0)

    def turning_points(self) -> tuple[float, ...] | None:
        points = self.base.turning_points()
        if points is None:
            return None
        # 0 up to eps, a jump, and from the next float on what is truncated
        above = math.nextafter(self.eps, 1.0)
        return (self.eps, above, *(point for point in points if point > above))

    def slope(self, at: Point) -> Tensor:
        return torch.where(self._below(at), 0.0, self.base.slope(at))

    def value(self, at: Point) -> Tensor:
        return torch.where(self._below(at), self._top, self.base.value(at))

    def cumulative(self, at: Point) -> Tensor:
        return self._top - self.value(at)

    def _below(self, at: Point) -> Tensor:
        return at.log_p <= math.log(self.eps)  # not so for NaN, which stays NaN

    _top: ClassVar[float]  # set for each instance by __post_init__; not a field


@dataclass(frozen=True)
class ShiftedLog(BaseFunction):
    """A logarithm kept off its pole: h(x) = log((a + 1) / (a + x)), a > 0."""

    a: float

    def __post_init__(self) -> None:
        check_number("a", self.a, "positive", lambda v: v > 0)
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        return 1 / (self.a + p)

    def turning_points(self) -> tuple[float, ...]:
        return ()  # falls

    def value(self, at: Point) -> Tensor:
        return -torch.log1p(-at.q / (self.a + 1))

    def cumulative(self, at: Point) -> Tensor:
        return torch.log1p(at.p / self.a)


@dataclass(frozen=True)
class JensenShannon(BaseFunction):
    r"""The weighted Jensen-Shannon divergence between the label and the prediction.

    With weights :math:`\pi_0` of the label and :math:`\pi_1 = 1 - \pi_0` of the prediction it
    depends on the label's probability x alone: with :math:`m = \pi_0 + \pi_1 x`,

    .. math:: h(x) = -m \log m + \pi_1 x \log x - \pi_1 (1 - x) \log \pi_1, \qquad
        h'(x) = \pi_1 \log(\pi_1 x / m).

    Args:
        pi0: Weight of the label, in (0, 1).
    """

    pi0: float

    def __post_init__(self) -> None:
        check_number("pi0", self.pi0, "in (0, 1)", lambda v: 0 < v < 1)
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        pi1 = 1 - self.pi0
        return pi1 * torch.log1p(self.pi0 / (pi1 * p))

    def turning_points(self) -> tuple[float, ...]:
        return ()  # log(1 + c / x) falls

    def slope(self, at: Point) -> Tensor:
        pi1, p = 1 - self.pi0, at.p
        logs = torch.log(self.pi0 + pi1 * p) - math.log(pi1) - at.log_p
        # x log x = 0 at 0
        return pi1 * torch.where(p == 0, 0.0, p * torch.where(p == 0, 0.0, logs))

    def value(self, at: Point) -> Tensor:
        pi1, p, q = 1 - self.pi0, at.p, at.q
        log_m = torch.log1p(-pi1 * q)
        x_log_x = torch.where(p == 0, 0.0, p * at.log_p)
        return pi1 * x_log_x - (1 - pi1 * q) * log_m - (pi1 * math.log(pi1)) * q

    def cumulative(self, at: Point) -> Tensor:
        pi1 = 1 - self.pi0
        return -self.pi0 * math.log(self.pi0) - pi1 * math.log(pi1) - self.value(at)

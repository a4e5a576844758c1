"""The paper's two derivative functions, f1 and f2."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ApproximationError, check_number
from ..kernels import Formula
from ..numerics import Positive
from .function import BaseFunction, Smooth
from .point import Point


@dataclass(frozen=True)
class Exponential(Smooth):
    r"""f1: :math:`h'(x) = \alpha \exp(\beta (x - \gamma)^2)`.

    Args:
        alpha: Scale, negative.
        beta: Curvature; negative peaks at gamma, positive dips there, 0 is a straight line.
        gamma: Centre, in [0, 1].
    """

    alpha: float = -1.0
    beta: float = -1.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, "negative", lambda v: v < 0)
        check_number("beta", self.beta)
        check_number("gamma", self.gamma, "in [0, 1]", lambda v: 0 <= v <= 1)
        try:
            super().__post_init__()
        except ApproximationError:
            raise ValueError(
                f"beta must be nearer to 0 for the integral to be resolved, got {self.beta}"
            ) from None

    def density(self, p: Tensor) -> Tensor:
        distance = p - self.gamma
        return -self.alpha * torch.exp(self.beta * (distance * distance))

    @property
    def symmetric(self) -> bool:
        # a function of (x - gamma)^2, or constant
        return self.gamma == 0.5 or self.beta == 0

    def turning_points(self) -> tuple[float, ...]:
        # a monotone function of (x - gamma)^2
        return (self.gamma,) if 0 < self.gamma < 1 else ()


@dataclass(frozen=True)
class Quadratic(BaseFunction):
    r"""f2: :math:`h'(x) = \alpha (x - \gamma)^2 + \beta`.

    Closed form: :math:`H(x) = x A(x)` with :math:`A(x) = -\beta - \alpha (x^2/3 - \gamma x +
    \gamma^2)`, and :math:`h(x) = y \bar A(y)` with y = 1 - x and gamma mirrored to 1 - gamma.

    Args:
        alpha: Curvature; alpha max(gamma, 1 - gamma)^2 + beta must be negative.
        beta: The derivative at gamma, negative.
        gamma: Centre, in [0, 1].
    """

    alpha: float = 1.0
    beta: float = -1.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha)
        check_number("beta", self.beta, "negative", lambda v: v < 0)
        check_number("gamma", self.gamma, "in [0, 1]", lambda v: 0 <= v <= 1)
        reach = max(self.gamma, 1 - self.gamma) ** 2
        rule = f"below {-self.beta / reach:g}, so that alpha * max(gamma, 1 - gamma)**2 + beta < 0"
        check_number("alpha", self.alpha, rule, lambda v: v * reach + self.beta < 0)
        self.try_out()

    def density(self, p: Tensor) -> Tensor:
        distance = p - self.gamma
        return -self.beta - self.alpha * (distance * distance)

    @property
    def symmetric(self) -> bool:
        # a function of (x - gamma)^2, or constant
        return self.gamma == 0.5 or self.alpha == 0

    def turning_points(self) -> tuple[float, ...]:
        # a monotone function of (x - gamma)^2
        return (self.gamma,) if 0 < self.gamma < 1 else ()

    def formula(self) -> Formula:
        alpha, gamma = self.alpha, self.gamma
        at_zero, at_one = (-self.beta - alpha * g**2 for g in (gamma, 1 - gamma))
        density = _in_powers(at_zero, 2 * alpha * gamma, -alpha)
        up = _in_powers(at_zero, alpha * gamma, -alpha / 3)
        down = _in_powers(at_one, alpha * (1 - gamma), -alpha / 3)
        return Formula("polynomial", series=(density, up, down))

    def value(self, at: Point) -> Tensor:
        return self._from_zero(at.q, 1 - self.gamma)

    def cumulative(self, at: Point) -> Tensor:
        return self._from_zero(at.p, self.gamma)

    def _from_zero(self, x: Tensor, gamma: float) -> Tensor:
        third = self.alpha / 3
        constant = -self.beta - self.alpha * gamma**2
        return x * (constant + x * (self.alpha * gamma - third * x))


def _in_powers(constant: float, linear: float, square: float) -> Positive:
    """A polynomial of x in powers of s = 2x - 1."""
    powers = (constant + linear / 2 + square / 4, linear / 2 + square / 2, square / 4)
    return Positive(powers, powers)

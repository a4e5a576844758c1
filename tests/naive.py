"""Naive float64 formulas, written from the paper; nothing here imports the package.

A base function is given by its density phi = -h' >= 0 as ``phi(x, m)``, where ``m`` is the module
of elementary functions (torch, or mpmath for the quadrature oracle). h is the integral of phi from
x to 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
NODES = torch.tensor((_NODES + 1) / 2, dtype=torch.float64)
WEIGHTS = torch.tensor(_WEIGHTS / 2, dtype=torch.float64)


def quadrature(f: Callable[[Tensor], Tensor], low: Tensor, width: Tensor) -> Tensor:
    """Gauss-Legendre integral of f over [low, low + width], differentiable in both."""
    points = low.unsqueeze(-1) + width.unsqueeze(-1) * NODES
    return width * (f(points) * WEIGHTS).sum(-1)


@dataclass(frozen=True)
class Base:
    """A univariate base function: density, value, and h(sigmoid(d)) for large |d|."""

    phi: Callable[..., Any]
    closed: Callable[[Tensor], Tensor] | None = None
    margin_form: Callable[[Tensor], Tensor] | None = None
    bounded: bool = True

    def h(self, x: Tensor) -> Tensor:
        x = torch.as_tensor(x, dtype=torch.float64)
        if self.closed is not None:
            return self.closed(x)
        return quadrature(lambda s: self.phi(s, torch), x, 1 - x)

    def margin(self, d: Tensor) -> Tensor:
        """h(sigmoid(d)), accurate where sigmoid(d) rounds to 0 or 1."""
        if self.margin_form is not None:
            return self.margin_form(d)
        q = torch.sigmoid(-d)
        return quadrature(lambda s: self.phi(1 - s, torch), torch.zeros_like(q), q)


def exponential(alpha: float, beta: float, gamma: float) -> Base:
    return Base(lambda x, m: -alpha * m.exp(beta * (x - gamma) ** 2))


def quadratic(alpha: float, beta: float, gamma: float) -> Base:
    def antiderivative(x):
        return alpha * (x - gamma) ** 3 / 3 + beta * x

    one = torch.tensor(1.0, dtype=torch.float64)
    return Base(
        lambda x, m: -(alpha * (x - gamma) ** 2 + beta),
        lambda x: antiderivative(x) - antiderivative(one),
        lambda d: quadrature(
            lambda s: -(alpha * (1 - s - gamma) ** 2 + beta),
            torch.zeros_like(d),
            torch.sigmoid(-d),
        ),
    )


def log() -> Base:
    return Base(
        lambda x, m: 1 / x,
        lambda x: -torch.log(x),
        lambda d: torch.logaddexp(-d, torch.zeros_like(d)),
        bounded=False,
    )


def linear(scale: float = 1.0) -> Base:
    return Base(
        lambda x, m: scale + 0 * x,
        lambda x: scale * (1 - x),
        lambda d: scale * torch.sigmoid(-d),
    )


def power(q: float) -> Base:
    return Base(
        lambda x, m: x ** (q - 1),
        lambda x: (1 - x**q) / q,
        lambda d: -torch.expm1(-q * torch.logaddexp(-d, torch.zeros_like(d))) / q,
    )


def shifted_power(a: float, q: float) -> Base:
    return Base(lambda x, m: (a + x) ** (q - 1), lambda x: ((a + 1) ** q - (a + x) ** q) / q)


def mirrored_power(a: float, q: float) -> Base:
    return Base(lambda x, m: (a - x) ** (q - 1), lambda x: ((a - x) ** q - (a - 1) ** q) / q)


def exponential_decay(a: float) -> Base:
    return Base(lambda x, m: m.exp(-x / a) / a, lambda x: torch.exp(-x / a) - math.exp(-1 / a))


def taylor(t: int) -> Base:
    return Base(
        lambda x, m: sum((1 - x) ** j for j in range(t)),
        lambda x: sum((1 - x) ** j / j for j in range(1, t + 1)),
    )


def focal(gamma: float) -> Base:
    def phi(x, m):
        if m is not torch and x == 1:
            return 0  # a quadrature node that rounds to the end point
        return (1 - x) ** gamma / x - gamma * (1 - x) ** (gamma - 1) * m.log(x)

    return Base(
        phi,
        lambda x: -((1 - x) ** gamma) * torch.log(x),
        lambda d: torch.sigmoid(-d) ** gamma * torch.logaddexp(-d, torch.zeros_like(d)),
        bounded=False,
    )


def huber_log(tau: float) -> Base:
    def phi(x, m):
        return torch.minimum(1 / x, torch.full_like(x, tau)) if m is torch else min(tau, 1 / x)

    def value(x):
        return torch.where(x > 1 / tau, -torch.log(x), math.log(tau) + 1 - tau * x)

    return Base(phi, value, lambda d: value(torch.sigmoid(d)))


def softmax(z: Tensor) -> Tensor:
    e = [torch.exp(z_i - z.max()) for z_i in z]
    return torch.stack([e_i / sum(e) for e_i in e])


def target_separation(base: Base, u: Tensor, t: int, a: float, nontarget: Base | None = None):
    """Definition 4.1, plus the constant that makes it 0 at the correct one-hot if bounded."""
    nontarget = nontarget or base
    value = base.h(u[t])
    for i in range(len(u)):
        if i != t:
            value = value - a * nontarget.h(u[i])
            if nontarget.bounded:
                value = value + a * nontarget.h(torch.zeros_like(u[i]))
    return value


def binary_reduction(base: Base, u: Tensor, t: int, xi: float | Tensor | None = None) -> Tensor:
    """Definition 4.2 on probabilities; xi is the value of a pair of zeros."""
    xi = base.h(torch.tensor(0.5)) if xi is None else xi
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(u)):
        if i != t:
            pair = u[t] + u[i]
            total = total + (xi if pair == 0 else base.h(u[t] / pair))
    return total / (len(u) - 1)


def binary_reduction_of_logits(base: Base, z: Tensor, t: int) -> Tensor:
    """The same from logit differences, usable at any scale."""
    others = [base.margin(z[t] - z[i]) for i in range(len(z)) if i != t]
    return torch.stack(others).mean()


def target_separation_gradient(
    base: Base, u: Tensor, t: int, a: float, nontarget: Base | None = None
) -> Tensor:
    """theory, section 5, with a second base for the other classes."""
    nontarget = nontarget or base
    others = [i for i in range(len(u)) if i != t]
    v = sum(u[i] for i in others)
    A = sum(u[i] * nontarget.phi(u[i], torch) for i in others)
    pull = u[t] * base.phi(u[t], torch)
    g = torch.zeros_like(u)
    g[t] = -pull * v - a * u[t] * A
    for k in others:
        g[k] = u[k] * (a * nontarget.phi(u[k], torch) + pull - a * A)
    return g


def binary_reduction_gradient(base: Base, z: Tensor, t: int) -> Tensor:
    g = torch.zeros_like(z)
    for i in range(len(z)):
        if i != t:
            e = torch.exp(-torch.abs(z[t] - z[i]))
            p = 1 / (1 + e) if z[t] >= z[i] else e / (1 + e)
            g[i] = base.phi(p, torch) * e / (1 + e) ** 2 / (len(z) - 1)
    g[t] = -g.sum()
    return g


def expected(loss: Callable[[Tensor, int], Tensor], z: Tensor, q: Tensor) -> Tensor:
    """The loss under a probability target."""
    return sum(q[c] * loss(z, c) for c in range(len(z)))


def bounded_cosine(z: Tensor, t: int, rivals: float = math.inf) -> Tensor:
    k = len(z)
    centred = z - sum(z) / k
    n = (sum(x**2 for x in centred) + 1) ** 0.5
    return max(1, (k - 1) / rivals) ** 0.5 * (1 - (k / (k - 1)) ** 0.5 * centred[t] / n)


def bounded_cosine_gradient(z: Tensor, t: int, rivals: float = math.inf) -> Tensor:
    k = len(z)
    centred = z - sum(z) / k
    n = (sum(x**2 for x in centred) + 1) ** 0.5
    own = torch.zeros_like(z)
    own[t] = 1
    c = max(1, (k - 1) / rivals) ** 0.5 * (k / (k - 1)) ** 0.5
    return -c / n * (own - 1 / k - centred[t] * centred / n**2)

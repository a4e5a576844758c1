"""Weighted losses as their definitions write them: values, slopes, and limits at the target.

A loss is a list of terms. W(u) = sum_i w_i L(u, i) for weights w of sum one; the first class is the
target, the one of the largest weight. All functions take logits (..., K), in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import BaseFunction
from lossforge.constructions import ByRivals
from lossforge.loss import Loss, WeightedSum

STEPS = 60


@dataclass(frozen=True)
class Term:
    """A term of a loss: ``factor * TS(base, a)``, or ``factor * BR(base)`` where a is None."""

    factor: float
    base: BaseFunction
    a: float | None


def terms_of(loss: Loss, classes: int) -> list[Term]:
    """A loss by the definitions of its members."""
    if isinstance(loss, WeightedSum):
        inner = ((c, term) for c, member in loss.terms for term in terms_of(member, classes))
        return [Term(c * term.factor, term.base, term.a) for c, term in inner]
    if isinstance(loss, ByRivals) and classes - 1 <= loss.most:
        return terms_of(loss.few, classes)
    if isinstance(loss, BinaryReduction):
        return [Term(1.0, loss.base, None)]
    assert isinstance(loss, TargetSeparation)
    assert loss.nontarget == loss.base
    a = loss.tau / (classes - 1) if loss.tau is not None else loss.a
    return [Term(getattr(loss, "scale", 1.0), loss.base, a)]


def values(terms: list[Term], w: Tensor, log_u: Tensor) -> Tensor:
    """W at logits (..., K), by the sum over labels of w_i times the loss of label i."""
    classes = w.shape[-1]
    total = torch.zeros(log_u.shape[:-1])
    for term in terms:
        if term.a is None:
            gaps = log_u[..., :, None] - log_u[..., None, :]
            pairs = term.base.h(torch.sigmoid(gaps))
            pairs = torch.where(torch.eye(classes, dtype=torch.bool), 0.0, pairs)
            losses = pairs.sum(-1) / (classes - 1)
        else:
            h = term.base.h(torch.softmax(log_u, -1))
            losses = h - term.a * (h.sum(-1, keepdim=True) - h)
        total = total + term.factor * (w * losses).sum(-1)
    return total


def derivative(terms: list[Term], w: Tensor, log_u: Tensor) -> tuple[Tensor, Tensor]:
    """dW/dz_0, and the sum of the magnitudes of what it is made of.

    From u_j' = u_j ([j = 0] - u_0) and sigma' = p (1 - p). The first class is the target.
    """
    u = torch.softmax(log_u, -1)
    own, others = u[..., :1], u[..., 1:]
    classes = w.shape[-1]
    parts = []
    for term in terms:
        if term.a is None:
            gap = log_u[..., :1] - log_u[..., 1:]
            p, q = torch.sigmoid(gap), torch.sigmoid(-gap)
            scale = term.factor / (classes - 1)
            parts.append(-scale * w[..., :1] * p * q * term.base.phi(p))
            parts.append(scale * w[..., 1:] * p * q * term.base.phi(q))
        else:
            # W = sum_j h(u_j) (w_j - a (1 - w_j)) for weights of sum one
            c = w - term.a * (1 - w)
            rest = others.sum(-1, keepdim=True)
            parts.append(-term.factor * c[..., :1] * term.base.phi(own) * own * rest)
            parts.append(term.factor * c[..., 1:] * term.base.phi(others) * others * own)
    every = torch.cat([part.expand(*log_u.shape[:-1], -1) for part in parts], -1)
    return every.sum(-1), every.abs().sum(-1)


def rises(terms: list[Term], w: Tensor, log_u: Tensor) -> tuple[Tensor, Tensor]:
    """(..., K - 1): what W gains per unit of mass moved from each rival to class 0, and its size.

    The size is the sum of the magnitudes of what cancels in it.
    """
    u = torch.softmax(log_u, -1)
    slope = torch.zeros_like(u)
    size = torch.zeros_like(u)
    classes = w.shape[-1]
    for term in terms:
        if term.a is None:
            gaps = log_u[..., :, None] - log_u[..., None, :]
            p, q = torch.sigmoid(gaps), torch.sigmoid(-gaps)
            # p_ij' = q / s by u_i and -p / s by u_j, s = u_i + u_j
            s = u[..., :, None] + u[..., None, :]
            away = ~torch.eye(classes, dtype=torch.bool)
            wins = -w[..., :, None] * term.base.phi(p) * q / s * away
            losses = w[..., None, :] * term.base.phi(q) * q / s * away
            scale = term.factor / (classes - 1)
            slope = slope + scale * (wins + losses).sum(-1)
            size = size + scale * (losses - wins).sum(-1)
        else:
            part = -term.factor * (w - term.a * (1 - w)) * term.base.phi(u)
            slope, size = slope + part, size + part.abs()
    return slope[..., :1] - slope[..., 1:], size[..., :1] + size[..., 1:]


def value_at_target(terms: list[Term], w: Tensor) -> tuple[float, float]:
    """A lower and an upper bound of the limit of W at e_0, over how the rivals vanish.

    Of binary reduction the pairs of two rivals keep a value of their own there. The lower bound
    gives every pair its best, the upper one is the best common arrangement that was found.
    """
    classes = len(w)
    one_hot = torch.full((classes,), -np.inf)
    one_hot[0] = 0
    low = high = 0.0
    for term in terms:
        if term.a is not None:
            exact = float(values([term], w, one_hot))
            low, high = low + exact, high + exact
            continue
        scale = term.factor / (classes - 1)
        h0, h1 = float(term.base.h(0.0)), float(term.base.h(1.0))
        own = float((w[0] * h1 + w[1:] * h0).sum()) * scale
        low, high = low + own, high + own
    reduced = [term for term in terms if term.a is None]
    if not reduced or classes == 2:
        return low, high
    pairs = torch.combinations(w[1:])
    for term in reduced:
        best = lowest(lambda x, h=term.base.h: pairs[:, :1] * h(x) + pairs[:, 1:] * h(1 - x))
        low += term.factor / (classes - 1) * float(best.sum())
    rivals = w[1:]

    def among(z: Tensor) -> Tensor:
        # binary reduction of the rivals alone divides by one class less
        return values(reduced, rivals, z) * (classes - 2) / (classes - 1)

    ladder = -torch.arange(classes - 1.0)
    z = [g * ladder for g in (0, 0.1, 0.5, 2, 40)] + [g * -ladder for g in (0.1, 0.5, 2, 40)]
    starts = torch.stack(z + [s * torch.randn(classes - 1) for s in (1, 3, 10)])
    ends = climb(lambda z: -among(z), starts)
    return low, high + float(among(ends).min())


def lowest(curves: Callable[[Tensor], Tensor]) -> Tensor:
    """(P,) least values on [0, 1] of curves: of a grid, then of a finer one about its best point.

    A grid alone stops above the minimum by the square of its step, more than a search resolves.
    """
    x = torch.linspace(0, 1, 1001)
    values, places = curves(x).min(1)
    steps = torch.linspace(-1e-3, 1e-3, 1001)
    near = (x[places][:, None] + steps).clamp(0, 1)
    return torch.minimum(values, curves(near).amin(1))


def climb(objective: Callable[[Tensor], Tensor], z: Tensor, steps: int = STEPS) -> Tensor:
    """Logits after ascent on a function of them, by normalised steps of shrinking size."""
    z = z.clone().requires_grad_()
    optimizer = torch.optim.Adam([z], lr=0.5, maximize=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.5 * 0.93**step
        optimizer.zero_grad()
        height = objective(z).sum()
        if not height.requires_grad:
            break  # a constant, as of transfers under a flat density
        height.backward()
        optimizer.step()
    return z.detach()

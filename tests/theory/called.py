"""A search that calls the loss: logits at which a claim fails for what is computed.

It knows nothing of forms or base functions. W(z) is ``loss(z, w)``, with the weights w of the
labels as class probabilities, and its slopes are autograd's. With t the class of the largest weight

* "monotone" asks for dW/dz_t > 0,
* "transfers" for a rival s with dW/du_t - dW/du_s > 0, from dW/dz_k = u_k (dW/du_k - mean),
* "global" for W(z) below every limit of W at full confidence in t.

A pool of starts is evaluated, and the best of it improved by random steps ("global": by descent).
Whether a find is more than rounding is for `precise` to say.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from lossforge.loss import Loss, WeightedSum

_NUMBERS = 100_000  # the logits that one evaluation takes, over all labels
_FEWEST, _KEPT, _AROUND, _SCALES = 60, 8, 12, (1.0, 0.3, 0.1, 0.03, 0.005)
_STEPS, _LABELS = 25, 4
_FAR = -1e25  # a logit that stands for none
_SMALLEST = 1e-12  # a probability by which a slope is divided


@dataclass(frozen=True)
class Find:
    """Logits of the given classes, and how far the claim fails there, relative to the gradient."""

    logits: list[float]
    score: float
    rival: int | None = None


def search(loss: Loss, weights: Tensor, target: int, claim: str, seed: int) -> Find:
    """The logits at which a claim comes closest to failing, or fails most."""
    random = np.random.default_rng(seed)
    loss = loss.with_policy(reduction="none")
    order = torch.cat([torch.tensor([target]), _rivals(weights, target)])
    w = weights[order]
    pool = starts(len(w))
    most = max(_FEWEST, _NUMBERS // (len(w) * int((w > 0).sum())))
    pool = pool[int(random.integers(2)) :: -(-len(pool) // most)]
    if claim == "global":
        return _lowest(loss, w, order, pool)
    score, rival = scores(loss, w, pool, claim)
    for scale in _SCALES:
        best = pool[score.topk(min(_KEPT, len(pool))).indices]
        steps = random.normal(size=(max(4, min(_AROUND, most // _KEPT)), len(best), len(w)))
        # few classes at a time: the others stay on their face of the simplex
        steps *= scale * (random.random(steps.shape) < max(0.3, 2 / len(w)))
        pool = torch.cat([best, (best + torch.from_numpy(steps)).flatten(0, 1)])
        score, rival = scores(loss, w, pool, claim)
    place = int(score.argmax())
    other = None if rival is None else int(order[int(rival[place]) + 1])
    return Find(_back(pool[place], order), float(score[place]), other)


def scores(loss: Loss, w: Tensor, z: Tensor, claim: str) -> tuple[Tensor, Tensor | None]:
    """(B,) how far a claim fails, in [-1, 1], and the rival; the first class is the target."""
    g = slopes(loss, w, z)
    if claim == "monotone":
        return (g[:, 0] / g.abs().sum(1).clamp(min=1e-290)).nan_to_num(nan=-1.0), None
    u = torch.softmax(z, 1)
    by_mass = torch.where(u > _SMALLEST, g / u, torch.nan)
    rise = by_mass[:, :1] - by_mass[:, 1:]
    size = by_mass[:, :1].abs() + by_mass[:, 1:].abs()
    best = (rise / size.clamp(min=1e-290)).nan_to_num(nan=-1.0).max(1)
    return best.values, best.indices


def slopes(loss: Loss, w: Tensor, z: Tensor) -> Tensor:
    """(B, K) derivatives of W by the logits."""
    z = z.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(values(loss, w, z).sum(), z)
    return gradient


def values(loss: Loss, w: Tensor, z: Tensor) -> Tensor:
    """(B,) values of W, label by label where few of them occur."""
    labels = w.nonzero()[:, 0].tolist()
    if len(labels) > _LABELS:
        return loss(z, w.expand(len(z), -1))
    parts = [w[k] * loss(z, torch.full((len(z),), k)) for k in labels]
    return torch.stack(parts).sum(0)


@lru_cache(maxsize=64)
def starts(classes: int) -> Tensor:
    """(B, K) logits: class 0 is the target, the rivals follow by weight."""
    random = np.random.default_rng(classes)
    rows: list[np.ndarray] = []
    ends = [1e-12, 1e-8, 1e-5, 1e-3, 0.02]
    grid = [*ends, *np.linspace(0.08, 0.92, 12).tolist(), *(1 - e for e in reversed(ends))]
    for size in (1.0, 0.9, 0.6, 0.3, 0.1, 1e-3, 1e-7, 1e-14):
        for p in grid:
            for last in {classes - 1, 2} if classes > 2 else {0}:
                row = np.full(classes, 1e-20)
                if classes > 2:
                    row[last] = max(1 - size, 1e-20)
                row[0], row[1] = size * p, size * (1 - p)
                rows.append(row)
    for heavy in sorted({1, 2, 3, 5, classes // 2, classes - 1} & set(range(1, classes))):
        for p in grid:
            row = np.full(classes, 1e-20)
            row[0], row[1 : heavy + 1] = p, (1 - p) / heavy
            rows.append(row)
    for concentration in (0.05, 0.3, 1.0, 5.0):
        rows.extend(random.dirichlet([concentration] * classes, size=30) + 1e-20)
    return torch.from_numpy(np.log(np.stack(rows)))


def limit_at_target(loss: Loss, w: Tensor) -> float:
    """A lower bound of the limits of W at full confidence, over the ways the rivals vanish.

    A loss of the probabilities has one limit. Of binary reduction, which sees the rivals' logits,
    every pair of rivals gets the best that it could have alone. The first class is the target.
    """
    classes = len(w)
    far = torch.full((1, classes), _FAR, dtype=torch.float64)
    far[0, 0] = 0
    total = 0.0
    for factor, member in loss.terms if isinstance(loss, WeightedSum) else ((1.0, loss),):
        alone = member.with_policy(reduction="none")
        if hasattr(member, "xi") and classes > 2:
            total += factor * _pairs_at_target(alone, w)
        else:
            total += factor * float(values(alone, w, far))
    return total


def _pairs_at_target(loss: Loss, w: Tensor) -> float:
    """The same for a mean over pairs, whose losses are those of two classes."""
    share = (len(w) - 1) / min(len(w) - 1, getattr(loss, "rivals", None) or len(w))
    far = torch.tensor([[0.0, _FAR]], dtype=torch.float64)
    win, lose = (float(loss(far, torch.tensor([label]))) for label in (0, 1))
    gaps = torch.linspace(-40, 40, 8001, dtype=torch.float64)
    logits = torch.stack([gaps / 2, -gaps / 2], 1)
    ahead = loss(logits, torch.zeros(len(gaps), dtype=torch.long))
    total = float(w[0]) * win * (len(w) - 1) + float(w[1:].sum()) * lose
    i, j = torch.triu_indices(len(w) - 1, len(w) - 1, 1)
    rivals, number = torch.unique(torch.stack([w[1:][i], w[1:][j]], 1), dim=0, return_counts=True)
    lowest = (rivals[:, :1] * ahead + rivals[:, 1:] * ahead.flip(0)).amin(1)
    ends = torch.minimum(
        rivals[:, 0] * win + rivals[:, 1] * lose, rivals[:, 1] * win + rivals[:, 0] * lose
    )
    total += float((number * torch.minimum(lowest, ends)).sum())
    return share * total / (len(w) - 1)


def _lowest(loss: Loss, w: Tensor, order: Tensor, pool: Tensor) -> Find:
    """The lowest value found, against the limits at full confidence."""
    low = limit_at_target(loss, w)
    with torch.no_grad():
        found = values(loss, w, pool).nan_to_num(nan=math.inf)
    scale = float(found[found.isfinite()].abs().max())
    z = pool[found.topk(min(_KEPT, len(pool)), largest=False).indices].clone().requires_grad_()
    optimizer = torch.optim.Adam([z], lr=0.3)
    with torch.enable_grad():
        for _ in range(_STEPS):
            optimizer.zero_grad()
            values(loss, w, z).sum().backward()
            optimizer.step()
    pool = torch.cat([pool, z.detach()])
    with torch.no_grad():
        found = values(loss, w, pool).nan_to_num(nan=math.inf)
    place = int(found.argmin())
    return Find(_back(pool[place], order), (low - float(found[place])) / max(scale, 1e-300))


def _rivals(weights: Tensor, target: int) -> Tensor:
    order = weights.argsort(descending=True, stable=True)
    return order[order != target]


def _back(z: Tensor, order: Tensor) -> list[float]:
    logits = torch.empty_like(z)
    logits[order] = z
    return logits.tolist()

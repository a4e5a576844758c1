"""A search for predictions that contradict a claim, which knows nothing about how it was decided.

It sees a loss as its definition: terms of target separation and binary reduction, their base
functions and coefficients. Of a row w of weights, with t the largest, it asks for

* claim "monotone": logits with dW/dz_t > 0,
* claim "transfers": a prediction and a rival s such that mass moved from s to t raises W,
* claim "global": a prediction u with W(u) < W(e_t),

where W(u) = sum_i w_i L(u, i). It evaluates a pool of starts (edges, faces, points near vertices,
Dirichlet samples, mass spread over the k strongest rivals) and climbs from the best of them.
Rows are sorted first: class 0 is the target and the others follow by weight.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from definitions import Term, climb, derivative, rises, terms_of, value_at_target, values
from torch import Tensor

from lossforge.loss import Loss

RELATIVE = 1e-9  # a violation counts if it is larger than this share of what cancels in it
FLOOR = -80.0  # the smallest logarithm of a probability among the starts
DISTANCES = [10.0**-k for k in range(1, 10)]
CLIMBERS = 24


@dataclass(frozen=True)
class Found:
    """A contradiction: the row, its target, the prediction, and how large it is."""

    weights: list[float]
    target: int
    probs: list[float]
    value: float
    relative: float
    rival: int | None = None


@lru_cache(maxsize=128)
def starts(classes: int, seed: int = 0) -> Tensor:
    """(B, K) logarithms of predictions; class 0 is the target, 1, 2, ... the rivals by weight."""
    random = np.random.default_rng(seed)
    rows: list[np.ndarray] = []
    near = [d for distance in DISTANCES for d in (distance, 1 - distance)]
    shares = sorted({*near, *np.linspace(0.02, 0.98, 33).tolist()})

    def add(**mass: float) -> None:
        row = np.zeros(classes)
        for name, amount in mass.items():
            row[int(name[1:])] += amount
        rows.append(row)

    # the target against the k strongest rivals
    for k in sorted({1, 2, 3, 5, 10, 20, 50, classes - 1} & set(range(1, classes))):
        for x in shares:
            row = np.zeros(classes)
            row[0], row[1 : k + 1] = 1 - x, x / k
            rows.append(row)
    # the target, one rival and a third class, or all others, for the rest
    third = sorted({2, classes - 1} & set(range(2, classes)))
    corner = [1e-9, 1e-6, 1e-3, 0.03, *np.linspace(0.1, 0.9, 9).tolist(), 0.97, 0.999, 1 - 1e-9]
    for x in corner:
        for y in corner:
            if x + y > 1 + 1e-12:
                continue
            for last in third:
                add(_0=x, _1=y, **{f"_{last}": max(0.0, 1 - x - y)})
            row = np.full(classes, max(0.0, 1 - x - y) / max(1, classes - 2))
            row[0], row[1] = x, y
            rows.append(row)
    # the target against one rival, both small beside a third class or all others
    half = [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.2, 0.3, 0.4]
    for sigma in (0.1, 1e-3, 1e-6, 1e-9, 1e-14, 1e-20):
        for p in (*half, 0.5, *(1 - p for p in half)):
            for last in third:
                add(_0=sigma * p, _1=sigma * (1 - p), **{f"_{last}": 1 - sigma})
            if third:
                row = np.full(classes, (1 - sigma) / (classes - 2))
                row[0], row[1] = sigma * p, sigma * (1 - p)
                rows.append(row)
    # near the vertices of the target, the strongest rivals and the weakest
    for vertex in sorted({0, 1, 2, classes - 1} & set(range(classes))):
        for distance in DISTANCES:
            for concentration in (0.1, 1.0):
                row = distance * random.dirichlet([concentration] * classes)
                row[vertex] += 1 - distance
                rows.append(row)
    # faces of a few classes, and all of the simplex
    for _ in range(96):
        face = random.choice(classes, min(classes, int(random.integers(2, 6))), replace=False)
        row = np.zeros(classes)
        row[face] = random.dirichlet([1.0] * len(face))
        row[0] += random.choice([0.0, 1e-3, 0.1])
        rows.append(row)
    for concentration in (0.03, 0.1, 0.3, 1.0, 3.0):
        rows.extend(random.dirichlet([concentration] * classes, size=48))
    u = torch.from_numpy(np.stack(rows))
    return torch.log(u / u.sum(1, keepdim=True)).clamp(min=FLOOR)


def search(loss: Loss, weights: Tensor, target: int, claim: str = "monotone") -> Found | None:
    """The worst contradiction found at one row, if there is one."""
    order = weights.argsort(descending=True, stable=True)
    assert order[0] == target
    w = weights[order]
    terms = terms_of(loss, len(w))
    pool = starts(len(w))
    if claim == "global":
        return _search_global(terms, w, order, pool)
    measure = derivative if claim == "monotone" else rises

    def relative(z: Tensor) -> Tensor:
        value, size = measure(terms, w, z)
        share = value / size.clamp(min=1e-280)
        return share if claim == "monotone" else share.amax(-1)

    if claim == "transfers" and any(term.a is None for term in terms):
        pool = pool[:: max(1, len(w) ** 2 * len(pool) // 1_000_000)]
    with torch.no_grad():
        score = relative(pool)
    if float(score.max()) <= RELATIVE:
        pool = climb(relative, pool[score.topk(min(CLIMBERS, len(pool))).indices])
        with torch.no_grad():
            score = relative(pool)
    best = int(score.argmax())
    if float(score[best]) <= RELATIVE:
        return None
    value, size = measure(terms, w, pool[best])
    rival = None
    if claim == "transfers":
        first = int((value / size).argmax())
        value, rival = value[first], int(order[first + 1])
    return _found(weights, order, pool[best], float(value), float(score[best]), rival)


def _search_global(terms: list[Term], w: Tensor, order: Tensor, pool: Tensor) -> Found | None:
    """A prediction below every limit of W at the target."""
    low, _ = value_at_target(terms, w)
    scale = sum(abs(term.factor) * float(term.base.h(0.0)) for term in terms)
    if any(term.a is None for term in terms):
        pool = pool[:: max(1, len(w) ** 2 * len(pool) // 1_000_000)]
    with torch.no_grad():
        score = low - values(terms, w, pool)
    if float(score.max()) <= RELATIVE * scale:
        few = pool[score.topk(min(CLIMBERS, len(pool))).indices]
        pool = climb(lambda z: -values(terms, w, z) / scale, few)
        with torch.no_grad():
            score = low - values(terms, w, pool)
    best = int(score.argmax())
    gap = float(score[best])
    if gap <= RELATIVE * scale:
        return None
    back = torch.empty_like(w)
    back[order] = w
    return _found(back, order, pool[best], gap, gap / scale, None)


def _found(
    weights: Tensor, order: Tensor, z: Tensor, value: float, relative: float, rival: int | None
) -> Found:
    probs = torch.empty_like(z)
    probs[order] = torch.softmax(z, -1)
    return Found(weights.tolist(), int(order[0]), probs.tolist(), value, relative, rival)


def search_rows(loss: Loss, rows: Tensor, targets: Tensor, claim: str = "monotone") -> Found | None:
    """Search the rows with the strongest rivals, and one in the middle."""
    peaks = rows.topk(2, 1).values
    order = (peaks[:, 1] / peaks[:, 0]).argsort(descending=True)
    chosen = {int(order[0]), int(order[min(1, len(order) - 1)]), int(order[len(order) // 2])}
    distinct = {tuple(rows[row].sort().values.tolist()): row for row in sorted(chosen)}
    for row in distinct.values():
        found = search(loss, rows[row], int(targets[row]), claim)
        if found is not None:
            return found
    return None


def reproduce(witness: dict[str, Any], loss: Loss, claim: str = "monotone") -> tuple[float, float]:
    """What the numbers of a witness amount to, and that as a share of what cancels in it.

    Args:
        witness: As it is printed: weights, target, probs and, for transfers, the rival.
        loss: The loss it is about.
        claim: What it contradicts.
    """
    witness = json.loads(json.dumps(witness))
    weights, probs = torch.tensor(witness["weights"]), torch.tensor(witness["probs"])
    target = witness["target"]
    assert weights.dtype == probs.dtype == torch.float64
    assert int(weights.argmax()) == target
    assert abs(float(probs.sum()) - 1) < 1e-9
    assert float(probs.min()) >= 0
    order = weights.argsort(descending=True, stable=True)
    w, log_u = weights[order], torch.log(probs[order])
    terms = terms_of(loss, len(w))
    if claim == "monotone":
        value, size = derivative(terms, w, log_u)
        return float(value), float(value / size)
    if claim == "transfers":
        value, size = rises(terms, w, log_u)
        rival = order.tolist().index(witness["rival"]) - 1
        return float(value[rival]), float(value[rival] / size[rival])
    scale = sum(abs(term.factor) * float(term.base.h(0.0)) for term in terms)
    # two rivals of probability 0 count as equal ones that vanish together
    low, _ = value_at_target(terms, w)
    gap = low - float(values(terms, w, log_u.clamp(min=-700.0)))
    return gap, gap / scale

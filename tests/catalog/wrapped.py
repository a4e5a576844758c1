"""Naive formulas and claims of wrapped losses: clipped, sharpened, corrected."""

import math
from collections.abc import Callable

import torch
from case import Catalogue
from catalog.classwise import OF_LOGITS
from catalog.pointwise import STOP, ce, fl, gce, one_hot
from naive import softmax
from torch import Tensor

CASES = Catalogue()
OF_LABELS = frozenset({"permutation", "mask"})
OF_CLASSES = OF_LABELS | {"single-class"}
TIES = frozenset({"ties"})
Value = Callable[..., Tensor]


def norm(z: Tensor, p: float = 2.0) -> Tensor:
    return sum(abs(x) ** p for x in z) ** (1 / p)


def clipped(z: Tensor, delta: float, p: float, as_released: bool, norm_eps: float) -> Tensor:
    length = norm(z, p)
    if as_released:  # the threshold is the reciprocal of the length that is left
        return delta * z / (length + norm_eps) if length > 1 / delta else z
    return delta * z / length if length > delta else z


@CASES.entry(
    "CE+LC",
    of_logits=True,
    bound=math.log(5) + math.sqrt(2),
    breaks=OF_LOGITS,
    settings=[
        {"delta": 2.5},
        {"delta": 1.5, "p": 1.0},
        {"delta": 2.5, "as_released": True, "norm_eps": 1e-2},
        {"delta": 0.5, "as_released": True},
    ],
)
def ce_lc(
    z: Tensor,
    t: int,
    delta: float = 1.0,
    p: float = 2.0,
    as_released: bool = False,
    norm_eps: float = 1e-7,
) -> Tensor:
    return ce(softmax(clipped(z, delta, p, as_released, norm_eps)), t)


CASES.add(
    "CE+LC-released",
    "CE+LC",
    ce_lc,
    {"delta": 1 / 1.5, "as_released": True},
    of_logits=True,
    breaks=OF_LOGITS,
)


def eps_softmax(loss: Value, u: Tensor, t: int, m: float) -> Tensor:
    values = u.tolist()
    first = values.index(max(values))
    return loss((u + m * one_hot(u, first)) / (1 + m), t)


@CASES.entry("ECE", breaks=TIES, settings=[{"m": 10.0}])
def ece(u: Tensor, t: int, m: float = 1e5) -> Tensor:
    return eps_softmax(ce, u, t, m)


CASES.add("ECE-m1", "ECE", ece, {"m": 1.0}, bounded=False, breaks=TIES)


@CASES.entry(
    "EFL", breaks=TIES, settings=[{"m": 10.0, "gamma": 2.0}, {"m": 1e3, "gamma": 0.5, **STOP}]
)
def efl(
    u: Tensor, t: int, m: float = 1e5, gamma: float = 0.1, stop_gradient: bool = False
) -> Tensor:
    return eps_softmax(lambda v, k: fl(v, k, gamma, stop_gradient), u, t, m)


CASES.add(
    "EFL-stopped",
    "EFL",
    efl,
    {"m": 1.0, **STOP},
    bounded=False,
    smooth=False,
    breaks=TIES | {"gradcheck"},
)


def sharpened(z: Tensor, tau: float, normalize: bool) -> Tensor:
    return (z / norm(z) if normalize else z) / tau


@CASES.entry(
    "SR",
    of_logits=True,
    bound=math.log(5) + 2 * math.sqrt(2) + 1.2 * 5**0.9,
    breaks=OF_LOGITS | {"ties", "single-class"},
    settings=[
        {"base": "CE", "tau": 0.1, "p": 0.1, "lamb": 4.0},
        {"base": "GCE", "tau": 0.5, "p": 0.01, "lamb": 10.0, "normalize": False},
        {"base": "FL", "tau": 1.0, "p": 0.5},
    ],
)
def sr(
    z: Tensor,
    t: int,
    base: str = "CE",
    tau: float = 0.5,
    p: float = 0.1,
    lamb: float = 1.2,
    normalize: bool = True,
) -> Tensor:
    bases = {"CE": ce, "GCE": gce, "FL": fl}
    u = softmax(sharpened(z, tau, normalize))
    return bases[base](u, t) + lamb * sum(x**p for x in u)


CASES.add(
    "SR-flat",
    "SR",
    sr,
    {"base": "CE", "tau": 2.0, "p": 0.5, "lamb": 2.0, "normalize": False},
    of_logits=True,
    bounded=False,
    breaks=frozenset({"single-class", "from-probs"}),
)


def transition(k: int) -> Tensor:
    """A transition matrix with no symmetry: 0.7 stays, 0.2 goes to the next class, 0.1 spreads."""
    T = torch.full((k, k), 0.1 / k, dtype=torch.float64)
    for i in range(k):
        T[i, i] += 0.7
        T[i, (i + 1) % k] += 0.2
    return T


@CASES.entry(
    "forward",
    needs=lambda k: {"T": transition(k)},
    bound=-math.log(float(transition(5).min())),
    floor=lambda k: -math.log(transition(k)[0, 0]),
    breaks=OF_CLASSES,
    settings=[{"T": transition(6)}, {"T": torch.eye(6, dtype=torch.float64).roll(1, 1)}],
)
def forward(u: Tensor, t: int, T: Tensor | None = None, loss: Value = ce) -> Tensor:
    T = transition(len(u)) if T is None else T
    return loss(torch.stack([sum(u[i] * T[i, j] for i in range(len(u))) for j in range(len(u))]), t)


@CASES.entry(
    "backward",
    needs=lambda k: {"T": transition(k)},
    scale=2.0,
    breaks=OF_LABELS,
    settings=[{"T": transition(6)}],
)
def backward(u: Tensor, t: int, T: Tensor | None = None, loss: Value = ce) -> Tensor:
    inverse = torch.linalg.inv(transition(len(u)) if T is None else T)
    return sum(inverse[t, j] * loss(u, j) for j in range(len(u)))

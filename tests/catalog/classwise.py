"""Naive formulas and claims of the losses that look at every class."""

import math
from collections.abc import Callable
from typing import Any

import torch
from case import Case, Catalogue, Published
from catalog.pointwise import DETACHED, STOP, ce, fl, gce, gjs_of_probs, one_hot
from naive import softmax
from torch import Tensor, nn

import lossforge

CASES = Catalogue()
OF_LOGITS = frozenset({"shift", "gradient-sum", "floor", "from-probs"})
Value = Callable[..., Tensor]


def normalised(loss: Value, u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    """A loss over its sum over all labels."""
    return scale * loss(u, t) / sum(loss(u, k) for k in range(len(u)))


def nce_gradient(u: Tensor, t: int) -> Tensor:
    """In the logits, from the published list of gradients."""
    S = -sum(torch.log(x) for x in u)
    return (u - one_hot(u, t)) / S + torch.log(u[t]) * (len(u) * u - 1) / S**2


@CASES.entry("NCE", symmetric=True, bound=1.0, closed=nce_gradient, settings=[{"scale": 10.0}])
def nce(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    return normalised(ce, u, t, scale)


@CASES.entry(
    "NFL",
    symmetric=True,
    bound=1.0,
    settings=[{"gamma": 2.0, "scale": 10.0}, {"gamma": 0.0}, {"gamma": 0.3, **STOP}],
)
def nfl(
    u: Tensor, t: int, gamma: float = 0.5, scale: float = 1.0, stop_gradient: bool = False
) -> Tensor:
    return normalised(lambda v, k: fl(v, k, gamma, stop_gradient), u, t, scale)


CASES.add("NFL-stopped", "NFL", nfl, STOP, symmetric=True, **DETACHED)


@CASES.entry("NGCE", symmetric=True, bound=1.0, settings=[{"q": 0.1, "scale": 3.0}])
def ngce(u: Tensor, t: int, q: float = 0.7, scale: float = 1.0) -> Tensor:
    return normalised(lambda v, k: gce(v, k, q), u, t, scale)


@CASES.entry("NMAE", symmetric=True, bound=0.25, settings=[{"scale": 3.0}])
def nmae(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    return normalised(lambda v, k: 2 * (1 - v[k]), u, t, scale)


@CASES.entry("NRCE", symmetric=True, bound=0.25, settings=[{"scale": 3.0}])
def nrce(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    return normalised(lambda v, k: 9.2103 * sum(v[j] for j in range(len(v)) if j != k), u, t, scale)


def negated(loss: Value, ceiling: Tensor, u: Tensor, t: int) -> Tensor:
    """Normalised negative loss: what is left below the ceiling, normalised, from one."""
    room = [ceiling - loss(u, k) for k in range(len(u))]
    return 1 - room[t] / sum(room)


@CASES.entry("NNCE", symmetric=True, bound=1.0, settings=[{"eps": 1e-8}, {"eps": 0.05}])
def nnce(u: Tensor, t: int, eps: float = 1e-7) -> Tensor:
    floor = torch.tensor(eps, dtype=u.dtype)
    return negated(ce, -torch.log(floor), torch.maximum(u, floor), t)


@CASES.entry(
    "NNFL",
    symmetric=True,
    bound=1.0,
    settings=[{"gamma": 2.0, "eps": 0.05}, {"gamma": 0.5, "eps": 1e-8, **STOP}],
)
def nnfl(
    u: Tensor, t: int, gamma: float = 0.5, eps: float = 1e-7, stop_gradient: bool = False
) -> Tensor:
    floor = torch.tensor(eps, dtype=u.dtype)
    ceiling = -((1 - floor) ** gamma) * torch.log(floor)
    clamped = torch.maximum(u, floor)
    return negated(lambda v, k: fl(v, k, gamma, stop_gradient), ceiling, clamped, t)


CASES.add("NNFL-stopped", "NNFL", nnfl, STOP, symmetric=True, **DETACHED)


@CASES.entry("MSE", bound=2 / 5)
def mse(u: Tensor, t: int) -> Tensor:
    y = one_hot(u, t)
    return sum((u[k] - y[k]) ** 2 for k in range(len(u))) / len(u)


MAX_AMSE = (30**2 + 1) / 5


def amse_gradient(u: Tensor, t: int, a: float = 30.0) -> Tensor:
    """In the logits, from the published list of gradients."""
    return 2 / len(u) * (u * (u - sum(x**2 for x in u)) - a * u[t] * (one_hot(u, t) - u))


def amse_floor(k: int) -> float:
    return (30 - 1) ** 2 / k


@CASES.entry(
    "AMSE",
    bound=MAX_AMSE,
    floor=amse_floor,
    scale=8.0,
    closed=amse_gradient,
    settings=[{"a": 1.0}, {"a": 5.0, "q": 3.0, "scale": 0.5}, {"a": 2.0, "q": 1.5}],
)
def amse(u: Tensor, t: int, a: float = 30.0, q: float = 2.0, scale: float = 1.0) -> Tensor:
    y = one_hot(u, t)
    return scale * sum(abs(u[k] - a * y[k]) ** q for k in range(len(u))) / len(u)


CASES.add("AMSE-q1.5", "AMSE", amse, {"a": 3.0, "q": 1.5}, floor=lambda k: 2**1.5 / k)


@CASES.entry(
    "ANorm",
    bound=(1.5**2 + 1 - 0.5**2) / 2,
    settings=[{"a": 4.0, "p": 3.0}, {"a": 2.0, "p": 1.3}],
)
def anorm(u: Tensor, t: int, a: float = 1.5, p: float = 2.0) -> Tensor:
    y = one_hot(u, t)
    return (sum(abs(a * y[k] - u[k]) ** p for k in range(len(u))) - (a - 1) ** p) / p


CASES.add("ANorm-p1.5", "ANorm", anorm, {"a": 3.0, "p": 1.5})


@CASES.entry("NL", breaks=frozenset({"single-class"}))
def nl(u: Tensor, t: int) -> Tensor:
    return -torch.log(sum(u[k] for k in range(len(u)) if k != t))


@CASES.entry("NL+", bound=1 / math.e, **DETACHED)
def nl_plus(u: Tensor, t: int) -> Tensor:
    return (1 - u[t]).detach() * nl(u, t)


@CASES.entry("PL+", **DETACHED)
def pl_plus(u: Tensor, t: int) -> Tensor:
    weight = (1 + u[t]) * (1 + u[t] ** 2) * (1 + u[t] ** 4) * (1 + u[t] ** 8)
    return -weight.detach() * torch.log(u[t])


class TwoViews(nn.Module):
    """GJS of the logits and of half the logits: several views as a function of one input."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, t: Tensor) -> Tensor:
        return self.loss((z, z / 2), t)

    def per_sample(self, z: Tensor, t: Tensor) -> Tensor:
        return self.loss.with_policy(reduction="none")((z, z / 2), t)

    def from_probs(self, u: Tensor, t: Tensor) -> Tensor:
        return self.loss.from_probs((u, u), t)

    def with_policy(self, **policy: Any) -> "TwoViews":
        return TwoViews(self.loss.with_policy(**policy))

    @property
    def weight(self) -> Tensor | None:
        return self.loss.weight

    @property
    def reduction(self) -> str:
        return self.loss.reduction

    @reduction.setter
    def reduction(self, reduction: str) -> None:
        self.loss.reduction = reduction


VIEWS = (0.4, 0.35, 0.25)


def gjs(
    views: tuple[Tensor, ...], t: int, weights: tuple[float, ...], scaled: bool = True
) -> Tensor:
    return gjs_of_probs(tuple(softmax(z) for z in views), t, weights, scaled)


CASES.append(
    Case(
        "GJS",
        lambda: TwoViews(lossforge.make("GJS", weights=VIEWS)),
        (Published(lambda u, t: gjs_of_probs((u, u.sqrt() / u.sqrt().sum()), t, VIEWS)),),
        symmetric=False,
        bounded=True,
        breaks=frozenset({"from-probs", "text"}),
        entry="GJS",
        bound=-sum(w * math.log(w) for w in VIEWS) / -(0.6 * math.log(0.6)),
    )
)


@CASES.entry(
    "LDR",
    of_logits=True,
    bound=0.1 + 5,
    breaks=OF_LOGITS,
    settings=[{"threshold": 2.0, "Lambda": 1.0}, {"threshold": 0.0, "Lambda": 0.3}],
)
def ldr(z: Tensor, t: int, threshold: float = 0.1, Lambda: float = 10.0) -> Tensor:
    soft = [torch.logaddexp(x, torch.zeros_like(x)) for x in z]
    mean = sum(soft) / len(z)
    s = [x / mean for x in soft]
    margins = [(0 if k == t else threshold) + s[k] - s[t] for k in range(len(z))]
    return Lambda * torch.log(sum(torch.exp(m / Lambda) for m in margins) / len(z))

"""Naive formulas and claims of the losses of the label's probability alone."""

import math
from collections.abc import Callable
from typing import Any

import torch
from case import Catalogue
from torch import Tensor

CASES = Catalogue()
STOP = {"stop_gradient": True}
# With a detached factor the gradient is not a derivative, so there is no second one to compare.
DETACHED = {"breaks": frozenset({"gradcheck"}), "smooth": False}


def one_hot(u: Tensor, t: int) -> Tensor:
    return torch.tensor([1.0 if k == t else 0.0 for k in range(len(u))], dtype=u.dtype)


def slope_gradient(slope: Callable[[Tensor], Any]) -> Callable[[Tensor, int], Tensor]:
    """The gradient of f(u_t) in the logits, for f' = slope; from the published list of them."""
    return lambda u, t: slope(u[t]) * u[t] * (one_hot(u, t) - u)


def ce(u: Tensor, t: int) -> Tensor:
    """Its case is in cases.py."""
    return -torch.log(u[t])


@CASES.entry("FL", settings=[{"gamma": 0.0}, {"gamma": 3.5}, {"gamma": 2.0, **STOP}])
def fl(u: Tensor, t: int, gamma: float = 0.5, stop_gradient: bool = False) -> Tensor:
    factor = (1 - u[t]) ** gamma
    return -(factor.detach() if stop_gradient else factor) * torch.log(u[t])


CASES.add("FL-gamma2", "FL", fl, {"gamma": 2.0}, bounded=False)
CASES.add("FL-stopped", "FL", fl, STOP, bounded=False, **DETACHED)


@CASES.entry(
    "MAE",
    symmetric=True,
    bound=1.0,
    closed=slope_gradient(lambda p: -1.0),
    settings=[{"scale": 2.0}],
)
def mae(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    """Half the L1 distance to the one-hot label."""
    return scale * sum(abs(u[k] - one_hot(u, t)[k]) for k in range(len(u))) / 2


CASES.add("MAE-scale2", "MAE", mae, {"scale": 2.0}, symmetric=True, scale=2.0)
MAX_RCE = -math.log(1e-4)


@CASES.entry(
    "RCE", symmetric=True, bound=MAX_RCE, scale=10.0, settings=[{"scale": 0.3, "A_clamp": 1e-2}]
)
def rce(u: Tensor, t: int, scale: float = 1.0, A_clamp: float = 1e-4) -> Tensor:
    """Cross entropy with label and prediction exchanged, ln 0 read as ln A_clamp."""
    return -scale * sum(u[k] * math.log(1.0 if k == t else A_clamp) for k in range(len(u)))


@CASES.entry(
    "GCE",
    bound=1 / 0.7,
    closed=slope_gradient(lambda p: -(p**-0.3)),
    settings=[{"q": 0.01}, {"q": 1.0}],
)
def gce(u: Tensor, t: int, q: float = 0.7) -> Tensor:
    return (1 - u[t] ** q) / q


@CASES.entry(
    "TGCE",
    bound=(1 - 0.5**0.7) / 0.7,
    smooth=False,
    settings=[{"q": 0.05, "k": 0.1}, {"q": 0.95, "k": 0.3}],
)
def tgce(u: Tensor, t: int, q: float = 0.7, k: float = 0.5) -> Tensor:
    return gce(u, t, q) if u[t] > k else 0 * u[t] + (1 - k**q) / q


@CASES.entry(
    "AUL",
    bound=(5.5**3 - 4.5**3) / 3,
    scale=16.0,
    closed=slope_gradient(lambda p: -((5.5 - p) ** 2)),
    settings=[{"a": 3.0, "q": 0.1}, {"a": 1.5, "q": 1.0}],
)
def aul(u: Tensor, t: int, a: float = 5.5, q: float = 3.0) -> Tensor:
    return ((a - u[t]) ** q - (a - 1) ** q) / q


CASES.add("AUL-q0.1", "AUL", aul, {"a": 3.0, "q": 0.1})


@CASES.entry(
    "AGCE",
    bound=(1.6**0.6 - 0.6**0.6) / 0.6,
    closed=slope_gradient(lambda p: -((0.6 + p) ** -0.4)),
    settings=[{"a": 1e-5, "q": 0.5}, {"a": 4.0, "q": 0.2}, {"a": 1.8, "q": 3.0}],
)
def agce(u: Tensor, t: int, a: float = 0.6, q: float = 0.6) -> Tensor:
    return ((a + 1) ** q - (a + u[t]) ** q) / q


CASES.add("AGCE-a1e-5", "AGCE", agce, {"a": 1e-5, "q": 0.5})


@CASES.entry("AEL", bound=1.0, floor=math.exp(-1 / 2.5), settings=[{"a": 0.4}])
def ael(u: Tensor, t: int, a: float = 2.5) -> Tensor:
    return torch.exp(-u[t] / a)


@CASES.entry("Taylor-CE", bound=1.5, settings=[{"t": 1}, {"t": 9}])
def taylor_ce(u: Tensor, y: int, /, t: int = 2) -> Tensor:
    return sum((1 - u[y]) ** i / i for i in range(1, t + 1))


CASES.add("Taylor-CE-t6", "Taylor-CE", taylor_ce, {"t": 6})


@CASES.entry(
    "PHuber-CE",
    bound=math.log(10) + 1,
    smooth=False,
    scale=2.0,
    settings=[{"tau": 2.0}, {"tau": 50.0}],
)
def phuber_ce(u: Tensor, t: int, tau: float = 10.0) -> Tensor:
    return -torch.log(u[t]) if u[t] > 1 / tau else -tau * u[t] + math.log(tau) + 1


THRESHOLD = 10 ** (1 / (0.7 - 1))


@CASES.entry(
    "PHuber-GCE",
    bound=(1 - THRESHOLD**0.7) / 0.7 + 10 * THRESHOLD,
    smooth=False,
    settings=[{"q": 0.5, "tau": 2.0}],
)
def phuber_gce(u: Tensor, t: int, q: float = 0.7, tau: float = 10.0) -> Tensor:
    """Below x the tangent at x, where the slope of GCE is -x^(q-1) = -tau."""
    x = tau ** (1 / (q - 1))
    return gce(u, t, q) if u[t] > x else (1 - x**q) / q - tau * (u[t] - x)


def kl(p: Tensor, q: Tensor) -> Tensor:
    terms = [a * torch.log(a / b) for a, b in zip(p, q, strict=True) if a > 0]
    return sum(terms)


def gjs_of_probs(
    views: tuple[Tensor, ...], t: int, weights: tuple[float, ...], scaled: bool = True
) -> Tensor:
    """Jensen-Shannon divergence of the one-hot label and every view; weights[0] is the label's."""
    parts = (one_hot(views[0], t), *views)
    mean = sum(w * part for w, part in zip(weights, parts, strict=True))
    value = sum(w * kl(part, mean) for w, part in zip(weights, parts, strict=True))
    rest = 1 - weights[0]
    return value * (-1 / (rest * math.log(rest)) if scaled else 1.0)


UNSCALED = {"weights": (0.1, 0.9), "scaled": False}


@CASES.entry("JS", bound=2.0, settings=[UNSCALED, {"weights": (0.9, 0.1)}])
def js(u: Tensor, t: int, weights: tuple[float, float] = (0.5, 0.5), scaled: bool = True) -> Tensor:
    return gjs_of_probs((u,), t, weights, scaled)


CASES.add("JS-unscaled", "JS", js, UNSCALED)


@CASES.entry("VCE", bound=math.log(5), floor=-math.log(5), settings=[{"a": 10.0}])
def vce(u: Tensor, t: int, a: float = 4.0) -> Tensor:
    return -torch.log(a + u[t])


@CASES.entry("VEL", bound=1.0, floor=math.exp(-1 / 2.5), settings=[{"a": 1.0}])
def vel(u: Tensor, t: int, a: float = 2.5) -> Tensor:
    return torch.exp(-u[t] / a)


@CASES.entry("VMSE", bound=16.0, floor=9.0, scale=4.0, settings=[{"a": 1.5}])
def vmse(u: Tensor, t: int, a: float = 4.0) -> Tensor:
    return (a - u[t]) ** 2

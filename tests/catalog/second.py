"""A second derivation of every catalogue loss: plain float64, one sample at a time.

Written from the published formulas and from nothing else; nothing here imports the package. A
function of ``u`` takes the probabilities of one sample, a function of ``z`` its logits; the
parameters carry the names and defaults that the catalogue promises.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from naive import softmax
from torch import Tensor

Value = Callable[..., Tensor]


def one_hot(u: Tensor, t: int) -> Tensor:
    return torch.tensor([1.0 if k == t else 0.0 for k in range(len(u))], dtype=u.dtype)


def transition(k: int) -> Tensor:
    """A transition matrix with no symmetry: 0.7 stays, 0.2 goes to the next class, 0.1 spreads."""
    T = torch.full((k, k), 0.1 / k, dtype=torch.float64)
    for i in range(k):
        T[i, i] += 0.7
        T[i, (i + 1) % k] += 0.2
    return T


# Functions of the probability of the label


def ce(u: Tensor, t: int) -> Tensor:
    return -torch.log(u[t])


def fl(u: Tensor, t: int, gamma: float = 0.5, stop_gradient: bool = False) -> Tensor:
    factor = (1 - u[t]) ** gamma
    return -(factor.detach() if stop_gradient else factor) * torch.log(u[t])


def mae(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    """Half the L1 distance to the one-hot label."""
    return scale * sum(abs(u[k] - one_hot(u, t)[k]) for k in range(len(u))) / 2


def rce(u: Tensor, t: int, scale: float = 1.0, A_clamp: float = 1e-4) -> Tensor:
    """Cross entropy with label and prediction exchanged, ln 0 read as ln A_clamp."""
    return -scale * sum(u[k] * math.log(1.0 if k == t else A_clamp) for k in range(len(u)))


def gce(u: Tensor, t: int, q: float = 0.7) -> Tensor:
    return (1 - u[t] ** q) / q


def tgce(u: Tensor, t: int, q: float = 0.7, k: float = 0.5) -> Tensor:
    return gce(u, t, q) if u[t] > k else 0 * u[t] + (1 - k**q) / q


def aul(u: Tensor, t: int, a: float = 5.5, q: float = 3.0) -> Tensor:
    return ((a - u[t]) ** q - (a - 1) ** q) / q


def agce(u: Tensor, t: int, a: float = 0.6, q: float = 0.6) -> Tensor:
    return ((a + 1) ** q - (a + u[t]) ** q) / q


def ael(u: Tensor, t: int, a: float = 2.5) -> Tensor:
    return torch.exp(-u[t] / a)


def taylor_ce(u: Tensor, t: int, terms: int = 2) -> Tensor:
    return sum((1 - u[t]) ** i / i for i in range(1, terms + 1))


def phuber_ce(u: Tensor, t: int, tau: float = 10.0) -> Tensor:
    return -torch.log(u[t]) if u[t] > 1 / tau else -tau * u[t] + math.log(tau) + 1


def phuber_gce(u: Tensor, t: int, q: float = 0.7, tau: float = 10.0) -> Tensor:
    """Below x the tangent at x, where the slope of GCE is -x^(q-1) = -tau."""
    x = tau ** (1 / (q - 1))
    return gce(u, t, q) if u[t] > x else (1 - x**q) / q - tau * (u[t] - x)


def nl(u: Tensor, t: int) -> Tensor:
    return -torch.log(sum(u[k] for k in range(len(u)) if k != t))


def nl_plus(u: Tensor, t: int) -> Tensor:
    return (1 - u[t]).detach() * nl(u, t)


def pl_plus(u: Tensor, t: int) -> Tensor:
    weight = (1 + u[t]) * (1 + u[t] ** 2) * (1 + u[t] ** 4) * (1 + u[t] ** 8)
    return -weight.detach() * torch.log(u[t])


def vce(u: Tensor, t: int, a: float = 4.0) -> Tensor:
    return -torch.log(a + u[t])


def vel(u: Tensor, t: int, a: float = 2.5) -> Tensor:
    return torch.exp(-u[t] / a)


def vmse(u: Tensor, t: int, a: float = 4.0) -> Tensor:
    return (a - u[t]) ** 2


# Functions of all probabilities


def mse(u: Tensor, t: int) -> Tensor:
    y = one_hot(u, t)
    return sum((u[k] - y[k]) ** 2 for k in range(len(u))) / len(u)


def anorm(u: Tensor, t: int, a: float = 1.5, p: float = 2.0) -> Tensor:
    y = one_hot(u, t)
    return (sum(abs(a * y[k] - u[k]) ** p for k in range(len(u))) - (a - 1) ** p) / p


def amse(u: Tensor, t: int, a: float = 30.0, q: float = 2.0, scale: float = 1.0) -> Tensor:
    y = one_hot(u, t)
    return scale * sum(abs(u[k] - a * y[k]) ** q for k in range(len(u))) / len(u)


def normalised(loss: Value, u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    """A loss over its sum over all labels."""
    return scale * loss(u, t) / sum(loss(u, k) for k in range(len(u)))


def nce(u: Tensor, t: int, scale: float = 1.0) -> Tensor:
    return normalised(ce, u, t, scale)


def nfl(
    u: Tensor, t: int, gamma: float = 0.5, scale: float = 1.0, stop_gradient: bool = False
) -> Tensor:
    return normalised(lambda v, k: fl(v, k, gamma, stop_gradient), u, t, scale)


def ngce(u: Tensor, t: int, q: float = 0.7, scale: float = 1.0) -> Tensor:
    return normalised(lambda v, k: gce(v, k, q), u, t, scale)


def negated(loss: Value, ceiling: Tensor, u: Tensor, t: int) -> Tensor:
    """Normalised negative loss: what is left below the ceiling, normalised, from one."""
    room = [ceiling - loss(u, k) for k in range(len(u))]
    return 1 - room[t] / sum(room)


def nnce(u: Tensor, t: int, eps: float = 1e-7) -> Tensor:
    floor = torch.tensor(eps, dtype=u.dtype)
    return negated(ce, -torch.log(floor), torch.maximum(u, floor), t)


def nnfl(
    u: Tensor, t: int, gamma: float = 0.5, eps: float = 1e-7, stop_gradient: bool = False
) -> Tensor:
    floor = torch.tensor(eps, dtype=u.dtype)
    ceiling = -((1 - floor) ** gamma) * torch.log(floor)
    clamped = torch.maximum(u, floor)
    return negated(lambda v, k: fl(v, k, gamma, stop_gradient), ceiling, clamped, t)


def gls(u: Tensor, t: int, smooth_rate: float = 0.1, wa: float = 0.0, wb: float = 1.0) -> Tensor:
    smooth = sum(ce(u, k) for k in range(len(u))) / len(u)
    return (wa + wb * (1 - smooth_rate)) * ce(u, t) + wb * smooth_rate * smooth


def nls(u: Tensor, t: int, smooth_rate: float = -1.0, wa: float = 0.0, wb: float = 1.0) -> Tensor:
    return gls(u, t, smooth_rate, wa, wb)


def eps_softmax(loss: Value, u: Tensor, t: int, m: float) -> Tensor:
    values = u.tolist()
    first = values.index(max(values))
    return loss((u + m * one_hot(u, first)) / (1 + m), t)


def ece(u: Tensor, t: int, m: float = 1e5) -> Tensor:
    return eps_softmax(ce, u, t, m)


def efl(
    u: Tensor, t: int, m: float = 1e5, gamma: float = 0.1, stop_gradient: bool = False
) -> Tensor:
    return eps_softmax(lambda v, k: fl(v, k, gamma, stop_gradient), u, t, m)


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


def js(u: Tensor, t: int, weights: tuple[float, float] = (0.5, 0.5), scaled: bool = True) -> Tensor:
    return gjs_of_probs((u,), t, weights, scaled)


def forward(u: Tensor, t: int, T: Tensor | None = None, loss: Value = ce) -> Tensor:
    T = transition(len(u)) if T is None else T
    return loss(torch.stack([sum(u[i] * T[i, j] for i in range(len(u))) for j in range(len(u))]), t)


def backward(u: Tensor, t: int, T: Tensor | None = None, loss: Value = ce) -> Tensor:
    inverse = torch.linalg.inv(transition(len(u)) if T is None else T)
    return sum(inverse[t, j] * loss(u, j) for j in range(len(u)))


# Sums


def sce(u, t, alpha=0.1, beta=1.0, A_clamp=1e-4):
    return alpha * ce(u, t) + beta * rce(u, t, A_clamp=A_clamp)


def nce_rce(u, t, alpha=1.0, beta=1.0, A_clamp=1e-4):
    return alpha * nce(u, t) + beta * rce(u, t, A_clamp=A_clamp)


def nce_mae(u, t, alpha=1.0, beta=1.0):
    return alpha * nce(u, t) + beta * mae(u, t)


def nfl_rce(u, t, alpha=1.0, beta=1.0, gamma=0.5, A_clamp=1e-4, stop_gradient=False):
    part = nfl(u, t, gamma, stop_gradient=stop_gradient)
    return alpha * part + beta * rce(u, t, A_clamp=A_clamp)


def nfl_mae(u, t, alpha=1.0, beta=1.0, gamma=0.5, stop_gradient=False):
    return alpha * nfl(u, t, gamma, stop_gradient=stop_gradient) + beta * mae(u, t)


def nce_aul(u, t, alpha=1.0, beta=4.0, a=6.3, q=1.5):
    return alpha * nce(u, t) + beta * aul(u, t, a, q)


def nce_agce(u, t, alpha=1.0, beta=4.0, a=6.0, q=1.5):
    return alpha * nce(u, t) + beta * agce(u, t, a, q)


def nce_ael(u, t, alpha=1.0, beta=4.0, a=5.0):
    return alpha * nce(u, t) + beta * ael(u, t, a)


def anl_ce(u, t, alpha=5.0, beta=5.0, eps=1e-7):
    return alpha * nce(u, t) + beta * nnce(u, t, eps)


def anl_fl(u, t, alpha=5.0, beta=5.0, eps=1e-7, gamma=0.5, stop_gradient=False):
    part = nfl(u, t, gamma, stop_gradient=stop_gradient)
    return alpha * part + beta * nnfl(u, t, gamma, eps, stop_gradient)


def jal_ce(u, t, alpha=1.0, beta=1.0, a=30.0):
    return alpha * nce(u, t) + beta * amse(u, t, a)


def jal_fl(u, t, alpha=1.0, beta=1.0, a=30.0, gamma=0.5, stop_gradient=False):
    return alpha * nfl(u, t, gamma, stop_gradient=stop_gradient) + beta * amse(u, t, a)


def ece_mae(u, t, alpha=0.01, beta=5.0, m=1e5):
    return alpha * ece(u, t, m) + beta * mae(u, t, 2.0)


def efl_mae(u, t, alpha=0.01, beta=5.0, m=1e5, gamma=0.1, stop_gradient=False):
    return alpha * efl(u, t, m, gamma, stop_gradient) + beta * mae(u, t, 2.0)


# Functions of the logits


def of_logits(loss: Value) -> Value:
    """A loss of the probabilities as one of the logits."""
    return lambda z, t, /, **parameters: loss(softmax(z), t, **parameters)


def norm(z: Tensor, p: float = 2.0) -> Tensor:
    return sum(abs(x) ** p for x in z) ** (1 / p)


def clipped(z: Tensor, delta: float, p: float, as_released: bool, norm_eps: float) -> Tensor:
    length = norm(z, p)
    if as_released:  # the threshold is the reciprocal of the length that is left
        return delta * z / (length + norm_eps) if length > 1 / delta else z
    return delta * z / length if length > delta else z


def ce_lc(
    z: Tensor,
    t: int,
    delta: float = 1.0,
    p: float = 2.0,
    as_released: bool = False,
    norm_eps: float = 1e-7,
) -> Tensor:
    return ce(softmax(clipped(z, delta, p, as_released, norm_eps)), t)


def ldr(z: Tensor, t: int, threshold: float = 0.1, Lambda: float = 10.0) -> Tensor:
    soft = [torch.logaddexp(x, torch.zeros_like(x)) for x in z]
    mean = sum(soft) / len(z)
    s = [x / mean for x in soft]
    margins = [(0 if k == t else threshold) + s[k] - s[t] for k in range(len(z))]
    return Lambda * torch.log(sum(torch.exp(m / Lambda) for m in margins) / len(z))


def sharpened(z: Tensor, tau: float, normalize: bool) -> Tensor:
    return (z / norm(z) if normalize else z) / tau


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


def gjs(
    views: tuple[Tensor, ...], t: int, weights: tuple[float, ...], scaled: bool = True
) -> Tensor:
    return gjs_of_probs(tuple(softmax(z) for z in views), t, weights, scaled)


OF_PROBS: dict[str, Value] = {
    "CE": ce,
    "FL": fl,
    "MAE": mae,
    "MSE": mse,
    "RCE": rce,
    "GCE": gce,
    "TGCE": tgce,
    "SCE": sce,
    "NCE": nce,
    "NFL": nfl,
    "NGCE": ngce,
    "NCE+RCE": nce_rce,
    "NCE+MAE": nce_mae,
    "NFL+RCE": nfl_rce,
    "NFL+MAE": nfl_mae,
    "AUL": aul,
    "AGCE": agce,
    "AEL": ael,
    "ANorm": anorm,
    "NCE+AUL": nce_aul,
    "NCE+AGCE": nce_agce,
    "NCE+AEL": nce_ael,
    "NNCE": nnce,
    "NNFL": nnfl,
    "ANL-CE": anl_ce,
    "ANL-FL": anl_fl,
    "AMSE": amse,
    "JAL-CE": jal_ce,
    "JAL-FL": jal_fl,
    "ECE": ece,
    "EFL": efl,
    "CEeps+MAE": ece_mae,
    "FLeps+MAE": efl_mae,
    "Taylor-CE": lambda u, t, /, **parameters: taylor_ce(u, t, parameters.get("t", 2)),
    "JS": js,
    "PHuber-CE": phuber_ce,
    "PHuber-GCE": phuber_gce,
    "LSR": gls,
    "GLS": gls,
    "NLS": nls,
    "NL": nl,
    "NL+": nl_plus,
    "PL+": pl_plus,
    "forward": forward,
    "backward": backward,
    "VCE": vce,
    "VEL": vel,
    "VMSE": vmse,
}
OF_LOGITS: dict[str, Value] = {"CE+LC": ce_lc, "LDR": ldr, "SR": sr}


# Closed gradients in the logits, from the published list of them


def slope_gradient(slope: Callable[[Tensor], Any]) -> Value:
    """The gradient of f(u_t) for f' = slope."""
    return lambda u, t: slope(u[t]) * u[t] * (one_hot(u, t) - u)


def nce_gradient(u: Tensor, t: int) -> Tensor:
    S = -sum(torch.log(x) for x in u)
    return (u - one_hot(u, t)) / S + torch.log(u[t]) * (len(u) * u - 1) / S**2


def amse_gradient(u: Tensor, t: int, a: float = 30.0) -> Tensor:
    return 2 / len(u) * (u * (u - sum(x**2 for x in u)) - a * u[t] * (one_hot(u, t) - u))

"""Naive formulas and claims of the published sums."""

import math

from case import Catalogue
from catalog.classwise import MAX_AMSE, amse, amse_floor, nce, nfl, nnce, nnfl
from catalog.pointwise import DETACHED, MAX_RCE, STOP, ael, agce, aul, ce, mae, rce
from catalog.wrapped import TIES, ece, efl
from torch import Tensor

CASES = Catalogue()


@CASES.entry(
    "SCE",
    scale=10.0,
    settings=[{"alpha": 6.0, "beta": 0.1, "A_clamp": 1e-3}, {"alpha": 0.0, "beta": 1.0}],
)
def sce(u, t, alpha=0.1, beta=1.0, A_clamp=1e-4):
    return alpha * ce(u, t) + beta * rce(u, t, A_clamp=A_clamp)


@CASES.entry(
    "NCE+RCE",
    symmetric=True,
    bound=1 + MAX_RCE,
    scale=10.0,
    settings=[{"alpha": 10.0, "beta": 0.1, "A_clamp": 1e-6}],
)
def nce_rce(u, t, alpha=1.0, beta=1.0, A_clamp=1e-4):
    return alpha * nce(u, t) + beta * rce(u, t, A_clamp=A_clamp)


@CASES.entry("NCE+MAE", symmetric=True, bound=2.0, settings=[{"alpha": 50.0, "beta": 1.0}])
def nce_mae(u, t, alpha=1.0, beta=1.0):
    return alpha * nce(u, t) + beta * mae(u, t)


@CASES.entry(
    "NFL+RCE",
    symmetric=True,
    bound=1 + MAX_RCE,
    scale=10.0,
    settings=[
        {"alpha": 10.0, "beta": 0.1, "gamma": 1.5},
        {"alpha": 2.0, "gamma": 0.5, **STOP},
    ],
)
def nfl_rce(u, t, alpha=1.0, beta=1.0, gamma=0.5, A_clamp=1e-4, stop_gradient=False):
    part = nfl(u, t, gamma, stop_gradient=stop_gradient)
    return alpha * part + beta * rce(u, t, A_clamp=A_clamp)


@CASES.entry(
    "NFL+MAE",
    symmetric=True,
    bound=2.0,
    settings=[{"alpha": 10.0, "beta": 0.1, "gamma": 1.0, **STOP}],
)
def nfl_mae(u, t, alpha=1.0, beta=1.0, gamma=0.5, stop_gradient=False):
    return alpha * nfl(u, t, gamma, stop_gradient=stop_gradient) + beta * mae(u, t)


@CASES.entry(
    "NCE+AUL",
    bound=1 + 4 * (6.3**1.5 - 5.3**1.5) / 1.5,
    scale=8.0,
    settings=[
        {"alpha": 10.0, "beta": 0.015, "a": 6.0, "q": 3.0},
        {"alpha": 0.0, "beta": 1.0, "a": 3.0, "q": 0.1},
    ],
)
def nce_aul(u, t, alpha=1.0, beta=4.0, a=6.3, q=1.5):
    return alpha * nce(u, t) + beta * aul(u, t, a, q)


@CASES.entry(
    "NCE+AGCE",
    bound=1 + 4 * (7**1.5 - 6**1.5) / 1.5,
    scale=8.0,
    settings=[
        {"alpha": 50.0, "beta": 0.1, "a": 2.5, "q": 3.0},
        {"alpha": 0.0, "beta": 1.0, "a": 4.0, "q": 0.2},
    ],
)
def nce_agce(u, t, alpha=1.0, beta=4.0, a=6.0, q=1.5):
    return alpha * nce(u, t) + beta * agce(u, t, a, q)


@CASES.entry(
    "NCE+AEL",
    bound=1 + 4,
    floor=4 * math.exp(-1 / 5),
    settings=[{"alpha": 10.0, "beta": 0.1, "a": 1.5}],
)
def nce_ael(u, t, alpha=1.0, beta=4.0, a=5.0):
    return alpha * nce(u, t) + beta * ael(u, t, a)


@CASES.entry(
    "ANL-CE",
    symmetric=True,
    bound=10.0,
    scale=5.0,
    settings=[{"alpha": 10.0, "beta": 1.0, "eps": 0.02}],
)
def anl_ce(u, t, alpha=5.0, beta=5.0, eps=1e-7):
    return alpha * nce(u, t) + beta * nnce(u, t, eps)


@CASES.entry(
    "ANL-FL",
    symmetric=True,
    bound=10.0,
    scale=5.0,
    settings=[
        {"alpha": 20.0, "beta": 1.0, "eps": 0.02, "gamma": 1.0},
        {"alpha": 5.0, "beta": 0.1, **STOP},
    ],
)
def anl_fl(u, t, alpha=5.0, beta=5.0, eps=1e-7, gamma=0.5, stop_gradient=False):
    part = nfl(u, t, gamma, stop_gradient=stop_gradient)
    return alpha * part + beta * nnfl(u, t, gamma, eps, stop_gradient)


CASES.add("ANL-FL-stopped", "ANL-FL", anl_fl, STOP, symmetric=True, **DETACHED)


@CASES.entry(
    "JAL-CE",
    bound=1 + MAX_AMSE,
    floor=amse_floor,
    scale=8.0,
    settings=[{"alpha": 5.0, "beta": 0.1, "a": 5.0}],
)
def jal_ce(u, t, alpha=1.0, beta=1.0, a=30.0):
    return alpha * nce(u, t) + beta * amse(u, t, a)


@CASES.entry(
    "JAL-FL",
    bound=1 + MAX_AMSE,
    floor=amse_floor,
    scale=8.0,
    settings=[{"alpha": 50.0, "beta": 1.0, "a": 20.0, "gamma": 1.5}, {"alpha": 5.0, **STOP}],
)
def jal_fl(u, t, alpha=1.0, beta=1.0, a=30.0, gamma=0.5, stop_gradient=False):
    return alpha * nfl(u, t, gamma, stop_gradient=stop_gradient) + beta * amse(u, t, a)


@CASES.entry(
    "CEeps+MAE", scale=10.0, breaks=TIES, settings=[{"alpha": 0.02, "beta": 1.0, "m": 1e2}]
)
def ece_mae(u, t, alpha=0.01, beta=5.0, m=1e5):
    return alpha * ece(u, t, m) + beta * mae(u, t, 2.0)


@CASES.entry(
    "FLeps+MAE",
    scale=10.0,
    breaks=TIES,
    settings=[{"alpha": 0.5, "beta": 0.3, "m": 1e1, "gamma": 0.7, **STOP}],
)
def efl_mae(u, t, alpha=0.01, beta=5.0, m=1e5, gamma=0.1, stop_gradient=False):
    return alpha * efl(u, t, m, gamma, stop_gradient) + beta * mae(u, t, 2.0)


@CASES.entry(
    "GLS",
    settings=[
        {"smooth_rate": 0.8, "wa": 0.3, "wb": 0.7},
        {"smooth_rate": -0.4, "wa": 1.0, "wb": 2.0},
    ],
)
def gls(u: Tensor, t: int, smooth_rate: float = 0.1, wa: float = 0.0, wb: float = 1.0) -> Tensor:
    smooth = sum(ce(u, k) for k in range(len(u))) / len(u)
    return (wa + wb * (1 - smooth_rate)) * ce(u, t) + wb * smooth_rate * smooth


@CASES.entry("LSR", settings=[{"smooth_rate": 0.4}])
def lsr(u: Tensor, t: int, smooth_rate: float = 0.1) -> Tensor:
    return gls(u, t, smooth_rate)


@CASES.entry("NLS", scale=2.0, settings=[{"smooth_rate": -8.0}])
def nls(u: Tensor, t: int, smooth_rate: float = -1.0) -> Tensor:
    return gls(u, t, smooth_rate)

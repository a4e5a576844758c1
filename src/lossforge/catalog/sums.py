"""Published sums: functions, because a sum needs no class."""

from typing import Unpack

from .. import base as bases
from ..constructions import ClassMean
from ..errors import check_number
from ..loss import Loss, Policy
from .classwise import AMSE, NCE, NFL, NNCE, NNFL
from .entry import FOCAL_CAVEAT, register
from .pointwise import AEL, AGCE, AUL, CE, MAE, RCE
from .ranges import ACTIVE, FOCAL, MARGIN, PASSIVE, log, uniform
from .wrapped import ece, efl


@register(
    "SCE",
    "alpha CE + beta RCE",
    bounded=False,
    paper="wang2019sce",
    tune={"alpha": log(0.005, 20), "beta": log(0.05, 20)},
)
def sce(
    *, alpha: float = 0.1, beta: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
) -> Loss:
    """Symmetric cross entropy."""
    return (alpha * CE() + beta * RCE(A_clamp=A_clamp)).with_policy(**policy)


@register(
    "NCE+RCE",
    "alpha NCE + beta RCE",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    tune={"alpha": ACTIVE, "beta": PASSIVE},
)
def nce_rce(
    *, alpha: float = 1.0, beta: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
) -> Loss:
    """Active passive loss."""
    return (alpha * NCE() + beta * RCE(A_clamp=A_clamp)).with_policy(**policy)


@register(
    "NCE+MAE",
    "alpha NCE + beta (1 - p_y)",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    tune={"alpha": ACTIVE, "beta": PASSIVE},
)
def nce_mae(*, alpha: float = 1.0, beta: float = 1.0, **policy: Unpack[Policy]) -> Loss:
    """Active passive loss."""
    return (alpha * NCE() + beta * MAE()).with_policy(**policy)


@register(
    "NFL+RCE",
    "alpha NFL + beta RCE",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    caveat=FOCAL_CAVEAT,
    tune={"alpha": ACTIVE, "beta": PASSIVE, "gamma": FOCAL},
)
def nfl_rce(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active passive loss."""
    focal = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * focal + beta * RCE()).with_policy(**policy)


@register(
    "NFL+MAE",
    "alpha NFL + beta (1 - p_y)",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    caveat=FOCAL_CAVEAT,
    tune={"alpha": ACTIVE, "beta": PASSIVE, "gamma": FOCAL},
)
def nfl_mae(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active passive loss."""
    focal = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * focal + beta * MAE()).with_policy(**policy)


@register(
    "NCE+AUL",
    "alpha NCE + beta AUL",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "a": log(1.05, 15), "q": log(0.1, 5)},
)
def nce_aul(
    *,
    alpha: float = 1.0,
    beta: float = 4.0,
    a: float = 6.3,
    q: float = 1.5,
    **policy: Unpack[Policy],
) -> Loss:
    """Normalised cross entropy with the asymmetric unhinged loss."""
    return (alpha * NCE() + beta * AUL(a=a, q=q)).with_policy(**policy)


@register(
    "NCE+AGCE",
    "alpha NCE + beta AGCE",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "a": log(0.05, 10), "q": log(0.1, 5)},
)
def nce_agce(
    *,
    alpha: float = 1.0,
    beta: float = 4.0,
    a: float = 6.0,
    q: float = 1.5,
    **policy: Unpack[Policy],
) -> Loss:
    """Normalised cross entropy with asymmetric GCE."""
    return (alpha * NCE() + beta * AGCE(a=a, q=q)).with_policy(**policy)


@register(
    "NCE+AEL",
    "alpha NCE + beta AEL",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "a": log(0.2, 20)},
)
def nce_ael(
    *, alpha: float = 1.0, beta: float = 4.0, a: float = 5.0, **policy: Unpack[Policy]
) -> Loss:
    """Normalised cross entropy with the asymmetric exponential loss."""
    return (alpha * NCE() + beta * AEL(a=a)).with_policy(**policy)


@register(
    "ANL-CE",
    "alpha NCE + beta NNCE",
    kind="symmetric",
    bounded=True,
    paper="ye2023anl",
    caveat="Published with an L1 decay of all weights, which the presets hold as data.",
    tune={"alpha": ACTIVE, "beta": PASSIVE},
)
def anl_ce(
    *, alpha: float = 5.0, beta: float = 5.0, eps: float = 1e-7, **policy: Unpack[Policy]
) -> Loss:
    """Active negative loss."""
    return (alpha * NCE() + beta * NNCE(eps=eps)).with_policy(**policy)


@register(
    "ANL-FL",
    "alpha NFL + beta NNFL",
    kind="symmetric",
    bounded=True,
    paper="ye2023anl",
    caveat=FOCAL_CAVEAT + " Published with an L1 decay of all weights.",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "gamma": FOCAL},
)
def anl_fl(
    *,
    alpha: float = 5.0,
    beta: float = 5.0,
    gamma: float = 0.5,
    eps: float = 1e-7,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active negative loss."""
    active = NFL(gamma=gamma, stop_gradient=stop_gradient)
    negative = NNFL(gamma=gamma, eps=eps, stop_gradient=stop_gradient)
    return (alpha * active + beta * negative).with_policy(**policy)


@register(
    "JAL-CE",
    "alpha NCE + beta AMSE",
    kind="asymmetric",
    bounded=True,
    paper="wang2025jal",
    aliases=("NCE+AMSE",),
    caveat="Published with an L1 decay of all weights, which the presets hold as data.",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "a": log(1.05, 100)},
)
def jal_ce(
    *, alpha: float = 1.0, beta: float = 1.0, a: float = 30.0, **policy: Unpack[Policy]
) -> Loss:
    """Joint asymmetric loss."""
    return (alpha * NCE() + beta * AMSE(a=a)).with_policy(**policy)


@register(
    "JAL-FL",
    "alpha NFL + beta AMSE",
    kind="asymmetric",
    bounded=True,
    paper="wang2025jal",
    aliases=("NFL+AMSE",),
    caveat=FOCAL_CAVEAT + " Published with an L1 decay of all weights.",
    tune={"alpha": ACTIVE, "beta": PASSIVE, "a": log(1.05, 100), "gamma": FOCAL},
)
def jal_fl(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    a: float = 30.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Joint asymmetric loss."""
    active = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * active + beta * AMSE(a=a)).with_policy(**policy)


@register(
    "CEeps+MAE",
    "alpha ECE + 2 beta (1 - p_y)",
    bounded=False,
    paper="wang2024epssoftmax",
    aliases=("ECE+MAE",),
    tune={"alpha": log(0.002, 10), "beta": log(0.1, 30), "m": MARGIN},
)
def ece_mae(
    *, alpha: float = 0.01, beta: float = 5.0, m: float = 1e5, **policy: Unpack[Policy]
) -> Loss:
    """Cross entropy of the eps-softmax with mean absolute error."""
    return (alpha * ece(m=m) + beta * MAE(scale=2.0)).with_policy(**policy)


@register(
    "FLeps+MAE",
    "alpha EFL + 2 beta (1 - p_y)",
    bounded=False,
    paper="wang2024epssoftmax",
    aliases=("EFL+MAE",),
    caveat=FOCAL_CAVEAT,
    tune={"alpha": log(0.002, 10), "beta": log(0.1, 30), "gamma": FOCAL, "m": MARGIN},
)
def efl_mae(
    *,
    alpha: float = 0.01,
    beta: float = 5.0,
    gamma: float = 0.1,
    m: float = 1e5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Focal loss of the eps-softmax with mean absolute error."""
    focal = efl(gamma=gamma, m=m, stop_gradient=stop_gradient)
    return (alpha * focal + beta * MAE(scale=2.0)).with_policy(**policy)


@register(
    "GLS",
    "-(wa + wb (1 - r)) log p_y - wb r/K sum_k log p_k, r = smooth_rate",
    bounded=False,
    paper="wei2022nls",
    tune={"smooth_rate": uniform(-8, 0.95)},
)
def gls(
    *,
    smooth_rate: float = 0.1,
    wa: float = 0.0,
    wb: float = 1.0,
    **policy: Unpack[Policy],
) -> Loss:
    """Generalised label smoothing, of either sign."""
    check_number("smooth_rate", smooth_rate, "1 or less", lambda v: v <= 1)
    own = (wa + wb * (1 - smooth_rate)) * CE()
    return (own + wb * smooth_rate * ClassMean(bases.Log())).with_policy(**policy)


@register(
    "LSR",
    "-(1 - r) log p_y - r/K sum_k log p_k, r = smooth_rate",
    bounded=False,
    paper="szegedy2016lsr",
    tune={"smooth_rate": uniform(0, 0.95)},
)
def lsr(*, smooth_rate: float = 0.1, **policy: Unpack[Policy]) -> Loss:
    """Label smoothing."""
    check_number("smooth_rate", smooth_rate, "in [0, 1]", lambda v: 0 <= v <= 1)
    return gls(smooth_rate=smooth_rate, **policy)


@register(
    "NLS",
    "-(1 - r) log p_y - r/K sum_k log p_k, r = smooth_rate < 0",
    bounded=False,
    paper="wei2022nls",
    caveat="Usually used after a warm-up with cross entropy.",
    tune={"smooth_rate": uniform(-10, -0.05)},
)
def nls(*, smooth_rate: float = -1.0, **policy: Unpack[Policy]) -> Loss:
    """Negative label smoothing."""
    check_number("smooth_rate", smooth_rate, "negative", lambda v: v < 0)
    return gls(smooth_rate=smooth_rate, **policy)

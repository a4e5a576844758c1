"""Published sums and wrapped losses: functions, because a sum needs no class."""

from dataclasses import dataclass
from typing import Unpack

from torch import Tensor

from .. import base as bases
from ..constructions import (
    BackwardCorrection,
    ClassMean,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
    Sparsity,
)
from ..errors import check_number
from ..loss import Loss, Policy
from .classwise import AMSE, NCE, NFL, NNCE, NNFL
from .pointwise import AEL, AGCE, AUL, CE, FL, GCE, MAE, RCE


def sce(
    *, alpha: float = 0.1, beta: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
) -> Loss:
    """Symmetric cross entropy: alpha CE + beta RCE."""
    return (alpha * CE() + beta * RCE(A_clamp=A_clamp)).with_policy(**policy)


def nce_rce(
    *, alpha: float = 1.0, beta: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
) -> Loss:
    """Active passive loss: alpha NCE + beta RCE."""
    return (alpha * NCE() + beta * RCE(A_clamp=A_clamp)).with_policy(**policy)


def nce_mae(*, alpha: float = 1.0, beta: float = 1.0, **policy: Unpack[Policy]) -> Loss:
    """Active passive loss: alpha NCE + beta (1 - p_y)."""
    return (alpha * NCE() + beta * MAE()).with_policy(**policy)


def nfl_rce(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active passive loss: alpha NFL + beta RCE."""
    focal = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * focal + beta * RCE()).with_policy(**policy)


def nfl_mae(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active passive loss: alpha NFL + beta (1 - p_y)."""
    focal = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * focal + beta * MAE()).with_policy(**policy)


def nce_aul(
    *,
    alpha: float = 1.0,
    beta: float = 4.0,
    a: float = 6.3,
    q: float = 1.5,
    **policy: Unpack[Policy],
) -> Loss:
    """Normalised cross entropy with the asymmetric unhinged loss: alpha NCE + beta AUL."""
    return (alpha * NCE() + beta * AUL(a=a, q=q)).with_policy(**policy)


def nce_agce(
    *,
    alpha: float = 1.0,
    beta: float = 4.0,
    a: float = 6.0,
    q: float = 1.5,
    **policy: Unpack[Policy],
) -> Loss:
    """Normalised cross entropy with asymmetric GCE: alpha NCE + beta AGCE."""
    return (alpha * NCE() + beta * AGCE(a=a, q=q)).with_policy(**policy)


def nce_ael(
    *, alpha: float = 1.0, beta: float = 4.0, a: float = 5.0, **policy: Unpack[Policy]
) -> Loss:
    """Normalised cross entropy with the asymmetric exponential loss: alpha NCE + beta AEL."""
    return (alpha * NCE() + beta * AEL(a=a)).with_policy(**policy)


def anl_ce(
    *, alpha: float = 5.0, beta: float = 5.0, eps: float = 1e-7, **policy: Unpack[Policy]
) -> Loss:
    """Active negative loss: alpha NCE + beta NNCE."""
    return (alpha * NCE() + beta * NNCE(eps=eps)).with_policy(**policy)


def anl_fl(
    *,
    alpha: float = 5.0,
    beta: float = 5.0,
    gamma: float = 0.5,
    eps: float = 1e-7,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Active negative loss: alpha NFL + beta NNFL."""
    active = NFL(gamma=gamma, stop_gradient=stop_gradient)
    negative = NNFL(gamma=gamma, eps=eps, stop_gradient=stop_gradient)
    return (alpha * active + beta * negative).with_policy(**policy)


def jal_ce(
    *, alpha: float = 1.0, beta: float = 1.0, a: float = 30.0, **policy: Unpack[Policy]
) -> Loss:
    """Joint asymmetric loss: alpha NCE + beta AMSE."""
    return (alpha * NCE() + beta * AMSE(a=a)).with_policy(**policy)


def jal_fl(
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    a: float = 30.0,
    gamma: float = 0.5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Joint asymmetric loss: alpha NFL + beta AMSE."""
    active = NFL(gamma=gamma, stop_gradient=stop_gradient)
    return (alpha * active + beta * AMSE(a=a)).with_policy(**policy)


def ce_lc(
    *,
    delta: float = 1.0,
    p: float = 2.0,
    as_released: bool = False,
    norm_eps: float = 1e-7,
    **policy: Unpack[Policy],
) -> Loss:
    """Cross entropy of clipped logits."""
    clip = LogitClip(CE(), delta=delta, p=p, as_released=as_released, norm_eps=norm_eps)
    return clip.with_policy(**policy)


def ece(*, m: float = 1e5, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy of the eps-softmax."""
    return EpsSoftmax(CE(), m=m, **policy)


def efl(
    *, gamma: float = 0.1, m: float = 1e5, stop_gradient: bool = False, **policy: Unpack[Policy]
) -> Loss:
    """Focal loss of the eps-softmax."""
    return EpsSoftmax(FL(gamma=gamma, stop_gradient=stop_gradient), m=m, **policy)


def ece_mae(
    *, alpha: float = 0.01, beta: float = 5.0, m: float = 1e5, **policy: Unpack[Policy]
) -> Loss:
    """Cross entropy of the eps-softmax with mean absolute error: alpha ECE + 2 beta (1 - p_y)."""
    return (alpha * ece(m=m) + beta * MAE(scale=2.0)).with_policy(**policy)


def efl_mae(
    *,
    alpha: float = 0.01,
    beta: float = 5.0,
    gamma: float = 0.1,
    m: float = 1e5,
    stop_gradient: bool = False,
    **policy: Unpack[Policy],
) -> Loss:
    """Focal loss of the eps-softmax with mean absolute error: alpha EFL + 2 beta (1 - p_y)."""
    focal = efl(gamma=gamma, m=m, stop_gradient=stop_gradient)
    return (alpha * focal + beta * MAE(scale=2.0)).with_policy(**policy)


def gls(
    *,
    smooth_rate: float = 0.1,
    wa: float = 0.0,
    wb: float = 1.0,
    **policy: Unpack[Policy],
) -> Loss:
    """Generalised label smoothing: (wa + wb (1 - r)) CE + wb r mean_k(-log p_k), r of any sign."""
    check_number("smooth_rate", smooth_rate, "1 or less", lambda v: v <= 1)
    own = (wa + wb * (1 - smooth_rate)) * CE()
    return (own + wb * smooth_rate * ClassMean(bases.Log())).with_policy(**policy)


def lsr(*, smooth_rate: float = 0.1, **policy: Unpack[Policy]) -> Loss:
    """Label smoothing: (1 - r) CE + r mean_k(-log p_k), r in [0, 1]."""
    check_number("smooth_rate", smooth_rate, "in [0, 1]", lambda v: 0 <= v <= 1)
    return gls(smooth_rate=smooth_rate, **policy)


def nls(*, smooth_rate: float = -1.0, **policy: Unpack[Policy]) -> Loss:
    """Negative label smoothing: (1 - r) CE + r mean_k(-log p_k), r < 0."""
    check_number("smooth_rate", smooth_rate, "negative", lambda v: v < 0)
    return gls(smooth_rate=smooth_rate, **policy)


def sr(
    *,
    base: str | Loss = "CE",
    tau: float = 0.5,
    p: float = 0.1,
    lamb: float = 1.2,
    normalize: bool = True,
    **policy: Unpack[Policy],
) -> Loss:
    """Sparse regularisation of sharpened logits: L + lamb sum_k p_k^p."""
    inner = _sparse_base(base) + lamb * Sparsity(p=p)
    return Sharpened(inner, tau=tau, normalize=normalize, **policy)


def _sparse_base(base: str | Loss) -> Loss:
    """A loss, or the name of one of the three that the paper regularises."""
    if isinstance(base, Loss):
        return base
    named: dict[str, Loss] = {"ce": CE(), "fl": FL(), "gce": GCE()}
    if str(base).lower() not in named:
        raise ValueError(f"base must be a loss, or one of CE, FL, GCE, got {base!r}")
    return named[base.lower()]


@dataclass(frozen=True)
class SRSchedule:
    """The growth of SR's penalty: lamb times rho for every `freq` epochs done.

    Args:
        lamb: The penalty at the start.
        rho: Its growth factor.
        freq: Epochs between two steps.
    """

    lamb: float = 1.2
    rho: float = 1.03
    freq: int = 1

    def __post_init__(self) -> None:
        check_number("lamb", self.lamb, "0 or more", lambda v: v >= 0)
        check_number("rho", self.rho, "positive", lambda v: v > 0)
        check_number("freq", self.freq, "1 or more", lambda v: v >= 1)

    def __call__(self, epoch: int) -> float:
        """The penalty in epoch `epoch`, counted from 0."""
        return float(self.lamb * self.rho ** (epoch // self.freq))


def forward(*, T: Tensor, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy of the noisy-label probabilities, -log sum_i p_i T[i, y]."""
    return ForwardCorrection(CE(), T, **policy)


def backward(*, T: Tensor, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy corrected by the inverse of T, -sum_j Tinv[y, j] log p_j."""
    return BackwardCorrection(CE(), T, **policy)

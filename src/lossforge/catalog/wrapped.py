"""Published wrappers of a simpler loss: what is done to the logits or the probabilities first."""

from dataclasses import dataclass
from typing import Unpack

from torch import Tensor

from ..constructions import (
    BackwardCorrection,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
    Sparsity,
)
from ..errors import check_number
from ..loss import Loss, Policy
from .entry import CLAMP_CAVEAT, FOCAL_CAVEAT, register
from .pointwise import CE, FL, GCE
from .ranges import FOCAL, MARGIN, log


@register(
    "CE+LC",
    "-log softmax(z min(1, delta / |z|))_y",
    bounded=True,
    paper="wei2023logitclip",
    aliases=(
        "LogitClip",
        "LC",
    ),
    caveat="Released code rescales to delta above a norm of 1 / delta (as_released=True).",
    tune={"delta": log(0.1, 20)},
)
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


@register(
    "ECE",
    "-log q_y, q = (p + m [k = argmax p]) / (1 + m)",
    bounded=False,
    paper="wang2024epssoftmax",
    aliases=("CEeps",),
    caveat="Jumps where the arg-max changes. " + CLAMP_CAVEAT,
    tune={"m": MARGIN},
)
def ece(*, m: float = 1e5, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy of the eps-softmax."""
    return EpsSoftmax(CE(), m=m, **policy)


@register(
    "EFL",
    "-(1 - q_y)^gamma log q_y, q = (p + m [k = argmax p]) / (1 + m)",
    bounded=False,
    paper="wang2024epssoftmax",
    aliases=("FLeps",),
    caveat="Jumps where the arg-max changes. " + FOCAL_CAVEAT,
    tune={"gamma": FOCAL, "m": MARGIN},
)
def efl(
    *, gamma: float = 0.1, m: float = 1e5, stop_gradient: bool = False, **policy: Unpack[Policy]
) -> Loss:
    """Focal loss of the eps-softmax."""
    return EpsSoftmax(FL(gamma=gamma, stop_gradient=stop_gradient), m=m, **policy)


@register(
    "SR",
    "L(h) + lamb sum_k softmax(h)_k^p, h = z / (|z| tau)",
    bounded=True,
    paper="zhou2021sr",
    caveat="lamb grows with the epochs in the published runs: see SRSchedule. Released code "
    "detaches the factor of a focal base: base=FL(stop_gradient=True).",
    tune={"tau": log(0.05, 1), "p": log(0.005, 0.9), "lamb": log(0.1, 30)},
)
def sr(
    *,
    base: str | Loss = "CE",
    tau: float = 0.5,
    p: float = 0.1,
    lamb: float = 1.2,
    normalize: bool = True,
    **policy: Unpack[Policy],
) -> Loss:
    """Sparse regularisation of sharpened logits."""
    inner = _sparse_base(base) + lamb * Sparsity(p=p)
    return Sharpened(inner, tau=tau, normalize=normalize, **policy)


def _sparse_base(base: str | Loss) -> Loss:
    """Return a loss, given it or the name of one of the three that the paper regularises."""
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
        """Return the penalty in epoch `epoch`, counted from 0."""
        return float(self.lamb * self.rho ** (epoch // self.freq))


@register(
    "forward",
    "-log sum_i p_i T[i, y]",
    bounded=True,
    paper="patrini2017correction",
    caveat="Bounded where T has no zero.",
)
def forward(*, T: Tensor, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy of the noisy-label probabilities."""
    return ForwardCorrection(CE(), T, **policy)


@register(
    "backward",
    "-sum_j Tinv[y, j] log p_j",
    bounded=False,
    paper="patrini2017correction",
    caveat="Unbounded below: the inverse of T has negative entries.",
)
def backward(*, T: Tensor, **policy: Unpack[Policy]) -> Loss:
    """Cross entropy corrected by the inverse of T."""
    return BackwardCorrection(CE(), T, **policy)

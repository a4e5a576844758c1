"""Losses of the label's probability alone."""

import math
from collections.abc import Sequence
from typing import Unpack

from .. import base
from ..constructions import TargetLoss
from ..constructions.views import check_weights
from ..errors import check_number
from ..loss import Policy
from .entry import CLAMP_CAVEAT, FOCAL_CAVEAT, UNVERIFIED_CAVEAT, Named, register
from .ranges import SCALE, log, uniform, whole


@register("CE", "-log p_y", bounded=False, paper="good1952")
class CE(Named, TargetLoss):
    """Cross entropy, equal to `torch.nn.CrossEntropyLoss` but for NaN gradients of ignored rows."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Log(), **policy)


@register(
    "FL",
    "-(1 - p_y)^gamma log p_y",
    bounded=False,
    paper="lin2017focal",
    caveat=FOCAL_CAVEAT,
    tune={"gamma": uniform(0, 5)},
)
class FL(Named, TargetLoss):
    """Focal loss.

    Args:
        gamma: Exponent, 0 (cross entropy) or more.
        stop_gradient: Hold the factor constant in the gradient, as all released code does.
    """

    def __init__(
        self, *, gamma: float = 0.5, stop_gradient: bool = False, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(base.Focal(gamma, stop_gradient), **policy)


@register(
    "MAE",
    "scale (1 - p_y)",
    kind="symmetric",
    bounded=True,
    paper="ghosh2017mae",
    caveat="Released code has it with a factor of 1 or 2, depending on the repository (scale).",
    tune={"scale": SCALE},
)
class MAE(Named, TargetLoss):
    """Mean absolute error.

    Args:
        scale: A factor; 2 gives the L1 distance to the label.
    """

    def __init__(self, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Linear(), scale=scale, **policy)


@register(
    "RCE",
    "-scale log(A_clamp) (1 - p_y)",
    kind="symmetric",
    bounded=True,
    paper="wang2019sce",
    caveat="Nothing but a rescaled MAE. " + CLAMP_CAVEAT,
    tune={"scale": SCALE},
)
class RCE(Named, TargetLoss):
    """Reverse cross entropy, a rescaled mean absolute error.

    Args:
        scale: A factor.
        A_clamp: What stands for 0 in the label inside the logarithm, in (0, 1).
    """

    def __init__(
        self, *, scale: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
    ) -> None:
        check_number("A_clamp", A_clamp, "in (0, 1)", lambda v: 0 < v < 1)
        super().__init__(base.Linear(), scale=-math.log(A_clamp) * scale, **policy)


@register(
    "GCE",
    "(1 - p_y^q) / q",
    bounded=True,
    paper="zhang2018gce",
    caveat=CLAMP_CAVEAT,
    tune={"q": uniform(0.02, 1)},
)
class GCE(Named, TargetLoss):
    """Generalised cross entropy.

    Args:
        q: From cross entropy (towards 0) to mean absolute error (1), in (0, 1].
    """

    def __init__(self, *, q: float = 0.7, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        super().__init__(base.Power(q), **policy)


@register(
    "TGCE",
    "(1 - max(p_y, k)^q) / q",
    bounded=True,
    paper="zhang2018gce",
    caveat="A known port subtracts the constant (1 - k^q) / q and selects on test accuracy.",
    tune={"q": uniform(0.02, 1), "k": uniform(0.02, 0.98)},
)
class TGCE(Named, TargetLoss):
    """Truncated generalised cross entropy.

    Args:
        q: As in `GCE`, in (0, 1].
        k: The probability below which a sample is given up, in (0, 1).
    """

    def __init__(self, *, q: float = 0.7, k: float = 0.5, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        check_number("k", k, "in (0, 1)", lambda v: 0 < v < 1)
        super().__init__(base.Truncated(base.Power(q), k), **policy)


@register(
    "AUL",
    "((a - p_y)^q - (a - 1)^q) / q",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    tune={"a": log(1.05, 15), "q": log(0.1, 5)},
)
class AUL(Named, TargetLoss):
    """Asymmetric unhinged loss.

    Args:
        a: Larger than 1.
        q: Positive.
    """

    def __init__(self, *, a: float = 5.5, q: float = 3.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.MirroredPower(a, q), **policy)


@register(
    "AGCE",
    "((a + 1)^q - (a + p_y)^q) / q",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    tune={"a": log(0.05, 10), "q": log(0.1, 5)},
)
class AGCE(Named, TargetLoss):
    """Asymmetric generalised cross entropy.

    Args:
        a: Positive.
        q: Positive.
    """

    def __init__(self, *, a: float = 0.6, q: float = 0.6, **policy: Unpack[Policy]) -> None:
        super().__init__(base.ShiftedPower(a, q), **policy)


@register(
    "AEL",
    "exp(-p_y / a)",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    caveat="Its minimum is exp(-1 / a), not 0.",
    tune={"a": log(0.2, 20)},
)
class AEL(Named, TargetLoss):
    """Asymmetric exponential loss.

    Args:
        a: Positive.
    """

    def __init__(self, *, a: float = 2.5, **policy: Unpack[Policy]) -> None:
        decay = base.ExponentialDecay(a)
        super().__init__(decay, offset=math.exp(-1 / a), **policy)


@register(
    "Taylor-CE",
    "sum_{j = 1..t} (1 - p_y)^j / j",
    bounded=True,
    paper="feng2020taylor",
    aliases=("TaylorCE",),
    caveat="Symmetric for t = 1. No official code exists.",
    tune={"t": whole(1, 12)},
)
class TaylorCE(Named, TargetLoss):
    """Taylor cross entropy.

    Args:
        t: Number of terms; 1 is mean absolute error, infinitely many cross entropy.
    """

    def __init__(self, *, t: int = 2, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Taylor(t), **policy)


@register(
    "JS",
    "Z (w_0 KL(e_y, m) + w_1 KL(p, m)), m = w_0 e_y + w_1 p, Z = -1 / ((1 - w_0) log(1 - w_0))",
    bounded=True,
    paper="englesson2021gjs",
)
class JS(Named, TargetLoss):
    """Jensen-Shannon divergence between the label and the prediction.

    Args:
        weights: Of the label and of the prediction, summing to one.
        scaled: Whether to multiply by Z.
    """

    def __init__(
        self,
        *,
        weights: Sequence[float] = (0.5, 0.5),
        scaled: bool = True,
        **policy: Unpack[Policy],
    ) -> None:
        check_weights(weights)
        if len(weights) != 2:
            raise ValueError(f"weights must be two numbers, got {weights}; GJS takes more")
        scale = divergence_scale(weights[0]) if scaled else 1.0
        super().__init__(base.JensenShannon(weights[0]), scale=scale, **policy)


@register(
    "PHuber-CE",
    "-log p_y, or log tau + 1 - tau p_y where p_y <= 1 / tau",
    bounded=True,
    paper="menon2020phuber",
    aliases=("PHuberCE",),
    tune={"tau": log(1.1, 50)},
)
class PHuberCE(Named, TargetLoss):
    """Partially Huberised cross entropy.

    Args:
        tau: Largest slope, 1 or more.
    """

    def __init__(self, *, tau: float = 10.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.HuberLog(tau), **policy)


@register(
    "PHuber-GCE",
    "(1 - p_y^q) / q, linear where p_y <= tau^(1 / (q - 1))",
    bounded=True,
    paper="menon2020phuber",
    aliases=("PHuberGCE",),
    tune={"q": uniform(0.02, 0.98), "tau": log(1.1, 50)},
)
class PHuberGCE(Named, TargetLoss):
    """Partially Huberised generalised cross entropy.

    Args:
        q: As in `GCE`, in (0, 1).
        tau: Largest slope, 1 or more.
    """

    def __init__(self, *, q: float = 0.7, tau: float = 10.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.HuberPower(q, tau), **policy)


@register(
    "VCE",
    "-log(a + p_y)",
    kind="asymmetric",
    bounded=True,
    paper="vsl2025",
    caveat=UNVERIFIED_CAVEAT,
    unverified=True,
    tune={"a": log(1.05, 30)},
)
class VCE(Named, TargetLoss):
    """Variation-bounded cross entropy; inferred, not verified.

    Args:
        a: Positive.
    """

    def __init__(self, *, a: float = 4.0, **policy: Unpack[Policy]) -> None:
        shifted = base.ShiftedLog(a)
        super().__init__(shifted, offset=-math.log(a + 1), **policy)


@register(
    "VEL",
    "exp(-p_y / a)",
    kind="asymmetric",
    bounded=True,
    paper="vsl2025",
    caveat=UNVERIFIED_CAVEAT,
    unverified=True,
    tune={"a": log(0.2, 20)},
)
class VEL(AEL):
    """Variation-bounded exponential loss; inferred, not verified."""


@register(
    "VMSE",
    "(a - p_y)^2",
    kind="asymmetric",
    bounded=True,
    paper="vsl2025",
    caveat=UNVERIFIED_CAVEAT,
    unverified=True,
    tune={"a": log(1.05, 30)},
)
class VMSE(Named, TargetLoss):
    """Variation-bounded squared error; inferred, not verified.

    Args:
        a: Larger than 1.
    """

    def __init__(self, *, a: float = 4.0, **policy: Unpack[Policy]) -> None:
        square = base.MirroredPower(a, 2.0)
        super().__init__(square, scale=2.0, offset=(a - 1) ** 2, **policy)


def divergence_scale(pi0: float) -> float:
    """Return the factor that makes divergences of different weights comparable."""
    return -1 / ((1 - pi0) * math.log(1 - pi0))

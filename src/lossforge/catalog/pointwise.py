"""Losses of the label's probability alone."""

import math
from collections.abc import Sequence
from typing import Unpack

from .. import base
from ..constructions import TargetLoss, check_weights
from ..errors import check_number
from ..loss import Policy
from .named import Named


class CE(Named, TargetLoss):
    r"""Cross entropy, :math:`-\log p_y`: equal to `torch.nn.CrossEntropyLoss` in every respect."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Log(), **policy)
        self.settings = {}


class FL(Named, TargetLoss):
    r"""Focal loss, :math:`-(1 - p_y)^\gamma \log p_y`.

    Args:
        gamma: Exponent, 0 (cross entropy) or more.
        stop_gradient: Hold the factor constant in the gradient, as all released code does.
    """

    def __init__(
        self, *, gamma: float = 0.5, stop_gradient: bool = False, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(base.Focal(gamma, stop_gradient), **policy)
        self.settings = {"gamma": gamma, "stop_gradient": stop_gradient}


class MAE(Named, TargetLoss):
    r"""Mean absolute error, :math:`s (1 - p_y)`.

    Args:
        scale: The factor s; 2 gives the L1 distance to the label.
    """

    def __init__(self, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Linear(), scale=scale, **policy)
        self.settings = {"scale": scale}


class RCE(Named, TargetLoss):
    r"""Reverse cross entropy, :math:`-s \log(A) (1 - p_y)`: mean absolute error, rescaled.

    Args:
        scale: The factor s.
        A_clamp: What stands for 0 in the label inside the logarithm, in (0, 1).
    """

    def __init__(
        self, *, scale: float = 1.0, A_clamp: float = 1e-4, **policy: Unpack[Policy]
    ) -> None:
        check_number("A_clamp", A_clamp, "in (0, 1)", lambda v: 0 < v < 1)
        super().__init__(base.Linear(), scale=-math.log(A_clamp) * scale, **policy)
        self.settings = {"scale": scale, "A_clamp": A_clamp}


class GCE(Named, TargetLoss):
    r"""Generalised cross entropy, :math:`(1 - p_y^q) / q`.

    Args:
        q: From cross entropy (towards 0) to mean absolute error (1), in (0, 1].
    """

    def __init__(self, *, q: float = 0.7, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        super().__init__(base.Power(q), **policy)
        self.settings = {"q": q}


class TGCE(Named, TargetLoss):
    r"""Truncated generalised cross entropy, :math:`(1 - \max(p_y, k)^q) / q`.

    Args:
        q: As in `GCE`, in (0, 1].
        k: The probability below which a sample is given up, in (0, 1).
    """

    def __init__(self, *, q: float = 0.7, k: float = 0.5, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        check_number("k", k, "in (0, 1)", lambda v: 0 < v < 1)
        super().__init__(base.Truncated(base.Power(q), k), **policy)
        self.settings = {"q": q, "k": k}


class AUL(Named, TargetLoss):
    r"""Asymmetric unhinged loss, :math:`((a - p_y)^q - (a - 1)^q) / q`.

    Args:
        a: Larger than 1.
        q: Positive.
    """

    def __init__(self, *, a: float = 5.5, q: float = 3.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.MirroredPower(a, q), **policy)
        self.settings = {"a": a, "q": q}


class AGCE(Named, TargetLoss):
    r"""Asymmetric generalised cross entropy, :math:`((a + 1)^q - (a + p_y)^q) / q`.

    Args:
        a: Positive.
        q: Positive.
    """

    def __init__(self, *, a: float = 0.6, q: float = 0.6, **policy: Unpack[Policy]) -> None:
        super().__init__(base.ShiftedPower(a, q), **policy)
        self.settings = {"a": a, "q": q}


class AEL(Named, TargetLoss):
    r"""Asymmetric exponential loss, :math:`\exp(-p_y / a)`, smallest at :math:`e^{-1/a}`.

    Args:
        a: Positive.
    """

    def __init__(self, *, a: float = 2.5, **policy: Unpack[Policy]) -> None:
        decay = base.ExponentialDecay(a)
        super().__init__(decay, offset=math.exp(-1 / a), **policy)
        self.settings = {"a": a}


class TaylorCE(Named, TargetLoss):
    r"""Taylor cross entropy, :math:`\sum_{j=1}^t (1 - p_y)^j / j`.

    Args:
        t: Number of terms; 1 is mean absolute error, infinitely many cross entropy.
    """

    def __init__(self, *, t: int = 2, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Taylor(t), **policy)
        self.settings = {"t": t}


class JS(Named, TargetLoss):
    r"""Jensen-Shannon divergence between the label and the prediction.

    Args:
        weights: Of the label and of the prediction, summing to one.
        scaled: Divide by :math:`-(1 - \pi_0) \log(1 - \pi_0)`.
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
        self.settings = {"weights": tuple(weights), "scaled": scaled}


class PHuberCE(Named, TargetLoss):
    r"""Partially Huberised cross entropy: linear where :math:`p_y \le 1/\tau`.

    Args:
        tau: Largest slope, 1 or more.
    """

    def __init__(self, *, tau: float = 10.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.HuberLog(tau), **policy)
        self.settings = {"tau": tau}


class PHuberGCE(Named, TargetLoss):
    r"""Partially Huberised generalised cross entropy: linear below :math:`\tau^{1/(q-1)}`.

    Args:
        q: As in `GCE`, in (0, 1).
        tau: Largest slope, 1 or more.
    """

    def __init__(self, *, q: float = 0.7, tau: float = 10.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.HuberPower(q, tau), **policy)
        self.settings = {"q": q, "tau": tau}


class VCE(Named, TargetLoss):
    r"""Variation-bounded cross entropy, :math:`-\log(a + p_y)`; inferred, not verified.

    Args:
        a: Positive.
    """

    def __init__(self, *, a: float = 4.0, **policy: Unpack[Policy]) -> None:
        shifted = base.ShiftedLog(a)
        super().__init__(shifted, offset=-math.log(a + 1), **policy)
        self.settings = {"a": a}


class VEL(AEL):
    r"""Variation-bounded exponential loss, :math:`\exp(-p_y / a)`; inferred, not verified."""


class VMSE(Named, TargetLoss):
    r"""Variation-bounded squared error, :math:`(a - p_y)^2`; inferred, not verified.

    Args:
        a: Larger than 1.
    """

    def __init__(self, *, a: float = 4.0, **policy: Unpack[Policy]) -> None:
        square = base.MirroredPower(a, 2.0)
        super().__init__(square, scale=2.0, offset=(a - 1) ** 2, **policy)
        self.settings = {"a": a}


def divergence_scale(pi0: float) -> float:
    """What the divergences are divided by to be comparable over weights, inverted."""
    return -1 / ((1 - pi0) * math.log(1 - pi0))

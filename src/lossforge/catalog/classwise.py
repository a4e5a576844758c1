"""Losses that look at every class: normalised, distances, ranking, several views."""

import math
from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .. import base
from ..constructions import (
    Emphasised,
    Negative,
    Normalised,
    NormalisedNegative,
    PowerDistance,
    ViewsDivergence,
)
from ..constructions.views import check_weights
from ..errors import LARGEST, check_factor, check_number
from ..loss import Loss, Policy
from .entry import FOCAL_CAVEAT, UNVERIFIED_CAVEAT, Named, register
from .pointwise import divergence_scale
from .ranges import FOCAL, SCALE, log, uniform

_NEGATIVE = "The target is a class the sample does not have; see complementary_labels."


@register(
    "NCE",
    "scale log p_y / sum_k log p_k",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    tune={"scale": SCALE},
)
class NCE(Named, Normalised):
    """Normalised cross entropy.

    Args:
        scale: A factor.
    """

    def __init__(self, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Log(), scale=scale, **policy)


@register(
    "NFL",
    "scale f_y / sum_k f_k, f = -(1 - p)^gamma log p",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    caveat=FOCAL_CAVEAT,
    tune={"gamma": FOCAL, "scale": SCALE},
)
class NFL(Named, Normalised):
    """Normalised focal loss.

    Args:
        gamma: Exponent of the focal factor.
        scale: A factor.
        stop_gradient: Hold the focal factors constant in the gradient, as released code does.
    """

    def __init__(
        self,
        *,
        gamma: float = 0.5,
        scale: float = 1.0,
        stop_gradient: bool = False,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(base.Focal(gamma, stop_gradient), scale=scale, **policy)


@register(
    "NGCE",
    "scale (1 - p_y^q) / sum_k (1 - p_k^q)",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    tune={"q": uniform(0.02, 1), "scale": SCALE},
)
class NGCE(Named, Normalised):
    """Normalised generalised cross entropy.

    Args:
        q: As in `GCE`, in (0, 1].
        scale: A factor.
    """

    def __init__(self, *, q: float = 0.7, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        super().__init__(base.Power(q), scale=scale, **policy)


@register(
    "NMAE",
    "scale (1 - p_y) / (K - 1)",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    caveat="Half of it in APL's code, which divides 1 - p_y by the sum of 2 (1 - p_k) over k.",
    tune={"scale": SCALE},
)
class NMAE(Named, Normalised):
    """Normalised mean absolute error.

    Args:
        scale: A factor.
    """

    def __init__(self, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Linear(), scale=scale, **policy)


@register(
    "NRCE",
    "scale RCE_y / sum_k RCE_k = scale (1 - p_y) / (K - 1)",
    kind="symmetric",
    bounded=True,
    paper="ma2020apl",
    caveat="The same loss as NMAE. APL's code multiplies RCE by (K - 1) / 4 instead of dividing it "
    "by its sum over the classes.",
    tune={"scale": SCALE},
)
class NRCE(NMAE):
    """Normalised reverse cross entropy."""


@register(
    "NNCE",
    "1 - s_y / sum_k s_k, s = log max(p, eps) - log eps",
    kind="symmetric",
    bounded=True,
    paper="ye2023anl",
    caveat="eps is a real parameter: 1e-7 and 1e-8 give different losses.",
    tune={"eps": log(1e-10, 1e-2)},
)
class NNCE(Named, NormalisedNegative):
    """Normalised negative cross entropy.

    Args:
        eps: Probability below which a class counts for nothing; a real parameter of the loss.
    """

    def __init__(self, *, eps: float = 1e-7, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Truncated(base.Log(), eps), **policy)


@register(
    "NNFL",
    "1 - s_y / sum_k s_k, s = f(eps) - f(max(p, eps)), f = -(1 - p)^gamma log p",
    kind="symmetric",
    bounded=True,
    paper="ye2023anl",
    caveat=FOCAL_CAVEAT,
    tune={"gamma": FOCAL, "eps": log(1e-10, 1e-2)},
)
class NNFL(Named, NormalisedNegative):
    """Normalised negative focal loss.

    Args:
        gamma: Exponent of the focal factor.
        eps: Probability below which a class counts for nothing.
        stop_gradient: Hold the focal factors constant in the gradient, as released code does.
    """

    def __init__(
        self,
        *,
        gamma: float = 0.5,
        eps: float = 1e-7,
        stop_gradient: bool = False,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(base.Truncated(base.Focal(gamma, stop_gradient), eps), **policy)


@register(
    "MSE",
    "1/K sum_k (p_k - [k = y])^2",
    bounded=True,
    paper="brier1950",
    caveat="Divided by the number of classes, which some repositories leave out.",
)
class MSE(Named, PowerDistance):
    """Mean squared error over the classes."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(a=1.0, r=2.0, average=True, **policy)


@register(
    "AMSE",
    "scale/K sum_k |p_k - a [k = y]|^q",
    kind="asymmetric",
    bounded=True,
    paper="wang2025jal",
    aliases=("AMSE-q",),
    caveat="A constant of about a^q / K hides the signal in logs.",
    tune={"a": log(1.05, 100), "q": log(0.5, 4), "scale": SCALE},
)
class AMSE(Named, PowerDistance):
    """Asymmetric mean squared error.

    Args:
        a: Length of the label vector, 1 (`MSE`) or more.
        q: The power, positive.
        scale: A factor.
    """

    def __init__(
        self, *, a: float = 30.0, q: float = 2.0, scale: float = 1.0, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(a=a, r=q, scale=scale, average=True, **policy)


@register(
    "ANorm",
    "(sum_k |a [k = y] - p_k|^p - (a - 1)^p) / p",
    kind="asymmetric",
    bounded=True,
    paper="zhou2021alf",
    aliases=("ANormLoss",),
    tune={"a": log(1.05, 20), "p": log(0.3, 5)},
)
class ANorm(Named, PowerDistance):
    """Asymmetric norm loss.

    Args:
        a: Length of the label vector, 1 or more.
        p: The power, positive.
    """

    def __init__(self, *, a: float = 1.5, p: float = 2.0, **policy: Unpack[Policy]) -> None:
        check_number("p", p, "positive", lambda v: v > 0)
        super().__init__(a=a, r=p, scale=1 / p, centred=True, **policy)


@register(
    "NL", "-log(1 - p_c)", bounded=False, paper="kim2019nlnl", aliases=("NLNL",), caveat=_NEGATIVE
)
class NL(Named, Negative):
    """Negative learning, whose target is a *complementary* label c."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)


@register(
    "NL+",
    "-(1 - p_c) log(1 - p_c), weight detached",
    bounded=True,
    paper="kim2021jnpl",
    aliases=("NLPlus",),
    caveat=_NEGATIVE,
    unverified=True,
)
class NLPlus(Named, Negative):
    """The negative term of joint learning, whose target is a *complementary* label c."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(weighted=True, **policy)


@register(
    "PL+",
    "-prod_{n = 0..3} (1 + p_y^(2^n)) log p_y, product detached",
    bounded=False,
    paper="kim2021jnpl",
    aliases=("PLPlus",),
    caveat=UNVERIFIED_CAVEAT,
    unverified=True,
)
class PLPlus(Named, Emphasised):
    """The positive term of joint learning."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)


@register(
    "GJS",
    "Z (w_0 KL(e_y, m) + sum_v w_v KL(p_v, m)), m = w_0 e_y + sum_v w_v p_v, Z as in JS",
    bounded=True,
    paper="englesson2021gjs",
    caveat="Takes a sequence of logits, one for each view, in place of one tensor.",
)
class GJS(Named, ViewsDivergence):
    """Generalised Jensen-Shannon divergence of the label and several views' predictions.

    Called with a sequence of logit tensors, one for each view.

    Args:
        weights: Of the label and of each view, summing to one.
        scaled: Whether to multiply by Z.
    """

    def __init__(
        self,
        *,
        weights: Sequence[float] = (0.5, 0.25, 0.25),
        scaled: bool = True,
        **policy: Unpack[Policy],
    ) -> None:
        check_weights(weights)
        super().__init__(weights, scale=divergence_scale(weights[0]) if scaled else 1.0, **policy)


@register(
    "LDR",
    "Lambda log 1/K sum_k exp((threshold [k != y] + s_k - s_y) / Lambda), "
    "s = softplus(z) / mean softplus(z)",
    bounded=True,
    paper="zhu2023ldr",
    aliases=("LDR-KL",),
    caveat="Not invariant to adding a constant to the logits.",
    tune={"threshold": uniform(0, 0.5), "Lambda": log(0.1, 100)},
)
class LDR(Named, Loss):
    """Label-distributionally robust loss of the logits.

    It is not invariant to adding a constant to the logits.

    Args:
        threshold: The margin.
        Lambda: Temperature, positive.
    """

    def __init__(
        self, *, threshold: float = 0.1, Lambda: float = 10.0, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(**policy)
        check_factor("threshold", threshold, "0 or more", lambda v: v >= 0)
        check_factor("Lambda", Lambda, f"{1 / LARGEST:g} or more", lambda v: v * LARGEST >= 1)
        self.threshold = threshold
        self.Lambda = Lambda

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        present = logits > -math.inf
        count = present.sum(-1, keepdim=True)
        # log softplus(z), which is z itself once exp(z) rounds away
        deep = logits < -50
        shallow = torch.where(deep, 0.0, logits)
        log_s = torch.where(deep, logits, torch.log(-logsigmoid(-shallow)))
        s = torch.exp(log_s - torch.logsumexp(log_s, -1, keepdim=True)) * count
        own = s.gather(1, target[:, None])
        rival = torch.arange(logits.shape[1], device=logits.device) != target[:, None]
        gaps = (self.threshold * rival.to(s.dtype) + s - own) / self.Lambda
        kept = torch.where(present, gaps, -math.inf)
        return self.Lambda * (torch.logsumexp(kept, -1) - torch.log(count[:, 0].to(s.dtype)))

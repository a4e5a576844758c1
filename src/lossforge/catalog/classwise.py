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
    check_weights,
)
from ..errors import check_number
from ..loss import Loss, Policy
from .named import Named
from .pointwise import divergence_scale


class NCE(Named, Normalised):
    r"""Normalised cross entropy, :math:`s \log p_y / \sum_k \log p_k`.

    Args:
        scale: The factor s.
    """

    def __init__(self, *, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Log(), scale=scale, **policy)
        self.settings = {"scale": scale}


class NFL(Named, Normalised):
    r"""Normalised focal loss, :math:`s f_y / \sum_k f_k` with :math:`f = -(1 - p)^\gamma \log p`.

    Args:
        gamma: Exponent of the focal factor.
        scale: The factor s.
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
        self.settings = {"gamma": gamma, "scale": scale, "stop_gradient": stop_gradient}


class NGCE(Named, Normalised):
    r"""Normalised generalised cross entropy, :math:`s (1 - p_y^q) / \sum_k (1 - p_k^q)`.

    Args:
        q: As in `GCE`, in (0, 1].
        scale: The factor s.
    """

    def __init__(self, *, q: float = 0.7, scale: float = 1.0, **policy: Unpack[Policy]) -> None:
        check_number("q", q, "in (0, 1]", lambda v: 0 < v <= 1)
        super().__init__(base.Power(q), scale=scale, **policy)
        self.settings = {"q": q, "scale": scale}


class NNCE(Named, NormalisedNegative):
    r"""Normalised negative cross entropy, :math:`1 - s_y / \sum_k s_k`.

    :math:`s_k = \log \max(p_k, \epsilon) - \log \epsilon`.

    Args:
        eps: Probability below which a class counts for nothing; a real parameter of the loss.
    """

    def __init__(self, *, eps: float = 1e-7, **policy: Unpack[Policy]) -> None:
        super().__init__(base.Truncated(base.Log(), eps), **policy)
        self.settings = {"eps": eps}


class NNFL(Named, NormalisedNegative):
    r"""Normalised negative focal loss, :math:`1 - s_y / \sum_k s_k`.

    :math:`s_k = f(\epsilon) - f(\max(p_k, \epsilon))` with :math:`f(p) = -(1 - p)^\gamma \log p`.

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
        self.settings = {"gamma": gamma, "eps": eps, "stop_gradient": stop_gradient}


class MSE(Named, PowerDistance):
    r"""Mean squared error over the classes, :math:`\frac1K \sum_k (p_k - [k = y])^2`."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(a=1.0, r=2.0, average=True, **policy)
        self.settings = {}


class AMSE(Named, PowerDistance):
    r"""Asymmetric mean squared error, :math:`\frac{s}{K} \sum_k |p_k - a [k = y]|^q`.

    Args:
        a: Length of the label vector, 1 (`MSE`) or more.
        q: The power, positive.
        scale: The factor s.
    """

    def __init__(
        self, *, a: float = 30.0, q: float = 2.0, scale: float = 1.0, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(a=a, r=q, scale=scale, average=True, **policy)
        self.settings = {"a": a, "q": q, "scale": scale}


class ANorm(Named, PowerDistance):
    r"""Asymmetric norm loss, :math:`(\sum_k |a [k = y] - p_k|^p - (a - 1)^p) / p`.

    Args:
        a: Length of the label vector, 1 or more.
        p: The power, positive.
    """

    def __init__(self, *, a: float = 1.5, p: float = 2.0, **policy: Unpack[Policy]) -> None:
        check_number("p", p, "positive", lambda v: v > 0)
        super().__init__(a=a, r=p, scale=1 / p, centred=True, **policy)
        self.settings = {"a": a, "p": p}


class NL(Named, Negative):
    r"""Negative learning, :math:`-\log(1 - p_c)`; the target is a *complementary* label c."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        self.settings = {}


class NLPlus(Named, Negative):
    r"""The negative term of joint learning, :math:`-(1 - p_c) \log(1 - p_c)`, weight held constant.

    The target is a *complementary* label c.
    """

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(weighted=True, **policy)
        self.settings = {}


class PLPlus(Named, Emphasised):
    r"""The positive term of joint learning, :math:`-\prod_{n=0}^3 (1 + p_y^{2^n}) \log p_y`.

    The product is held constant in the gradient.
    """

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        self.settings = {}


class GJS(Named, ViewsDivergence):
    r"""Generalised Jensen-Shannon divergence of the label and several views' predictions.

    Called with a sequence of logit tensors, one for each view.

    Args:
        weights: Of the label and of each view, summing to one.
        scaled: Divide by :math:`-(1 - \pi_0) \log(1 - \pi_0)`.
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
        self.settings = {"weights": tuple(weights), "scaled": scaled}


class LDR(Named, Loss):
    r"""Label-distributionally robust loss of the logits.

    With :math:`s` the softplus of the logits divided by its mean over the classes,
    :math:`\Lambda \log \frac1K \sum_k \exp((m [k \ne y] + s_k - s_y) / \Lambda)`. It is not
    invariant to adding a constant to the logits.

    Args:
        threshold: The margin m.
        Lambda: Temperature, positive.
    """

    def __init__(
        self, *, threshold: float = 0.1, Lambda: float = 10.0, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(**policy)
        check_number("threshold", threshold, "0 or more", lambda v: v >= 0)
        check_number("Lambda", Lambda, "positive", lambda v: v > 0)
        self.threshold = threshold
        self.Lambda = Lambda
        self.settings = {"threshold": threshold, "Lambda": Lambda}

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
        gaps = (torch.where(rival, self.threshold, 0.0) + s - own) / self.Lambda
        kept = torch.where(present, gaps, -math.inf)
        return self.Lambda * (torch.logsumexp(kept, -1) - torch.log(count[:, 0].to(s.dtype)))

"""Losses of several views of the same samples."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from ..errors import check_factor, check_number
from ..loss import Policy, ProbabilityLoss, Scores

_LEAST = 1e-15  # 1 minus less would be 1


class ViewsDivergence(ProbabilityLoss):
    r"""The generalised Jensen-Shannon divergence of the label and V predictions.

    With weights :math:`\pi_0` of the label and :math:`\pi_v` of the views, and
    :math:`a = \sum_v \pi_v p_v`:

    .. math:: L(c) = \sum_v \pi_v \mathrm{KL}(p_v \| a) - (\pi_0 + a_c) \log(\pi_0 + a_c)
        + a_c \log a_c

    Called with a sequence of V logit tensors in place of one.

    Args:
        weights: :math:`\pi_0, \pi_1, \ldots, \pi_V`, 1e-15 or more, summing to one.
        scale: Factor, positive.
    """

    def __init__(
        self, weights: Sequence[float], *, scale: float = 1.0, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(**policy)
        check_weights(weights)
        # single precision does not tell 1 minus a smaller one from 1
        check_number("weights", weights[0], "1e-07 or more for the label", lambda v: v >= 1e-7)
        check_factor("scale", scale, "positive", lambda v: v > 0)
        self.weights = tuple(float(w) for w in weights)
        self.scale = scale

    def forward(self, input: Tensor | Sequence[Tensor], target: Tensor) -> Tensor:
        """The loss of several views' logits, reduced as `Loss.forward` says."""
        views = [input] if isinstance(input, Tensor) else list(input)
        if len(views) != len(self.weights) - 1:
            raise ValueError(
                f"input must hold {len(self.weights) - 1} views, one for each weight after the "
                f"label's, got {len(views)}"
            )
        if len({view.shape for view in views}) != 1:
            raise ValueError(f"views must agree in shape, got {[tuple(v.shape) for v in views]}")
        return self._reduced(views[0], target, normalised=False, views=views[1:])

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        logs, terms, _ = self._compare(scores)
        label = target[:, None]
        value = terms.scatter(1, label, 0.0).sum(-1)
        # The label's own share, m = pi_0 + a_c, is 1 at the one-hot prediction: from its gap.
        own = [log.gather(1, label)[:, 0] for log in logs]
        pairs = list(zip(self.weights[1:], own, strict=True))
        log_m = torch.log1p(torch.stack([w * torch.expm1(log_p) for w, log_p in pairs]).sum(0))
        value = value - self.weights[0] * log_m
        for w, log_p in pairs:
            value = value + w * _times_log(log_p.exp(), log_p - log_m)
        return self.scale * value

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        _, terms, a = self._compare(scores)
        m = self.weights[0] + a
        own = _times_log(a, torch.log(torch.where(a == 0, 1.0, a))) - m * torch.log(m)
        values = terms.sum(-1) * weights.sum(-1) + (weights * own).sum(-1)
        return self.scale * values

    def _compare(self, scores: Scores) -> tuple[list[Tensor], Tensor, Tensor]:
        """The views' log-probabilities, their divergences from the mean a class by class, and a."""
        views = [scores, *scores.views]
        if len(views) != len(self.weights) - 1:
            raise ValueError(f"{len(self.weights) - 1} views are needed, got {len(views)}")
        logs = [view.log_probs for view in views]
        pairs = list(zip(self.weights[1:], logs, strict=True))
        a = torch.stack([w * log.exp() for w, log in pairs]).sum(0)
        log_a = torch.log(torch.where(a == 0, 1.0, a))
        terms = torch.stack([w * _times_log(log.exp(), log - log_a) for w, log in pairs])
        return logs, terms.sum(0), a

    def __str__(self) -> str:
        return f"views_divergence({list(self.weights)}, scale={self.scale})"


def check_weights(weights: Sequence[float]) -> None:
    """Raise unless the weights of a divergence are positive and sum to one."""
    for weight in weights:
        check_number("weights", weight, f"{_LEAST:g} or more", lambda v: v >= _LEAST)
    if len(weights) < 2 or abs(sum(weights) - 1) > 1e-9:
        raise ValueError(f"weights must be two or more numbers that sum to one, got {weights}")


def _times_log(p: Tensor, log: Tensor) -> Tensor:
    """p * log with 0 * (-inf) = 0, in the gradient too."""
    return p * torch.where(p == 0, 0.0, log)

"""Negative learning: losses of labels a sample does not have, and positive learning beside it."""

from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ..loss import Policy, ProbabilityLoss, Scores
from ..numerics import log_sum


def complementary_labels(
    target: Tensor,
    num_classes: int,
    n: int = 1,
    *,
    ignore_index: int = -100,
    generator: torch.Generator | None = None,
) -> Tensor:
    """(N, n) labels drawn uniformly from the classes that are not the given one.

    Args:
        target: (N,) class indices.
        num_classes: The number of classes, 2 or more.
        n: Labels drawn for each sample, with replacement.
        ignore_index: A label that stays as it is.
        generator: Source of randomness, on the device of `target`.
    """
    if num_classes < 2:
        raise ValueError(f"num_classes must be 2 or more, got {num_classes}")
    if target.dim() != 1:
        raise ValueError(f"target must be (N,), got {tuple(target.shape)}")
    shape = (len(target), n)
    steps = torch.randint(1, num_classes, shape, generator=generator, device=target.device)
    label = target[:, None]
    return torch.where(label == ignore_index, label, (label + steps) % num_classes)


class Negative(ProbabilityLoss):
    r"""Negative learning: :math:`-\log(1 - u_c)` of a *complementary* label c.

    The target is a class that the sample does not have; draw it with `complementary_labels` and
    sum over several by repeating the rows.

    Args:
        weighted: Multiply by :math:`1 - u_c`, held constant in the gradient.
    """

    def __init__(self, *, weighted: bool = False, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        self.weighted = weighted

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        own, others, _ = scores.rivals_of(target)
        rest = log_sum(others)
        # a logit of +inf has no softmax, here as in cross entropy
        gap = torch.where((rest == torch.inf) | (own == torch.inf), torch.nan, rest - own)
        # 1 - u_c = sigmoid(log sum of the others - own)
        log_rest = logsigmoid(gap)
        if not self.weighted:
            return -log_rest
        weight = log_rest.detach().exp()
        # x log x = 0 at 0
        return torch.where(weight == 0, 0.0, -weight * log_rest)

    def __str__(self) -> str:
        return f"negative(weighted={self.weighted})"


class Emphasised(ProbabilityLoss):
    r"""Cross entropy weighted by :math:`\prod_{n=0}^{3} (1 + u_t^{2^n})`, held constant."""

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        log_p = scores.log_probs.gather(1, target[:, None])[:, 0]
        p = log_p.detach().exp()
        weight = (1 + p) * (1 + p**2) * (1 + p**4) * (1 + p**8)
        return -weight * log_p

    def __str__(self) -> str:
        return "emphasised()"

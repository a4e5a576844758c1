"""Entropy regularisation: keep the mean prediction of a batch near uniform."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...errors import check_number
from ..method import Batch, Epoch, Method


@dataclass(frozen=True, kw_only=True)
class EntropyRegularised(Method):
    r"""Add :math:`\lambda (\log K - H(\bar u))`, with the mean prediction of a batch.

    Noise that is not symmetric leaves some classes with fewer labels than others; the regulariser,
    0 where the predicted classes are balanced, keeps a loss from giving these classes up. With
    `ANL-CE` as the loss this is ANL-CE-ER. Data of unequal classes are pulled away from the truth.

    Args:
        lam: Weight of the regulariser, 0 or more.
        eps: Probabilities are kept in [eps, 1 - eps], as in the released code; in (0, 0.5).

    References:
        Ye et al., Active Negative Loss: A Robust Framework for Learning with Noisy Labels, 2024.
        https://arxiv.org/abs/2412.02373
    """

    name: ClassVar[str] = "entropy"
    distributed: ClassVar[bool] = False
    lam: float = 2.0
    eps: float = 1e-7

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("lam", self.lam, "0 or more", lambda v: v >= 0)
        check_number("eps", self.eps, "in (0, 0.5)", lambda v: 0 < v < 0.5)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        keep = batch.target != epoch.loss.ignore_index
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        probs = wide[keep].softmax(1).clamp(self.eps, 1 - self.eps)
        mean = (probs.sum(0) / probs.sum()).clamp(self.eps, 1 - self.eps)
        regulariser = math.log(probs.shape[1]) + (mean * mean.log()).sum()
        # the mean of the values divides by the weights of the labels, which are then as many
        lam = self.lam * (batch.kept / float(keep.sum()) if epoch.loss.mean else 1)
        return epoch.loss(logits, batch.target) + torch.where(keep, lam * regulariser, 0)

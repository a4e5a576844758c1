"""Early-learning regularisation: keep predictions near their past average."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...errors import check_number
from ..method import Batch, Epoch, Method


@dataclass(frozen=True, kw_only=True)
class ELR(Method):
    r"""Add :math:`\lambda \log(1 - \langle u, t \rangle)`, with t an average of past predictions.

    Before each use, :math:`t \leftarrow \beta t + (1 - \beta) u` for the samples of the batch; t
    starts at 0, and no gradient flows through it.

    Args:
        beta: How slowly the average forgets, in [0, 1).
        lam: Weight of the regulariser, 0 or more.
        clip: Probabilities are kept in [clip, 1 - clip], as in the released code, which bounds the
            logarithm.

    References:
        Liu et al., Early-Learning Regularization Prevents Memorization of Noisy Labels, NeurIPS
        2020. https://arxiv.org/abs/2007.00151
    """

    name: ClassVar[str] = "elr"
    distributed: ClassVar[bool] = False
    beta: float = 0.7
    lam: float = 3.0
    clip: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("beta", self.beta, "in [0, 1)", lambda v: 0 <= v < 1)
        check_number("lam", self.lam, "0 or more", lambda v: v >= 0)
        check_number("clip", self.clip, "in (0, 0.5)", lambda v: 0 < v < 0.5)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        probs = wide.softmax(1).clamp(self.clip, 1 - self.clip)
        if "average" not in epoch.memory:
            epoch.memory["average"] = probs.new_zeros(len(epoch.samples), probs.shape[1])
        average, rows = epoch.memory["average"], batch.rows.to(probs.device)
        now = probs.detach() / probs.detach().sum(1, keepdim=True)
        average[rows] = self.beta * average[rows] + (1 - self.beta) * now
        regulariser = torch.log1p(-(average[rows] * probs).sum(1))
        keep = batch.target != epoch.loss.ignore_index
        # the mean of the values divides by the weights of the labels, that of this by their number
        lam = self.lam * (batch.kept / float(keep.sum()) if epoch.loss.mean else 1)
        return epoch.loss(logits, batch.target) + lam * torch.where(keep, regulariser, 0)

"""MentorNet's predefined curriculum: weights from a moving percentile of the losses."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...errors import check_number
from ..method import Batch, Epoch, Method

ALL_UNTIL, LINEAR_FROM = 18, 90  # per cent of the epochs, of the released code


@dataclass(frozen=True, kw_only=True)
class MentorNetPD(Method):
    r"""Weight the loss l of a sample by its distance to a moving percentile m of the losses.

    In the first 18 % of the epochs all weights are 1, in the last 10 % they are
    :math:`1 - (l - m) / \gamma`, cut to [0, 1], and between :math:`[l \le m]`. At every batch,
    :math:`m \leftarrow d m + (1 - d) q`, with q the percentile of the batch; m starts at 0. This is
    the curriculum itself, which the paper fits a network to.

    Args:
        percentile: In (0, 1): about the share of right labels.
        decay: d, in [0, 1).
        gamma: Positive.

    References:
        Jiang et al., MentorNet: Learning Data-Driven Curriculum for Very Deep Neural Networks on
        Corrupted Labels, ICML 2018. http://proceedings.mlr.press/v80/jiang18c/jiang18c.pdf
    """

    name: ClassVar[str] = "mentornet_pd"
    distributed: ClassVar[bool] = False
    percentile: float = 0.7
    decay: float = 0.5
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("percentile", self.percentile, "in (0, 1)", lambda v: 0 < v < 1)
        check_number("decay", self.decay, "in [0, 1)", lambda v: 0 <= v < 1)
        check_number("gamma", self.gamma, "positive", lambda v: v > 0)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        values = epoch.loss(logits, batch.target)
        losses = values.detach()
        labelled = losses[batch.target != epoch.loss.ignore_index]
        limit = torch.quantile(labelled, self.percentile, interpolation="nearest")
        average = epoch.memory.setdefault("average", torch.zeros_like(limit))
        average.mul_(self.decay).add_((1 - self.decay) * limit)
        return self.weights(losses - average, self._progress(epoch)) * values

    def weights(self, differences: Tensor, progress: int) -> Tensor:
        """(N,) weights of losses minus their moving percentile, at per cent of the epochs."""
        if progress <= ALL_UNTIL:
            return torch.ones_like(differences)
        if progress < LINEAR_FROM:
            return (differences <= 0).to(differences.dtype)
        return (1 - differences / self.gamma).clamp(0, 1)

    def _progress(self, epoch: Epoch) -> int:
        return 100 * epoch.number // epoch.networks[0].settings.epochs

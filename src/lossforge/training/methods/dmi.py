"""L_DMI: the determinant of the joint distribution of labels and predictions over a batch."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn.functional import one_hot

from ...errors import check_integer, check_number
from ..method import Batch, Epoch, Method, Objective, Step


@dataclass(frozen=True, kw_only=True)
class DMI(Method):
    r"""After a warm-up with the loss, descend along :math:`-\log(|\det Y^T U| + \epsilon)`.

    U (n, K) holds the predicted probabilities of a batch and Y its labels as indicators. It is a
    loss of the batch: label noise only multiplies the determinant by that of T. A batch that lacks
    a class has determinant 0, so batches must be large against the number of classes.

    Args:
        warm_up: Epochs in which the run's own loss is minimised, 0 or more; the determinant does
            not tell which prediction belongs to which label.
        eps: Positive; of the released code.

    References:
        Xu et al., L_DMI: A Novel Information-theoretic Loss Function for Training Deep Nets Robust
        to Label Noise, NeurIPS 2019. https://arxiv.org/abs/1909.03388
    """

    name: ClassVar[str] = "dmi"
    distributed: ClassVar[bool] = False
    warm_up: int = 10
    eps: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("warm_up", self.warm_up, 0)
        check_number("eps", self.eps, "positive", lambda v: v > 0)

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        if epoch.number < self.warm_up:
            return super().step(epoch, batch)
        logits = epoch.networks[0](batch.inputs)
        keep = batch.target != epoch.loss.ignore_index
        probs = logits[keep].to(torch.promote_types(logits.dtype, torch.float32)).softmax(1)
        labels = one_hot(batch.target[keep], probs.shape[1]).to(probs.dtype)
        value = -(torch.linalg.det(labels.T @ probs).abs() + self.eps).log()
        return Step(logits, (Objective(value[None], 1.0),))

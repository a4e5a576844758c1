"""Mixup: inputs and losses of pairs of samples, interpolated."""

import random
from dataclasses import dataclass
from typing import ClassVar

import torch

from ...errors import check_number
from ..method import Batch, Epoch, Method, Objective, Step


@dataclass(frozen=True, kw_only=True)
class Mixup(Method):
    r"""Train on interpolated inputs with the loss interpolated between both labels.

    For a batch, :math:`\lambda` is drawn from Beta(alpha, alpha) and each sample i is paired with
    another j of the batch by a random permutation:

    .. math:: \lambda L(z(\tilde x), y_i) + (1 - \lambda) L(z(\tilde x), y_j), \quad
        \tilde x = \lambda x_i + (1 - \lambda) x_j .

    Args:
        alpha: Positive; the larger, the nearer :math:`\lambda` is to one half.

    References:
        Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018.
        https://arxiv.org/abs/1710.09412
    """

    name: ClassVar[str] = "mixup"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, "positive", lambda v: v > 0)

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        chance = random.Random(int(torch.randint(2**62, (), generator=epoch.generator)))
        share = chance.betavariate(self.alpha, self.alpha)
        partner = torch.randperm(len(batch.rows), generator=epoch.generator).to(batch.target.device)
        mixed = share * batch.inputs + (1 - share) * batch.inputs[partner]
        logits = epoch.networks[0](mixed)
        own, other = (
            epoch.loss(logits, target) for target in (batch.target, batch.target[partner])
        )
        # both sums of values have the weight of the batch, as a permutation keeps its labels
        return Step(logits, (Objective(share * own + (1 - share) * other, batch.kept),))

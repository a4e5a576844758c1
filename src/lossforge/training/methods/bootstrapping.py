"""Bootstrapping: targets mixed with the network's own prediction."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import one_hot

from ...errors import check_number
from ..method import Batch, Epoch, Method


@dataclass(frozen=True, kw_only=True)
class SoftBootstrap(Method):
    r"""Mix the label with the predicted probabilities: targets :math:`\beta y + (1 - \beta) u`.

    The gradient flows through u in the targets, too, as in the released codes that were read.

    Args:
        beta: Weight of the given label, in (0, 1].

    References:
        Reed et al., Training Deep Neural Networks on Noisy Labels with Bootstrapping, ICLR
        workshop 2015. https://arxiv.org/abs/1412.6596
    """

    name: ClassVar[str] = "soft_bootstrap"
    beta: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("beta", self.beta, "in (0, 1]", lambda v: 0 < v <= 1)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        given = epoch.loss(logits, batch.target)
        own = epoch.loss.expected(logits, self.predicted(logits), batch.target)
        return self.beta * given + (1 - self.beta) * own

    def predicted(self, logits: Tensor) -> Tensor:
        """(N, K) class probabilities that the network sets itself as a target."""
        return logits.softmax(1)


@dataclass(frozen=True, kw_only=True)
class HardBootstrap(SoftBootstrap):
    r"""Mix the label with the predicted class: targets :math:`\beta y + (1 - \beta) \hat y`.

    Args:
        beta: Weight of the given label, in (0, 1].

    References:
        Reed et al., as for `SoftBootstrap`.
    """

    name: ClassVar[str] = "hard_bootstrap"
    beta: float = 0.8

    def predicted(self, logits: Tensor) -> Tensor:
        return one_hot(logits.detach().argmax(1), logits.shape[1])

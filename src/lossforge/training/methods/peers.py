"""Two networks that select samples for each other: Co-teaching and Decoupling."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...errors import check_integer, check_number
from ..method import Batch, Epoch, Method, Objective, Step


@dataclass(frozen=True, kw_only=True)
class CoTeaching(Method):
    r"""Train each of two networks on the samples of smallest loss of the other.

    Of a batch, each network keeps the share 1 - r of samples with the smallest values of the loss,
    and its peer descends along their mean. r grows linearly to `forget_rate ** exponent`, from a
    share 1 / (`gradual` - 1) of that in the first epoch, as in the released code, whose epoch 0
    is not trained; in epoch number `gradual` and from then on it is `forget_rate`.

    Args:
        forget_rate: The share of samples to leave out in the end, in [0, 1): an estimate of the
            share of wrong labels, which the paper takes as known.
        gradual: Epochs until then, 0 or more.
        exponent: Positive; the paper's c.

    References:
        Han et al., Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy
        Labels, NeurIPS 2018. https://arxiv.org/abs/1804.06872
    """

    name: ClassVar[str] = "coteaching"
    networks: ClassVar[int] = 2
    distributed: ClassVar[bool] = False
    forget_rate: float
    gradual: int = 10
    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("forget_rate", self.forget_rate, "in [0, 1)", lambda v: 0 <= v < 1)
        check_integer("gradual", self.gradual, 0)
        check_number("exponent", self.exponent, "positive", lambda v: v > 0)

    def rate(self, epoch: int) -> float:
        """Return the share of samples that an epoch, counted from 0, leaves out."""
        if epoch + 1 >= self.gradual:
            return self.forget_rate
        return float(self.forget_rate**self.exponent * (epoch + 1) / (self.gradual - 1))

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        logits = [network(batch.inputs) for network in epoch.networks]
        values = [epoch.loss(one, batch.target) for one in logits]
        labelled = batch.target != epoch.loss.ignore_index
        keep = int((1 - self.rate(epoch.number)) * int(labelled.sum()))
        easy = [
            torch.where(labelled, one.detach(), torch.inf).argsort(stable=True)[:keep]
            for one in values
        ]
        return Step(logits[0], [_part(epoch, batch, values[i], easy[1 - i]) for i in range(2)])


@dataclass(frozen=True, kw_only=True)
class Decoupling(Method):
    """Train two networks on the samples whose class they predict differently.

    Args:
        warm_up: Epochs at the start in which all samples count, 0 or more.
        floor: The mean divides by this share of the batch at least, as in the released code, so
            that a few samples do not make a full step; in [0, 1].

    References:
        Malach and Shalev-Shwartz, Decoupling "when to update" from "how to update", NeurIPS 2017.
        https://arxiv.org/abs/1706.02613
    """

    name: ClassVar[str] = "decoupling"
    networks: ClassVar[int] = 2
    distributed: ClassVar[bool] = False
    warm_up: int = 0
    floor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("warm_up", self.warm_up, 0)
        check_number("floor", self.floor, "in [0, 1]", lambda v: 0 <= v <= 1)

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        logits = [network(batch.inputs) for network in epoch.networks]
        differ = logits[0].detach().argmax(1) != logits[1].detach().argmax(1)
        if epoch.number < self.warm_up:
            differ = torch.ones_like(differ)
        rows = differ.nonzero()[:, 0]
        parts = [_part(epoch, batch, epoch.loss(one, batch.target), rows) for one in logits]
        least = self.floor * batch.kept
        # without any disagreement there is no step
        return Step(
            logits[0],
            [Objective(values, max(kept, least) if kept else 0) for values, kept in parts],
        )


def _part(epoch: Epoch, batch: Batch, values: Tensor, rows: Tensor) -> Objective:
    """Return the objective of some rows of a batch, with the weight of their labels."""
    return Objective(values[rows], epoch.loss.kept(batch.target[rows].cpu()))

"""Forward and backward correction by a transition matrix that is estimated on the run."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ...errors import check_integer
from ..evaluate import predict
from ..method import Batch, Epoch, Method, Objective, Step

ANCHOR = 0.97  # the quantile from which on a probability counts as an outlier, of the released code


@dataclass(frozen=True, kw_only=True)
class ForwardCorrected(Method):
    r"""Estimate T with one network, then train another with the loss of :math:`u T`.

    In the first `warm_up` epochs a second network learns the noisy labels with cross entropy, and
    the first rests. T is then estimated from its predictions on the training samples, and the first
    network is trained for the other epochs. In the first epochs, the training accuracy is that of
    the second network, the loss 0, and all tests are of the first, whose weights are the initial.

    Args:
        warm_up: Epochs of the network that T is estimated with, 1 or more.
        estimate: "anchor": row i of T is the prediction for the sample that is most surely of class
            i; "dual": that of a predicted class times the counted labels of each predicted class.
        outliers: Whether the 3 % of samples that are most surely of a class may be its anchor.

    References:
        Patrini et al., Making Deep Neural Networks Robust to Label Noise, CVPR 2017.
        https://arxiv.org/abs/1609.03683
        Yao et al., Dual T: Reducing Estimation Error for Transition Matrix in Label-noise Learning,
        NeurIPS 2020.
    """

    name: ClassVar[str] = "forward"
    networks: ClassVar[int] = 2
    distributed: ClassVar[bool] = False
    warm_up: int = 20
    estimate: str = "anchor"
    outliers: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("warm_up", self.warm_up, 1)
        if self.estimate not in ("anchor", "dual"):
            raise ValueError(f"estimate must be 'anchor' or 'dual', got {self.estimate!r}")
        if not isinstance(self.outliers, bool):
            raise TypeError(f"outliers must be True or False, got {self.outliers!r}")

    def begin(self, epoch: Epoch) -> None:
        if epoch.number != self.warm_up:
            return
        labelled = epoch.samples.given != epoch.loss.ignore_index
        probs = predict(epoch.networks[1].model, epoch.samples)[labelled].double().softmax(1)
        T = anchor_estimate(probs, outliers=self.outliers)
        if self.estimate == "dual":
            T = dual_estimate(T, probs.argmax(1), epoch.samples.given[labelled])
        epoch.memory["T"] = T.to(epoch.networks[0].device)

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        rest = Objective(batch.inputs.new_zeros(0), 0.0)
        if epoch.number < self.warm_up:
            logits = epoch.networks[1](batch.inputs)
            ignored = epoch.loss.ignore_index
            values = cross_entropy(
                logits.float() if logits.dtype == torch.bfloat16 else logits,
                batch.target,
                reduction="none",
                ignore_index=ignored,
            )
            labelled = float((batch.target != ignored).sum())
            return Step(logits, (rest, Objective(values, labelled)))
        logits = epoch.networks[0](batch.inputs)
        return Step(logits, (Objective(self.values(epoch, batch, logits), batch.kept), rest))

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        wide = logits.float() if logits.dtype == torch.bfloat16 else logits
        return epoch.loss(noisy_log_probs(wide, epoch.memory["T"].log()), batch.target)


@dataclass(frozen=True, kw_only=True)
class BackwardCorrected(ForwardCorrected):
    r"""Estimate T as `ForwardCorrected` does, then train with :math:`\sum_j (T^{-1})_{yj} L(z, j)`.

    Args:
        warm_up: As there.
        estimate: As there.
        outliers: As there.

    References:
        Patrini et al., as there.
    """

    name: ClassVar[str] = "backward"

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        labels = batch.target.clamp(min=0)  # those below are ignored
        inverse, singular = torch.linalg.inv_ex(epoch.memory["T"])
        # two classes with one anchor: the run then ends as diverged
        weights = torch.where(singular > 0, torch.nan, inverse)[labels]
        up, down = (
            epoch.loss.expected(logits, part, batch.target)
            for part in (weights.clamp(min=0), -weights.clamp(max=0))
        )
        return up - down


def noisy_log_probs(logits: Tensor, log_T: Tensor) -> Tensor:
    """(N, K) log-probabilities of the noisy labels, log uT.

    Args:
        logits: Of the true classes (N, K).
        log_T: The logarithm of the transition matrix (K, K); -inf where it is 0.
    """
    joint = logits.log_softmax(1)[:, :, None] + log_T.to(logits.dtype)
    # a label that no class gets is left at -inf, without a gradient, which would be NaN
    possible = (log_T > -torch.inf).any(0)
    found = torch.where(possible, joint, 0).logsumexp(1)
    return torch.where(possible, found, -torch.inf)


def anchor_estimate(probs: Tensor, *, outliers: bool = False) -> Tensor:
    """Estimate T (K, K) by the predictions (N, K) for one anchor of each class.

    Args:
        probs: Predicted probabilities of the noisy labels.
        outliers: Whether the largest 3 % of a class's probabilities may be its anchor.
    """
    scores = probs
    if not outliers:
        limit = torch.quantile(probs, ANCHOR, dim=0, interpolation="higher")
        scores = torch.where(probs < limit, probs, 0.0)
    T = probs[scores.argmax(0)]
    return T / T.sum(1, keepdim=True)


def dual_estimate(T: Tensor, predicted: Tensor, given: Tensor) -> Tensor:
    """Estimate T (K, K) as that of the predicted class times that of labels given a prediction.

    Args:
        T: From `anchor_estimate`.
        predicted: Predicted classes (N,).
        given: Given labels (N,).
    """
    product = T @ label_shares(predicted, given, len(T))
    return product / product.sum(1, keepdim=True)


def label_shares(predicted: Tensor, given: Tensor, classes: int) -> Tensor:
    """Count the shares of the given labels among the samples of each predicted class (K, K).

    The row of a class that is never predicted is 0.

    Args:
        predicted: Predicted classes (N,).
        given: Given labels (N,).
        classes: K.
    """
    counts = torch.bincount(predicted * classes + given, minlength=classes**2)
    table = counts.view(classes, classes)
    return table.double() / table.sum(1, keepdim=True).clamp(min=1)

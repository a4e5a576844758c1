"""Loss correction by a known transition matrix."""

from typing import Unpack

import torch
from torch import Tensor

from ..errors import check_rows
from ..loss import Loss, Policy, Scores
from ..numerics import log_sum
from .target import TargetLoss
from .wrappers import Wrapper

_WORST_CONDITION = 1e8


class ForwardCorrection(Wrapper):
    r"""A loss of the noisy-label probabilities :math:`u T` instead of the clean ones u.

    With cross entropy: :math:`-\log \sum_i u_i T_{iy}`. A loss of more than the label's
    probability, and class probabilities as targets, take O(K^2) memory a sample.

    Args:
        loss: The loss of the noisy-label probabilities.
        T: (K, K), T[i, j] the probability that class i is given label j; rows sum to one.

    References:
        Patrini et al., Making Deep Neural Networks Robust to Label Noise, CVPR 2017.
    """

    T: Tensor

    def __init__(self, loss: Loss, T: Tensor, **policy: Unpack[Policy]) -> None:
        super().__init__(loss, **policy)
        self.register_buffer("T", _transition(T))

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        if isinstance(self.loss, TargetLoss):
            return self.loss.from_log_p(log_sum(scores.log_probs + self._log_T(scores).T[target]))
        return super().from_scores(scores, target)

    def transform(self, scores: Scores) -> Scores:
        noisy = log_sum(scores.log_probs[:, None] + self._log_T(scores).T)
        return Scores(noisy, normalised=scores.normalised, log_probs=noisy)

    def _log_T(self, scores: Scores) -> Tensor:
        _check_classes(self.T, scores.values)
        return torch.log(self.T.to(scores.values.dtype))

    def __str__(self) -> str:
        return f"forward_correction({self.loss}, {self.T.tolist()})"


class BackwardCorrection(Wrapper):
    r"""An unbiased estimate of the clean loss: :math:`\sum_j (T^{-1})_{yj} L(u, j)`.

    Unbounded below: an inverse has negative entries. Masked classes are left out of the sum, which
    stays unbiased for every other true class: :math:`\sum_y T_{iy} (T^{-1})_{yj} = [i = j]`.

    Args:
        loss: The loss to correct.
        T: (K, K) and invertible, T[i, j] the probability that class i is given label j.

    References:
        Patrini et al., Making Deep Neural Networks Robust to Label Noise, CVPR 2017.
    """

    T: Tensor
    inverse: Tensor

    def __init__(self, loss: Loss, T: Tensor, **policy: Unpack[Policy]) -> None:
        super().__init__(loss, **policy)
        self.register_buffer("T", _transition(T))
        exact = self.T.to(torch.float64)
        condition = float(torch.linalg.cond(exact))
        if not condition <= _WORST_CONDITION:
            raise ValueError(f"T must be invertible, got a condition number of {condition:.1e}")
        self.register_buffer("inverse", torch.linalg.inv(exact).to(self.T.dtype))

    def transform(self, scores: Scores) -> Scores:
        _check_classes(self.T, scores.values)
        if scores.normalised:
            return scores
        return Scores(scores.values, log_probs=scores.log_probs, partial=True, views=scores.views)

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        return self._corrected(scores, self.inverse.to(scores.values.dtype)[target])

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        # not a matrix product, which autocast would round to half precision
        mixed = (weights[:, :, None] * self.inverse.to(weights.dtype)).sum(1)
        return self._corrected(scores, mixed)

    def _corrected(self, scores: Scores, weights: Tensor) -> Tensor:
        scores = self.transform(scores)
        if scores.partial:
            weights = torch.where(scores.values == -torch.inf, 0.0, weights)
        return self.loss.expected(scores, weights)

    def __str__(self) -> str:
        return f"backward_correction({self.loss}, {self.T.tolist()})"


def _transition(T: Tensor | list[list[float]]) -> Tensor:
    T = T if isinstance(T, Tensor) else torch.tensor(T, dtype=torch.float64)
    if not T.is_floating_point() or T.dim() != 2 or T.shape[0] != T.shape[1]:
        raise ValueError(
            f"T must be a square floating-point matrix, got {T.dtype} {tuple(T.shape)}"
        )
    check_rows("T", T.detach().double())
    return T.detach().clone()


def _check_classes(T: Tensor, scores: Tensor) -> None:
    if T.shape[0] != scores.shape[1]:
        raise ValueError(f"T must be for {scores.shape[1]} classes, got one for {T.shape[0]}")

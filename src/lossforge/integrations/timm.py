"""A loss for timm's training, where Mixup and CutMix make targets of two labels."""

from torch import Tensor, nn

from ..loss import Loss


class MixupLoss(nn.Module):
    """A loss of mixed labels at the cost of two.

    Every loss takes class probabilities as targets, and what timm's `Mixup` returns needs no
    adapter. But the expected loss under probabilities costs a loss for every class where there is
    no shorter way (`BinaryReduction`, so `BEF` and `BQF`), except on the CPU, where values are read
    anyway. A mixed target has two labels, and the same value is the weighted sum of their losses.

    ::

        mixup = Mixup(mixup_alpha=0.8, label_smoothing=0.0, num_classes=1000)
        task = ClassificationTask(model, MixupLoss(lossforge.BEF()))
        loss = task(*mixup(images, labels))["loss"]

    Other targets (class indices, more than two labels, smoothed ones) go to the loss as they are.
    To tell, the values of the targets are read once a batch, which a GPU waits for and which
    `torch.compile` breaks its graph at.
    `Mixup` smooths labels by 0.1 unless told otherwise, which gives every class a share of the
    target: robust losses do not need it, set it to 0.

    Args:
        loss: Any loss.

    Example:
        >>> import torch, lossforge
        >>> logits, target = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[0.3, 0.0, 0.7]])
        >>> loss = lossforge.BEF()
        >>> torch.allclose(MixupLoss(loss)(logits, target), loss(logits, target))
        True
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss
        self.each = loss.with_policy(reduction="none")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (N, C), with the reduction of the loss.

        Args:
            input: The logits.
            target: Class probabilities (N, C), or class indices (N,).
        """
        if not self._is_mixed(input, target):
            result: Tensor = self.loss(input, target)
            return result
        weights, labels = target.topk(2)
        first, second = (self.each(input, labels[:, i]) for i in range(2))
        values: Tensor = weights[:, 0] * first + weights[:, 1] * second
        if self.loss.reduction == "none":
            return values
        return values.sum() if self.loss.reduction == "sum" else values.mean()

    def _is_mixed(self, input: Tensor, target: Tensor) -> bool:
        soft = target.is_floating_point() and input.shape == target.shape and input.dim() == 2
        # with a label to ignore, the loss refuses probabilities
        if not soft or target.shape[1] < 3 or self.loss.ignore_index >= 0:
            return False
        return bool((((target != 0).sum(1) <= 2) & (target >= 0).all(1)).all())

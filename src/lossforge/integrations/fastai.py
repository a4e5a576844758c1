"""A loss for a fastai `Learner`."""

import torch
from torch import Tensor, nn

from ..loss import Loss
from ..loss.policy import Reduction


class LossFunc(nn.Module):
    """A loss in the form that ``Learner(loss_func=...)`` expects.

    A `Learner` takes any callable as its loss, but uses more of it: without `activation`,
    `get_preds` returns logits; without `decodes`, labels cannot be shown; without `y_int`, `MixUp`
    blends class indices as if they were numbers. These are here, together with the flattening of
    `fastai.losses.CrossEntropyLossFlat`: with reduction "none" there is one value a label, in one
    dimension.

    Args:
        loss: Any loss.
        axis: Where the classes are in what the model returns: -1, or 1 for images (N, C, H, W).

    Example:
        >>> import torch, lossforge
        >>> loss_func = LossFunc(lossforge.BEF())
        >>> scores = torch.tensor([[2.0, 0.0, 2.0]])
        >>> loss_func.activation(scores), loss_func.decodes(scores)
        (tensor([[0.4683, 0.0634, 0.4683]]), tensor([0]))
    """

    y_int = True  # MixUp and CutMix then weigh the losses of two labels

    def __init__(self, loss: Loss, axis: int = -1) -> None:
        super().__init__()
        self.loss = loss
        self.axis = axis

    @property
    def reduction(self) -> Reduction:
        """The loss's own, which fastai reads and sets."""
        return self.loss.reduction

    @reduction.setter
    def reduction(self, reduction: Reduction) -> None:
        self.loss.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of a batch.

        Args:
            input: Logits, with the classes at `axis`.
            target: Class indices in the shape of `input` without classes, or probabilities in its
                shape.
        """
        logits = _plain(input).movedim(self.axis, -1)
        labels = _plain(target)
        if labels.is_floating_point():
            labels = labels.movedim(self.axis, -1).reshape(-1, logits.shape[-1])
        else:
            labels = labels.reshape(-1).long()
        result: Tensor = self.loss(logits.reshape(-1, logits.shape[-1]), labels)
        return result

    def activation(self, input: Tensor) -> Tensor:
        """Return class probabilities, for `get_preds`."""
        return torch.softmax(input, self.axis)

    def decodes(self, input: Tensor) -> Tensor:
        """Return predicted labels, for `predict` and `show_results`."""
        return input.argmax(self.axis)


def _plain(tensor: Tensor) -> Tensor:
    """Return a fastai tensor as a plain one: a subclass slows every operation down."""
    return tensor.as_subclass(Tensor)

"""A loss for the Hugging Face `Trainer`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..loss import Loss

_TRAINER_IGNORES = -100  # the label that `Trainer` leaves out when it counts items


def loss_func(loss: Loss, *, shift: bool = False) -> Callable[..., Tensor]:
    """Return the loss in the form that ``Trainer(compute_loss_func=...)`` expects.

    `Trainer` does not divide by the number of accumulated batches when this hook is set: the loss
    must be a sum divided by `num_items_in_batch`, the number of labels in all of them and on all
    devices. That is what is returned; a mean would give gradients too large by the number of
    accumulated batches. Without `num_items_in_batch` it is the mean over the batch.

    ::

        loss = lossforge.BEF()
        trainer = Trainer(model, args, train_dataset=data, compute_loss_func=loss_func(loss))

    Logits have the classes last: (N, C), or (N, T, C) with a label for each token. Labels may also
    be class probabilities in the shape of the logits. With class weights the sum is still divided
    by the number of labels, not by their weight.

    Args:
        loss: Any loss. Its `ignore_index` must be -100, which is what `Trainer` leaves out of
            `num_items_in_batch`; its reduction is not used.
        shift: Whether position t predicts the label of t + 1, as in causal language models, whose
            labels are the inputs themselves.

    Returns:
        A function of the model's outputs, the labels, and the keyword `num_items_in_batch`.

    Example:
        >>> import torch, lossforge
        >>> compute_loss = loss_func(lossforge.CE())
        >>> outputs, labels = {"logits": torch.zeros(2, 4)}, torch.tensor([3, 1])
        >>> half = compute_loss(outputs, labels, num_items_in_batch=4)  # two of four labels
        >>> print(f"{half:.4f} of {compute_loss(outputs, labels):.4f}")
        0.6931 of 1.3863
    """
    if loss.ignore_index != _TRAINER_IGNORES:
        raise ValueError(
            f"ignore_index must be {_TRAINER_IGNORES}, by which Trainer counts labels, "
            f"got {loss.ignore_index}"
        )
    return partial(_compute_loss, loss.with_policy(reduction="sum"), shift)


def _compute_loss(
    loss: Loss,
    shift: bool,
    outputs: Any,
    labels: Tensor | None,
    num_items_in_batch: Tensor | int | None = None,
) -> Tensor:
    if labels is None:
        raise ValueError("labels must be in the batch, under the name `labels`, got none")
    logits: Tensor = outputs["logits"] if hasattr(outputs, "keys") else outputs[0]
    soft = labels.is_floating_point() and labels.shape == logits.shape
    if not soft and labels.shape != logits.shape[:-1]:
        raise ValueError(
            "labels must be (N, ...) for logits (N, ..., C), or have their shape, got "
            f"{tuple(labels.shape)} and {tuple(logits.shape)}"
        )
    if shift:
        if soft:
            raise ValueError("labels must be class indices where they are shifted")
        logits, labels = logits[..., :-1, :], labels[..., 1:]
    classes = logits.shape[-1]
    # a sum over many labels leaves the range of half precision
    wide = torch.promote_types(logits.dtype, torch.float32)
    rows = logits.reshape(-1, classes).to(wide)
    target = labels.reshape(-1, classes) if soft else labels.reshape(-1).long()
    # Trainer moves the model, not the class weights of its loss
    total: Tensor = loss.to(rows)(rows, target.to(rows.device))
    return total / _items(labels, num_items_in_batch, classes if soft else 1).to(total.device)


def _items(labels: Tensor, given: Tensor | int | None, entries: int) -> Tensor:
    """Return the number that the sum is divided by.

    Args:
        labels: Those of this batch.
        given: The count of `Trainer`.
        entries: How often it counts a label: once for every class probability.
    """
    count = (labels != _TRAINER_IGNORES).sum() if given is None else torch.as_tensor(given)
    # For nn.DataParallel there is one count a device. The outputs are those of all devices then,
    # and Trainer multiplies by their number, so that it has to be divided out.
    return count.flatten()[0] * count.numel() / entries

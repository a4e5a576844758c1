"""A loss for the Hugging Face `Trainer`, and for causal models without all their logits."""

import inspect
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import extra
from ..loss import LinearLoss, Loss

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
    return partial(_compute_loss, _sum_of(loss), shift)


def use_linear_loss(model: Any, loss: Loss, *, chunk: int | None = None) -> None:
    """Let a causal language model compute this loss itself, without making all its logits.

    Called with `labels`, the model then returns the loss, and no logits: `LinearLoss` of the last
    hidden state and of the weights of the last layer. Without `labels`, as for generating text, it
    returns logits as before. Position t predicts the label of t + 1, labels of -100 are ignored,
    and the sum is divided by `num_items_in_batch`, or by the number of labels that count.

    ::

        model = LlamaForCausalLM.from_pretrained(...)
        use_linear_loss(model, lossforge.BEF())
        Trainer(model, args, train_dataset=data).train()  # or: model(**batch).loss.backward()

    It is this object that is changed, so a model that was saved and loaded has its own loss again.
    The model is run once on two tokens, to see that its logits are those of the last layer: models
    that scale or cap them are refused. Metrics that need logits need `loss_func` instead.

    Args:
        model: A causal model with a linear layer at its end, such as `LlamaForCausalLM`.
        loss: Any loss, with an `ignore_index` of -100; its reduction is not used.
        chunk: Rows of logits made at once; see `LinearLoss`.
    """
    _check_causal(model, model.base_model, model.get_output_embeddings())
    criterion = LinearLoss(_sum_of(loss), chunk=chunk)
    before = model.forward
    # a copy of the model must not call the original
    unbound = getattr(before, "__func__", lambda self, *args, **given: before(*args, **given))

    def forward(self: Any, *args: Any, labels: Tensor | None = None, **given: Any) -> Any:
        if labels is None:
            return unbound(self, *args, **given)
        items, as_dict = given.pop("num_items_in_batch", None), given.pop("return_dict", True)
        outputs = self.base_model(*args, **given, return_dict=True)
        hidden, head = outputs.last_hidden_state, self.get_output_embeddings()
        value = _linear_loss(criterion, hidden, head, labels, items)
        others = ("past_key_values", "hidden_states", "attentions")
        kept = {name: outputs[name] for name in others if name in outputs}
        modeling = extra("transformers.modeling_outputs", "hf")
        result = modeling.CausalLMOutputWithPast(loss=value, **kept)
        return result if as_dict else result.to_tuple()

    # Trainer reads from it what the model takes
    takes = inspect.signature(before)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    named = takes.replace(parameters=[itself, *takes.parameters.values()])
    forward.__signature__ = named  # type: ignore[attr-defined]
    model.forward = MethodType(forward, model)


def _linear_loss(
    criterion: LinearLoss, hidden: Tensor, head: nn.Linear, labels: Tensor, items: Any
) -> Tensor:
    labels = labels[..., 1:].to(hidden.device)
    # Trainer moves the model, not the class weights of its loss
    criterion.to(hidden.device, torch.promote_types(hidden.dtype, torch.float32))
    total: Tensor = criterion(hidden[..., :-1, :], head.weight, labels.long(), head.bias)
    return total / _items(labels, items, 1).to(total.device)


def _check_causal(model: Any, base: Any, head: Any) -> None:
    """Raise unless the logits are what the last layer makes of the last hidden state."""
    kind = type(model).__name__
    if base is model or type(head) is not nn.Linear or model.config.is_encoder_decoder:
        raise ValueError(
            f"model must be a causal model that ends in nn.Linear, got {kind} with {head!r}"
        )
    words = torch.ones(1, 2, dtype=torch.long, device=model.device)
    seen: list[Tensor] = []

    def replace(module: nn.Module, args: tuple[Tensor, ...]) -> Tensor:
        # Large states show a cap.
        seen.extend([args[0], 1000 * torch.randn_like(args[0])])
        return seen[-1]

    hook = head.register_forward_pre_hook(replace)
    # dropout must not move the random numbers of the training, and be the same twice
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        with torch.no_grad(), torch.random.fork_rng(devices):
            torch.manual_seed(0)
            logits = model(input_ids=words, return_dict=True).logits
            torch.manual_seed(0)
            last = base(input_ids=words, return_dict=True).last_hidden_state
            expected = F.linear(seen[-1], head.weight, head.bias)
    finally:
        hook.remove()
    for found, right in ((seen[0], last), (logits, expected)):
        if not torch.allclose(found.float(), right.float(), rtol=1e-2, atol=1e-2):
            raise ValueError(
                "model must return what its last layer makes of the last hidden state; "
                f"{kind} changes it (a scale, a cap): use loss_func(loss, shift=True)"
            )


def _sum_of(loss: Loss) -> Loss:
    if loss.ignore_index != _TRAINER_IGNORES:
        raise ValueError(
            f"ignore_index must be {_TRAINER_IGNORES}, by which Trainer counts labels, "
            f"got {loss.ignore_index}"
        )
    return loss.with_policy(reduction="sum")


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

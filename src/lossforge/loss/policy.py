"""Checks of arguments by the rules of `torch.nn.CrossEntropyLoss`; `Loss` applies the policy.

Exceptions have the types torch raises for the same mistake; the messages say more.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

import torch
from torch import Tensor

from ..errors import check_number

Reduction = Literal["none", "mean", "sum"]
REDUCTIONS = ("none", "mean", "sum")
HALF = (torch.float16, torch.bfloat16)


class Policy(TypedDict, total=False):
    """What a loss does beside its mathematics; the keywords of `torch.nn.CrossEntropyLoss`."""

    weight: Tensor | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float


def parameters_of(maker: Callable[..., object]) -> list[str]:
    """The names of what a maker takes, with those of the policy where it hands them on."""
    taken = inspect.signature(maker).parameters.values()
    names = [one.name for one in taken if one.kind is not one.VAR_KEYWORD]
    handed_on = Policy.__annotations__ if len(names) < len(taken) else ()
    return list(dict.fromkeys([*names, *handed_on]))


def no_parameter(loss: str, name: str, known: Sequence[str]) -> TypeError:
    """The error for a keyword that a loss does not take."""
    return TypeError(f"{loss} has no parameter {name!r}; it takes {', '.join(known)}")


def check_policy(
    weight: object, ignore_index: object, reduction: object, label_smoothing: float
) -> None:
    """Check the policy arguments of a constructor."""
    if weight is not None and not isinstance(weight, Tensor):
        raise TypeError(f"weight must be a tensor of one weight a class, got {weight!r}")
    if isinstance(ignore_index, bool) or not hasattr(ignore_index, "__index__"):
        raise TypeError(f"ignore_index must be an int, got {ignore_index!r}")
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    check_number("label_smoothing", label_smoothing, "in [0, 1]", lambda v: 0 <= v <= 1)


def check_call(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[bool, bool]:
    """Check a call's tensors.

    Returns:
        Whether `target` holds class probabilities, and whether any of its labels may be ignored:
        False only where the labels could be read and all of them count.
    """
    for name, value in (("input", input), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    shapes = f"input {tuple(input.shape)} and target {tuple(target.shape)}"
    if input.dim() == 0:
        raise RuntimeError(f"input must have a class dimension: (C), (N, C, ...), got {shapes}")
    if not input.is_floating_point():
        raise NotImplementedError(f"input must be floating-point logits, got {input.dtype}")
    if input.device != target.device:
        raise RuntimeError(
            f"target must be on the device of input, got {target.device} and {input.device}"
        )
    classes = input.shape[0 if input.dim() == 1 else 1]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight must have one entry for each of the {classes} classes, got shape "
            f"{tuple(weight.shape)}"
        )
    soft = input.shape == target.shape
    if soft:
        _check_probabilities(target, ignore_index)
        return True, False
    return False, _check_indices(input, target, weight, ignore_index, classes, shapes)


def _check_probabilities(target: Tensor, ignore_index: int) -> None:
    if not target.is_floating_point():
        raise RuntimeError(
            f"target of the shape of input must hold class probabilities, got {target.dtype}"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"ignore_index must be negative where target holds probabilities, got {ignore_index}"
        )
    if readable(target) and not (target >= 0).all():
        worst = float(target[~(target >= 0)].flatten()[0])
        raise ValueError(f"target must hold probabilities, 0 or more, got {worst:g}")


def check_probs(probs: Tensor) -> None:
    """Check class probabilities (rows, C) given in place of logits."""
    if not readable(probs):
        return
    if not (probs >= 0).all():
        worst = float(probs[~(probs >= 0)].flatten()[0])
        raise ValueError(f"probs must be 0 or more, got {worst:g}")
    total = probs.sum(1, dtype=torch.float64)
    wrong = (total - 1).abs() > max(1e-5, probs.shape[1] * torch.finfo(probs.dtype).eps)
    if wrong.any():
        worst = float(total[wrong][0])
        raise ValueError(f"probs must sum to one over the classes, got a sum of {worst:g}")


def _check_indices(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    classes: int,
    shapes: str,
) -> bool:
    """Check class indices; False if all of them were seen to count."""
    batched = input.dim() > 1
    if batched and (target.dim() == 0 or input.shape[0] != target.shape[0]):
        raise ValueError(f"target must have the batch size of input, got {shapes}")
    if target.dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(
            "target must hold class indices (int64 or uint8), or probabilities in the shape of "
            f"input, got {target.dtype} with {shapes}"
        )
    if batched and input.shape[:1] + input.shape[2:] != target.shape:
        raise RuntimeError(
            f"target must be (N, ...) for an input (N, C, ...), or have its shape, got {shapes}"
        )
    if not batched and target.shape not in ((), (1,)):
        error = ValueError if target.dim() == 1 else RuntimeError
        raise error(f"target of an input (C) must be a single label, got {shapes}")
    if weight is not None and cast(weight.dtype, input) != cast(input.dtype, input):
        raise RuntimeError(
            f"weight must have the dtype of input, got {weight.dtype} and {input.dtype}"
        )
    if not readable(target):
        return True
    target = target.long()  # uint8 cannot be compared with 256 or more classes
    keep = target != ignore_index
    wrong = keep & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(
            f"target must be in [0, {classes}) or ignore_index ({ignore_index}), "
            f"got {int(target[wrong].flatten()[0])}"
        )
    return not keep.all()


def transformed(tensor: Tensor) -> bool:
    """Whether a compiler or a function transform (vmap, grad) stands in for the tensor."""
    if torch.compiler.is_compiling():
        return True
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return wrapped


def readable(tensor: Tensor) -> bool:
    """Whether values can be looked at: no graph or transform to break, no GPU to stall."""
    plain = type(tensor) in (Tensor, torch.nn.Parameter)
    return plain and tensor.device.type == "cpu" and not transformed(tensor)


def autocasting(tensor: Tensor) -> bool:
    """Whether automatic mixed precision is on for the tensor's device."""
    return torch.is_autocast_enabled(tensor.device.type)


def cast(dtype: torch.dtype, input: Tensor) -> torch.dtype:
    """What automatic mixed precision makes of a dtype: float32 of half types, if it is on."""
    return torch.float32 if dtype in HALF and autocasting(input) else dtype


def output_dtype(input: Tensor, target: Tensor, weight: Tensor | None, soft: bool) -> torch.dtype:
    """The dtype cross entropy returns: that of the inputs."""
    dtype = input.dtype
    if soft:
        dtype = torch.promote_types(dtype, target.dtype)
        if weight is not None:
            dtype = torch.promote_types(dtype, weight.dtype)
    return cast(dtype, input)


def rows(tensor: Tensor) -> Tensor:
    """(C) or (N, C, d1, ...) as (rows, C)."""
    if tensor.dim() == 1:
        return tensor[None]
    return tensor.movedim(1, -1).reshape(-1, tensor.shape[1])


def safe_log(probs: Tensor) -> Tensor:
    """Logarithms of probabilities; a 0 gives -inf, and no gradient instead of 0 * inf."""
    positive = probs > 0
    return torch.where(positive, torch.where(positive, probs, 1.0).log(), -math.inf)


def mask_penalty(scores: Tensor, weights: Tensor) -> Tensor:
    """What cross entropy makes of masked classes under soft targets: inf, or NaN for 0 times inf.

    Zero where no class is masked.
    """
    penalty = torch.where(scores == -math.inf, math.inf, 0.0).to(weights.dtype)
    return (penalty * weights).sum(-1)

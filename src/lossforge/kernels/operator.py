"""The kernel as an operator of torch, which compiled graphs call as a whole.

Importing this module imports sympy, so the package does not.
Its derivative is a product with the gradient that it has computed beside the values. A graph has no
other path to fall back to, so that the operator is for smooth forms alone: these cover every row.
"""

from array import array
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from . import native
from .formula import Form
from .rows import DTYPES, Kernel


def text_of(form: Form, dtype: torch.dtype) -> str:
    """A form as the operator takes it, a constant of the graph: a layout, a count, the numbers."""
    numbers = form.numbers(double=dtype == torch.float64)
    return " ".join(map(repr, [native.LAYOUT, len(numbers), *numbers]))


@torch.library.custom_op("lossforge::rows", mutates_args=(), device_types="cpu")
def rows(logits: Tensor, target: Tensor, form: str, derive: bool) -> tuple[Tensor, Tensor]:
    """Values (N,) of logits (N, C) at labels (N,), and with `derive` their gradients (N, C).

    Raises:
        TypeError: If the tensors are none of a batch of labels.
        IndexError: If a label is out of range.
        MemoryError: If there is none for a row.
    """
    labels = target.dtype == torch.int64 and target.shape == logits.shape[:1]
    if logits.dtype not in DTYPES or not labels:
        raise TypeError(
            f"logits must be (N, C) of {DTYPES} and labels (N,) of int64, got {logits.dtype} "
            f"{tuple(logits.shape)} and {target.dtype} {tuple(target.shape)}"
        )
    kernel = _kernel(form, logits.shape[1], logits.dtype)
    logits, target = logits.contiguous(), target.contiguous()
    values, gradient = _outputs(logits, derive)
    status = kernel.rows(logits, target, values, gradient if derive else None)
    if status == native.MEMORY:
        raise MemoryError(f"no memory for a row of {logits.shape[1]} classes")
    if status != native.DONE:
        raise IndexError(f"labels must be in [0, {logits.shape[1]}) or ignored, got {target}")
    return values, gradient


@rows.register_fake
def _(logits: Tensor, target: Tensor, form: str, derive: bool) -> tuple[Tensor, Tensor]:
    return _outputs(logits, derive)


def _outputs(logits: Tensor, derive: bool) -> tuple[Tensor, Tensor]:
    n, classes = logits.shape
    return logits.new_empty(n), logits.new_empty((n, classes) if derive else (0, 0))


@lru_cache
def _kernel(form: str, classes: int, dtype: torch.dtype) -> Kernel:
    layout, count, *numbers = form.split()
    if int(layout) != native.LAYOUT or int(count) != len(numbers):
        raise ValueError(f"a graph must be compiled by this version of lossforge, got {form!r}")
    return Kernel(array("d", map(float, numbers)), classes, dtype)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _derivative(ctx: Any, by_value: Tensor | None, by_gradient: Tensor | None) -> tuple[Any, ...]:
    if by_gradient is not None:
        raise NotImplementedError(
            "a compiled loss has first derivatives only; call it without torch.compile for others"
        )
    (gradient,) = ctx.saved_tensors
    return None if by_value is None else by_value[:, None] * gradient, None, None, None


rows.register_autograd(_derivative, setup_context=_keep)

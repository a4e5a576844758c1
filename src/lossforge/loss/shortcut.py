"""The short way through a call: a fused kernel, and few checks where a call is a common one.

The kernel returns the gradient with the values. What is left of the backward pass is a product: for
the mean over n rows with the incoming derivative over n, for single values row by row. Whatever is
unusual, be it wrong or only rare, gets None for an answer and goes the long way.
"""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import kernels
from ..kernels import Kernel
from .policy import REDUCTIONS, Reduction, wrapped
from .scores import Scores

if TYPE_CHECKING:
    from .loss import Loss

KERNELS = "_kernels"  # the attribute of a loss that holds what was chosen for it
METHODS = {"forward", "from_scores", "per_sample", "expected", "parts", "transform"}
_LIBRARY = __name__.partition(".")[0]


def common_call(loss: "Loss", input: Tensor, target: Tensor) -> Tensor | None:
    """The loss of a batch of logits with a label each, and no policy but a reduction."""
    if torch.compiler.is_compiling():
        return None
    if type(input) is not Tensor or type(target) is not Tensor or input.dim() != 2:
        return None
    n, classes = input.shape
    if target.dim() != 1 or target.shape[0] != n or target.dtype != torch.int64:
        return None
    ignored, smoothing = loss.ignore_index, loss.label_smoothing
    if type(ignored) is not int or 0 <= ignored < classes:
        return None
    if type(smoothing) is not float or smoothing != 0 or loss._buffers["weight"] is not None:
        return None
    if loss.reduction not in REDUCTIONS:
        return None
    return by_kernel(loss, input, target, loss.reduction)


def by_kernel(loss: "Loss", logits: Tensor, target: Tensor, reduction: Reduction) -> Tensor | None:
    """The reduced loss by a kernel, as often differentiable as the composed one.

    None where there is no kernel, and where it does not cover a row: a label out of range, logits
    that are masked or not finite.

    Args:
        loss: For the kernel, and for derivatives of the gradient.
        logits: (N, C).
        target: (N,) class indices.
        reduction: "none", "mean" or "sum".
    """
    if type(logits) is not Tensor or not kernels.is_on() or _is_watched():
        return None
    if not (logits.is_cpu and target.is_cpu) or wrapped(logits) or wrapped(target):
        return None
    kernel = _kernel_of(loss, logits.shape[1], logits.dtype)
    if kernel is None:
        return None
    target = target.contiguous()
    if kernel.is_cross_entropy:
        counts = kernel.counts(target)
        return F.cross_entropy(logits, target, reduction=reduction) if counts else None
    logits = logits.contiguous()
    if not (logits.requires_grad and torch.is_grad_enabled()):
        values = logits.new_empty(logits.shape[0])
        return _reduce(values, reduction) if kernel.rows(logits, target, values, None) else None
    try:
        result: Tensor = _Reduced.apply(kernel, loss, logits, target, reduction)  # type: ignore[no-untyped-call]
    except _UncoveredError:
        return None
    return result


def forget(loss: "Loss") -> None:
    """Choose the kernels of a loss again."""
    vars(loss).pop(KERNELS, None)


def _kernel_of(loss: "Loss", classes: int, dtype: torch.dtype) -> Kernel | None:
    """The kernel for logits of so many classes, chosen once."""
    chosen: dict[tuple[int, torch.dtype], Kernel | None] = vars(loss).setdefault(KERNELS, {})
    key = classes, dtype
    if key not in chosen:
        chosen[key] = kernels.choose(loss.fused, *key) if _is_own_code(loss) else None
    return chosen[key]


def _is_watched() -> bool:
    """Whether a compiler, a tracer or a mode has to see the torch operations of a loss."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    modes: int = torch._C._len_torch_dispatch_stack()
    return modes > 0


def _is_own_code(loss: "Loss") -> bool:
    """Whether the library computes all of a loss: a subclass may do it in another way."""
    members = [one for one in loss.modules() if hasattr(one, "from_scores")]
    if any(not vars(one).keys().isdisjoint(METHODS) for one in members):
        return False
    return all(type(one).__module__.partition(".")[0] == _LIBRARY for one in members)


class _UncoveredError(Exception):
    """A batch has rows that the kernel leaves to torch operations."""


class _Reduced(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, loss: "Loss", logits: Tensor, target: Tensor, reduction: Reduction
    ) -> Tensor:
        values, gradient = logits.new_empty(logits.shape[0]), torch.empty_like(logits)
        if not kernel.rows(logits, target, values, gradient):
            raise _UncoveredError
        ctx.save_for_backward(logits, target, gradient)
        ctx.loss, ctx.reduction = loss, reduction
        return _reduce(values, reduction)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, target, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # this pass may be differentiated in turn
            value = _reduce(ctx.loss.from_scores(Scores(logits), target), ctx.reduction)
            (result,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return None, None, result, None, None
        if ctx.reduction == "none":
            grad = grad[:, None]
        elif ctx.reduction == "mean":
            grad = grad / len(gradient)
        return None, None, gradient * grad, None, None


def _reduce(values: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()

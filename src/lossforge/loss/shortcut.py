"""The short way through a call: a fused kernel, and few checks where a call is a common one.

The kernel returns the gradient with the values, and what is left of the backward pass is a product
with the incoming derivative. Whatever is unusual, be it wrong or only rare, gets None for an answer
and goes the long way.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

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
    if type(input) is not Tensor or type(target) is not Tensor or input.dim() != 2:
        return None
    n, classes = input.shape
    if target.dim() != 1 or target.shape[0] != n:
        return None
    if target.dtype != torch.int64:
        if target.dtype != torch.uint8:
            return None
        target = target.long()
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
    call = _Call(kernel, loss, target, reduction)
    logits = logits.contiguous()
    if not (logits.requires_grad and torch.is_grad_enabled()):
        return call.evaluate(logits, None)
    try:
        result: Tensor = _Reduced.apply(logits, call)  # type: ignore[no-untyped-call]
    except _UncoveredError:
        return None
    return result


def forget(loss: "Loss") -> None:
    """Choose the kernels of a loss again."""
    vars(loss).pop(KERNELS, None)


def _kernel_of(loss: "Loss", classes: int, dtype: torch.dtype) -> Kernel | None:
    """The kernel for logits of so many classes, chosen once."""
    state, key = loss.__dict__, (classes, dtype)
    chosen: dict[tuple[int, torch.dtype], Kernel | None] | None = state.get(KERNELS)
    if chosen is None:
        chosen = state[KERNELS] = {}
    if key not in chosen:
        chosen[key] = kernels.choose(loss.fused, classes, dtype) if _is_own_code(loss) else None
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


class _Call(NamedTuple):
    """A loss of a batch, but for the logits."""

    kernel: Kernel
    loss: "Loss"
    target: Tensor
    reduction: Reduction

    def evaluate(self, logits: Tensor, gradient: Tensor | None) -> Tensor | None:
        """Reduce the values, and write the gradient of what is returned; None if not covered."""
        n, reduced = logits.shape[0], self.reduction != "none"
        by = 1 / n if n and self.reduction == "mean" else 1.0
        values, total = logits.new_empty(n), logits.new_empty(()) if reduced else None
        covered = self.kernel.rows(logits, self.target, values, gradient, total=total, by=by)
        if n == 0:  # the mean of nothing is NaN
            return self.reduce(values)
        return (values if total is None else total) if covered else None

    def reduce(self, values: Tensor) -> Tensor:
        if self.reduction == "none":
            return values
        return values.mean() if self.reduction == "mean" else values.sum()


class _UncoveredError(Exception):
    """A batch has rows that the kernel leaves to torch operations."""


class _Reduced(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: _Call) -> Tensor:
        gradient = torch.empty_like(logits)
        result = call.evaluate(logits, gradient)
        if result is None:
            raise _UncoveredError
        ctx.save_for_backward(logits, gradient)
        ctx.call = call
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        logits, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # this pass may be differentiated in turn
            call = ctx.call
            value = call.reduce(call.loss.from_scores(Scores(logits), call.target))
            (result,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return result, None
        return gradient * (grad[:, None] if grad.dim() else grad), None

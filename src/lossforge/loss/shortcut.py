"""The fast path of common calls: a fused kernel and few checks.

The kernel returns the gradient with the values, and what is left of the backward pass is a product
with the incoming derivative. For whatever is unusual, be it wrong or only rare, the functions
return None, and `Loss` falls back to all checks and torch operations.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C import _get_tracing_state, _len_torch_dispatch_stack
from torch._C._functorch import is_legacy_batchedtensor, peek_interpreter_stack
from torch.autograd import forward_ad

from .. import kernels
from ..kernels import Form, Kernel, TritonKernel, triton_rows
from .policy import REDUCTIONS, Reduction
from .scores import Scores

if TYPE_CHECKING:
    from .loss import Loss

KERNELS = "_kernels"  # the attribute of a loss that holds what was chosen for it
METHODS = {
    *("forward", "from_scores", "per_sample", "expected", "transform"),
    *("parts", "constant", "coefficient", "fused"),
}
_NO_LABEL = -0x5EED_5EED_5EED_5EED  # a number that is taken for no label
_LIBRARY = __name__.partition(".")[0]
# How often a method of any loss was replaced. As text: a compiler compares it and adapts to none.
changes = "0"
# Whether the running backward pass keeps the graph; old versions of torch do not tell.
_graph_is_kept = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)


def common_call(loss: "Loss", input: Tensor, target: Tensor) -> Tensor | None:
    """The loss of a batch of logits with a label each, and no policy but a reduction."""
    if torch.compiler.is_compiling():  # a graph cannot ask whether a label is to be ignored
        return None
    if type(input) is not Tensor or type(target) is not Tensor or input.dim() != 2:
        return None
    if not input.is_cpu:  # the labels could not be looked at without waiting for the device
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
    if type(smoothing) is not float or smoothing != 0:
        return None
    if loss._buffers.get("weight", loss) is not None:  # or it is no buffer any more
        return None
    if loss.reduction not in REDUCTIONS:
        return None
    return by_kernel(loss, input, target, loss.reduction)


def by_kernel(loss: "Loss", logits: Tensor, target: Tensor, reduction: Reduction) -> Tensor | None:
    """The reduced loss by a kernel, differentiable to the same order as the composed one.

    None where there is no kernel, and where it does not cover a row: a label out of range, logits
    that are masked or not finite.

    Args:
        loss: For the kernel, and for derivatives of the gradient.
        logits: (N, C).
        target: (N,) class indices.
        reduction: "none", "mean" or "sum".
    """
    if torch.compiler.is_compiling():
        from .graphs import by_operator

        assert reduction == "none"
        return by_operator(loss, logits, target)
    if type(logits) is not Tensor or _is_watched():
        return None
    on_cpu = logits.is_cpu and target.is_cpu
    if not (kernels.is_on() if on_cpu else kernels.is_on_cuda()):
        return None
    kernel = _kernel_of(loss, logits.shape[1], logits.dtype, None if on_cpu else logits.device)
    if kernel is None:
        return None
    if isinstance(kernel, Kernel) and kernel.is_cross_entropy:
        try:
            return F.cross_entropy(logits, target, ignore_index=_NO_LABEL, reduction=reduction)
        except IndexError:  # a label is out of range: wrong, or to be ignored
            return None
    if logits.layout != torch.strided or logits.is_neg() or logits._is_zerotensor():
        return None  # their memory is not what they stand for
    call = _Call(kernel, loss, target.contiguous(), reduction)
    logits = logits.contiguous()
    if not (logits.requires_grad and torch.is_grad_enabled()):
        return call.evaluate(logits, None)
    try:
        result: Tensor = _Reduced.apply(logits, call)  # type: ignore[no-untyped-call]
    except _UncoveredError:
        return None
    return result


def forget() -> None:
    """Choose the kernels of all losses again: a method of one of them was replaced."""
    global changes
    changes = str(int(changes) + 1)


def _kernel_of(
    loss: "Loss", classes: int, dtype: torch.dtype, device: torch.device | None = None
) -> Kernel | TritonKernel | None:
    """The kernel for so many classes on a device, the CPU if None, chosen once."""
    chosen: dict[Any, Kernel | TritonKernel | None] = loss.__dict__.setdefault(KERNELS, {})
    key = classes, dtype, device, changes
    try:
        return chosen[key]
    except KeyError:
        return chosen.setdefault(key, _choose(loss, classes, dtype, device))


def _choose(
    loss: "Loss", classes: int, dtype: torch.dtype, device: torch.device | None
) -> Kernel | TritonKernel | None:
    if device is None:
        form = form_of(loss, classes, dtype)
        return None if form is None else Kernel.of(form, classes, dtype)
    return triton_rows.choose(loss.fused, classes, dtype, device) if _is_own_code(loss) else None


def form_of(loss: "Loss", classes: int, dtype: torch.dtype) -> Form | None:
    """A loss as data, if the kernel covers it for so many classes."""
    if not kernels.is_built() or dtype not in kernels.DTYPES or classes < 2:
        return None
    form = loss.fused(classes) if _is_own_code(loss) else None
    return form if form is not None and form.covered else None


def _is_watched() -> bool:
    """Whether a transform, a tracer or a mode must see the torch operations."""
    return is_transformed() or _get_tracing_state() is not None or _len_torch_dispatch_stack() > 0


def is_transformed() -> bool:
    """Whether `torch.func` or forward-mode differentiation is at work."""
    return forward_ad._current_level >= 0 or peek_interpreter_stack() is not None


def _is_own_code(loss: "Loss") -> bool:
    """Whether the library computes all of a loss: a subclass may do it in another way."""
    members = [one for one in loss.modules() if hasattr(one, "from_scores")]
    if any(not vars(one).keys().isdisjoint(METHODS) for one in members):
        return False
    return all(is_from_library(type(one)) for one in members)


def is_from_library(kind: type) -> bool:
    """Whether a class is part of this package."""
    return kind.__module__.partition(".")[0] == _LIBRARY


class _Call(NamedTuple):
    """A loss of a batch, but for the logits."""

    kernel: Kernel | TritonKernel
    loss: "Loss"
    target: Tensor
    reduction: Reduction

    def evaluate(self, logits: Tensor, gradient: Tensor | None) -> Tensor | None:
        """Reduce the values, and write the gradient of what is returned; None if not covered."""
        n, reduced = logits.shape[0], self.reduction != "none"
        by = 1 / n if n and self.reduction == "mean" else 1.0
        values, total = logits.new_empty(n), logits.new_empty(()) if reduced else None
        status = self.kernel.rows(logits, self.target, values, gradient, total=total, by=by)
        if n == 0:  # the mean of nothing is NaN
            return self.reduce(values)
        return (values if total is None else total) if status == kernels.DONE else None

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
        ctx.save_for_backward(gradient, call.target)
        # A backward pass that is not differentiated needs no logits, which may change till then.
        ctx.call, ctx.logits, ctx.version = call, logits, logits._version
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        gradient, target = ctx.saved_tensors
        if torch.is_grad_enabled():  # this pass may be differentiated in turn
            call, logits = ctx.call, ctx.logits
            if logits._version != ctx.version:
                raise RuntimeError(
                    "the logits were changed in place after the loss was computed; clone them for "
                    "derivatives of the gradient"
                )
            value = call.reduce(call.loss.at_labels(Scores(logits), target))
            (result,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return result, None
        if not _is_last(grad):
            return gradient * (grad[:, None] if grad.dim() else grad), None
        if grad.dim():
            return gradient.mul_(grad[:, None]), None
        # `loss.backward()` comes with 1; a GPU would have to be waited for to know
        return (gradient if grad.is_cpu and grad.item() == 1 else gradient.mul_(grad)), None


def _is_last(grad: Tensor) -> bool:
    """Whether no other backward pass needs the gradient, nor anybody watches this one."""
    if torch.compiler.is_compiling() or _graph_is_kept() or _is_watched():
        return False
    return type(grad) is Tensor and not is_legacy_batchedtensor(grad)

"""A loss of the logits of a last linear layer, which are never all held at once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from ..errors import check_integer
from . import policy as rules
from .loss import Loss

_CHUNK = 1 << 24  # logits that a chunk holds unless its rows are given


_Inputs = tuple[Tensor, Tensor, Tensor | None]  # hidden (N, d), weight (V, d), bias (V)
_Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]  # of them, where wanted


class LinearLoss(nn.Module):
    r"""A loss of the logits :math:`Z = X W^T + b`, made and differentiated in chunks of rows.

    Where there are many classes, the logits of a batch and their gradient take more memory than the
    rest of the network. But a row x of X needs only its own logits z: with
    :math:`g = \nabla_z L(z, t)`, the gradient of x is :math:`W^T g`, that of W is the sum of
    :math:`g x^T` over the rows, that of b the sum of g. So each chunk of rows takes one product, a
    call of the loss and two products, and its logits are forgotten. All this happens in the
    forward pass; the backward pass multiplies the gradients by a number.

    The value is that of ``loss(F.linear(hidden, weight, bias), target)``. Rows whose label is
    ignored are not computed at all; to find them, a GPU is waited for once a call. With reduction
    "none" every row has a factor of its own in the backward pass, which makes the logits again.

    Half precision is raised to float32 after the product, gradients are summed over chunks in
    float32 and returned in the dtype of what they belong to; the value is in float32. Under
    autocast the products are in its dtype. Only first derivatives exist, function transforms
    (`torch.func`) are refused, and `torch.compile` leaves it out of its graphs; to compile the loss
    of a chunk, call ``criterion.loss.compile()``.

    Args:
        loss: Any loss, with its policy.
        chunk: Rows in a chunk; by default as many as have 2^24 logits.

    Example:
        >>> import torch, lossforge
        >>> head, hidden, target = torch.nn.Linear(16, 5000), torch.randn(8, 16), torch.arange(8)
        >>> criterion = lossforge.LinearLoss(lossforge.BEF(), chunk=4)
        >>> value = criterion(hidden, head.weight, target, head.bias)
        >>> torch.allclose(value, lossforge.BEF()(head(hidden), target))
        True
    """

    def __init__(self, loss: Loss, *, chunk: int | None = None) -> None:
        super().__init__()
        if not isinstance(loss, Loss):
            raise TypeError(f"loss must be a lossforge loss, got {loss!r}")
        if chunk is not None:
            check_integer("chunk", chunk, 1)
        self.loss = loss.with_policy(reduction="none")
        self.reduction = loss.reduction
        self.chunk = chunk

    def forward(
        self, hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """The loss of the logits ``F.linear(hidden, weight, bias)``.

        Args:
            hidden: What the layer takes, (N, d) or (..., d).
            weight: Of the layer, (V, d) for V classes.
            target: Class indices, in the shape of `hidden` without d.
            bias: Of the layer, (V).

        Returns:
            A scalar, or for reduction "none" the shape of `target`.
        """
        if torch.compiler.is_compiling():
            # A graph would break at every chunk.
            outside = torch.compiler.disable(self._evaluate)  # type: ignore[no-untyped-call]
            result: Tensor = outside(hidden, weight, target, bias)
            return result
        return self._evaluate(hidden, weight, target, bias)

    def _evaluate(
        self, hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None
    ) -> Tensor:
        _check(hidden, weight, target, bias)
        if self.reduction not in rules.REDUCTIONS or self.loss.reduction != "none":
            options = ", ".join(rules.REDUCTIONS)
            raise ValueError(
                f"reduction must be one of {options}, got {self.reduction!r}, and that of the "
                f"inner loss 'none', got {self.loss.reduction!r}"
            )
        job = _job(self.loss, self.chunk, (hidden, weight, bias), target)
        rows, labels = hidden.reshape(target.numel(), hidden.shape[-1]), target.reshape(-1).long()
        keep = labels != self.loss.ignore_index
        places = None if keep.all() else keep.nonzero()[:, 0]
        if places is not None:
            rows, labels = rows.index_select(0, places), labels[places]
        if self.reduction == "none":
            values: Tensor = _Rows.apply(job, rows, weight, bias, labels)  # type: ignore[no-untyped-call]
            if places is not None:
                values = values.new_zeros(keep.shape).index_copy(0, places, values)
            return values.view(target.shape)
        total: Tensor = _Total.apply(job, rows, weight, bias, labels)  # type: ignore[no-untyped-call]
        if self.reduction == "sum":
            return total
        return total / (len(labels) if job.loss.weight is None else job.loss.weight[labels].sum())

    def extra_repr(self) -> str:
        """What `repr` shows beside the loss."""
        return ", ".join(
            [f"reduction={self.reduction!r}", *([f"chunk={self.chunk}"] if self.chunk else [])]
        )


class _Job(NamedTuple):
    """How rows are evaluated."""

    loss: Loss  # without reduction
    step: int  # rows in a chunk
    narrow: torch.dtype  # of products
    wide: torch.dtype  # of the loss, and of sums over chunks
    wanted: tuple[bool, ...]  # gradients of hidden, weight, bias


class _Total(Function):
    """The sum of the loss over all rows; the gradient is found in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, job: _Job, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor
    ) -> Tensor:
        inputs = hidden, weight, bias
        values, gradients = _sweep(job, inputs, target)
        ctx.save_for_backward(*gradients)
        ctx.dtypes = [None if one is None else one.dtype for one in inputs]
        ctx.empty = len(target) == 0
        return values.sum()

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_derivatives()
        # The factor of an empty mean is infinite, but there is no row that it multiplies.
        factor = torch.zeros_like(factor) if ctx.empty else factor
        pairs = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        scaled = [None if one is None else (one * factor).to(dtype) for one, dtype in pairs]
        return None, *scaled, None


class _Rows(Function):
    """The loss of every row; the backward pass evaluates it again."""

    @staticmethod
    def forward(
        ctx: Any, job: _Job, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor
    ) -> Tensor:
        ctx.job = job
        ctx.save_for_backward(hidden, weight, bias, target)
        return _sweep(job._replace(wanted=(False,) * 3), (hidden, weight, bias), target)[0]

    @staticmethod
    def backward(ctx: Any, factors: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_derivatives()
        *inputs, target = ctx.saved_tensors
        job = ctx.job._replace(wanted=ctx.needs_input_grad[1:4])
        _, gradients = _sweep(job, tuple(inputs), target, factors)
        pairs = zip(gradients, inputs, strict=True)
        return None, *(None if one is None else one.to(like.dtype) for one, like in pairs), None


def _refuse_second_derivatives() -> None:
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "create_graph must be False: LinearLoss has first derivatives only; "
            "for second ones, use loss(F.linear(hidden, weight, bias), target)"
        )


def _sweep(
    job: _Job, inputs: _Inputs, target: Tensor, factors: Tensor | None = None
) -> tuple[Tensor, _Gradients]:
    """Evaluate the rows chunk by chunk.

    Args:
        job: How.
        inputs: What the logits are made of.
        target: (N,) class indices, all of which count.
        factors: (N,) factors of the rows in the gradient; 1 by default.

    Returns:
        (N,) values, and the wanted gradients of their sum in the wide dtype.
    """
    hidden, weight, bias = inputs
    hidden, weight = hidden.to(job.narrow), weight.to(job.narrow)
    bias = None if bias is None else bias.to(job.narrow)
    sums = [
        torch.zeros_like(one, dtype=job.wide) if wanted and one is not None else None
        for one, wanted in zip(inputs, job.wanted, strict=True)
    ]
    values = torch.empty(len(target), dtype=job.wide, device=target.device)
    if factors is None:
        factors = torch.ones_like(values)
    # Autocast has been obeyed; what it would cast and cache here is without gradients elsewhere.
    with torch.autocast(target.device.type, enabled=False):
        for start in range(0, len(target), job.step):
            part = slice(start, start + job.step)
            gradients = None if sums[0] is None else sums[0][part], sums[1], sums[2]
            chunk = hidden[part], weight, bias
            values[part] = _add_chunk(job, chunk, target[part], factors[part], gradients)
    return values, (sums[0], sums[1], sums[2])


def _add_chunk(
    job: _Job, inputs: _Inputs, target: Tensor, factors: Tensor, gradients: _Gradients
) -> Tensor:
    """Return the values of a chunk, and add to the gradients."""
    hidden, weight, bias = inputs
    of_hidden, of_weight, of_bias = gradients
    logits = F.linear(hidden, weight, bias).to(job.wide)
    with torch.set_grad_enabled(any(job.wanted)):
        values: Tensor = job.loss(logits.requires_grad_(any(job.wanted)), target)
    if not any(job.wanted):
        return values
    (slope,) = torch.autograd.grad(values, logits, factors)
    if of_bias is not None:
        of_bias += slope.sum(0)
    slope = slope.to(job.narrow)
    if of_hidden is not None:
        of_hidden += slope @ weight
    if of_weight is not None and job.narrow == job.wide:
        of_weight.addmm_(slope.T, hidden)
    elif of_weight is not None:
        of_weight += slope.T @ hidden
    return values.detach()


def _job(loss: Loss, chunk: int | None, inputs: _Inputs, target: Tensor) -> _Job:
    """Decide how rows are evaluated, and check by the rules of the loss."""
    hidden, weight, bias = inputs
    classes, device = len(weight), hidden.device.type
    if any(one.requires_grad for one in (*loss.parameters(), *loss.buffers())):
        raise ValueError(f"loss must have nothing to learn: its gradient would be lost, got {loss}")
    casting = rules.autocasting(hidden) and hidden.dtype != torch.float64
    narrow = torch.get_autocast_dtype(device) if casting else hidden.dtype
    wide = torch.promote_types(narrow, torch.float32)
    for name, one in (("weight", weight), ("bias", bias)):
        cast = casting and one is not None and one.dtype != torch.float64
        if one is not None and one.dtype != narrow and not cast:
            raise RuntimeError(f"{name} must have the dtype of hidden, got {one.dtype}, {narrow}")
    if loss.weight is not None and loss.weight.dtype in rules.HALF:
        loss = loss.with_policy(weight=loss.weight.to(wide))
    # one number that has the shape of all logits
    like = hidden.new_zeros((), dtype=wide).expand(target.numel(), classes)
    rules.check_call(like, target.reshape(-1), loss.weight, loss.ignore_index)
    learning = torch.is_grad_enabled()
    wanted = tuple(learning and one is not None and one.requires_grad for one in inputs)
    return _Job(loss, chunk or max(1, _CHUNK // max(1, classes)), narrow, wide, wanted)


def _check(hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None) -> None:
    """Check what is particular to a linear layer."""
    given = {"hidden": hidden, "weight": weight, "target": target, "bias": bias}
    for name, value in given.items():
        if not isinstance(value, Tensor) and not (name == "bias" and value is None):
            raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
        if value is not None and torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise NotImplementedError(
                f"{name} must not be transformed by torch.func (grad, vmap, jvp); there, use "
                "loss(F.linear(hidden, weight, bias), target)"
            )
    shapes = f"hidden {tuple(hidden.shape)} and weight {tuple(weight.shape)}"
    if hidden.dim() == 0 or weight.dim() != 2 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(f"weight must be (V, d) for hidden (..., d), got {shapes}")
    if not hidden.is_floating_point():
        raise NotImplementedError(f"hidden must be floating-point, got {hidden.dtype}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must be (V) for weight (V, d), got {tuple(bias.shape)}, {shapes}")
    if target.is_floating_point():
        raise TypeError(
            f"target must hold class indices, got {target.dtype}; class probabilities are as large "
            "as all logits: use loss(F.linear(hidden, weight, bias), target)"
        )
    if target.shape != hidden.shape[:-1]:
        raise ValueError(
            f"target must have the shape of hidden without d, got {tuple(target.shape)}, {shapes}"
        )

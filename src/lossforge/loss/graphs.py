"""The kernel in graphs of torch.compile: what `shortcut` does for single calls.

The first loss that is compiled imports this module, and with it sympy and the compiler.
"""

import torch
from torch import Tensor
from torch.fx.experimental import symbolic_shapes

from .. import kernels
from ..kernels.operator import rows, text_of
from . import shortcut
from .loss import Loss

_has_static_value = getattr(symbolic_shapes, "has_static_value", None)  # since torch 2.8


def by_operator(loss: Loss, logits: Tensor, target: Tensor) -> Tensor | None:
    """(N,) values by the kernel as one operator; None for torch operations.

    Args:
        loss: The loss.
        logits: (N, C).
        target: (N,) labels of which none is ignored.
    """
    classes = logits.shape[1]
    if logits.device.type != "cpu" or _has_static_value is None or not _has_static_value(classes):
        return None
    # The last two are for the compiler: a graph is for this loss with these methods alone.
    form = loss._operator_form(classes, logits.dtype, id(loss), shortcut.changes)
    if not form:
        return None
    derive = logits.requires_grad and torch.is_grad_enabled()
    values: Tensor = rows(logits, target, form, derive)[0]
    return values


def operator_form(loss: Loss, classes: int, dtype: torch.dtype) -> str:
    """A loss as the operator takes it; empty where a graph must have torch operations.

    An exported program must run where there is no kernel, and a graph has nothing to fall back to
    if a row is not covered.
    """
    if torch.compiler.is_exporting() or shortcut.is_transformed() or not kernels.is_on():
        return ""
    form = shortcut.form_of(loss, classes, dtype)
    return text_of(form, dtype) if form is not None and form.smooth else ""


# A compiler calls it and takes the answer for a constant, instead of tracing it. The mark is put
# here because a decorator would import the compiler with the package.
torch.compiler.assume_constant_result(Loss._operator_form)  # type: ignore[no-untyped-call]

r"""Losses of polynomial base functions on CUDA: values and gradients in one launch of Triton.

A loss is a constant and a sum of terms in the roles target, others and pairs (`formula`). Let u be
the softmax of a row of logits z, t its label, r the number of its rivals that are not masked,
:math:`v = \sum_{i \ne t} u_i`, :math:`p_i = \sigma(z_t - z_i)` and :math:`q_i = \sigma(z_i - z_t)`.
The terms of one role add up to one density :math:`\varphi = \sum_j c_j \varphi_j`, where
:math:`c_j = \text{factor}_j \max(\text{shared}_j / r, \text{least}_j)`, and so do its means P over
[0, x] and Q over [1 - y, 1]. With T, O and B for the three roles and :math:`A = \sum_{i \ne t} u_i
\varphi_O(u_i)`,

.. math::
    \text{value} &= \text{constant} + v Q_T(v) + \sum_{i \ne t} u_i P_O(u_i)
        + \sum_{i \ne t} q_i Q_B(q_i) \\
    \partial_{z_k} &= u_k (\varphi_O(u_k) + u_t \varphi_T(u_t) - A) + p_k q_k \varphi_B(p_k),
        \qquad k \ne t \\
    \partial_{z_t} &= -u_t (v \varphi_T(u_t) + A) - \sum_{i \ne t} p_i q_i \varphi_B(p_i).

All of these are polynomials, and those of one role, shared and least are added up by their
coefficients beforehand: BEF, or a sum of many such losses, evaluates one polynomial for each letter
above. Both p and q come from :math:`\exp(-|z_t - z_i|)`, which neither overflows nor cancels,
whatever the distance of the label from the largest logit. Sums have one float32 accumulator for
each class of a block, and are added up as a tree at the end.

The tests interpret the kernel on the CPU and compile it for devices, but no device has run it:
there the exponential is the hardware's, whose relative error grows from 2^-22 to about 1e-5 at
terms that all but underflow.
"""

import math
import warnings
from collections.abc import Callable
from functools import cache
from itertools import chain, zip_longest
from typing import Any

import torch
from torch import Tensor

from . import native
from .formula import Form, Role, Term

_BLOCK = 4096  # classes at a time, a power of 2
_PER_THREAD = 16


class TritonKernel:
    """The Triton kernel for one loss and number of classes, in float32; see `Kernel` in `rows`.

    Args:
        form: The loss, one that is `covered`.
        classes: The number of classes.
    """

    def __init__(self, form: Form, classes: int) -> None:
        self.classes = classes
        self._constant = form.constant
        block = min(_BLOCK, 1 << (classes - 1).bit_length())
        self._options: dict[str, Any] = {
            **_series(form, "target", "own"),
            **_series(form, "others", "other"),
            **_series(form, "pairs", "pair"),
            "block": block,
            "num_warps": max(1, block // (32 * _PER_THREAD)),
            # The assertion on labels is compiled, checks of integer arithmetic are not.
            "debug": True,
            "sanitize_overflow": False,
        }

    def rows(
        self,
        logits: Tensor,
        target: Tensor,
        values: Tensor,
        gradient: Tensor | None,
        *,
        total: Tensor | None = None,
        by: float = 1.0,
    ) -> int:
        """Write the values and what else is asked for.

        A masked label has the value +inf and the gradient 0; a logit of NaN or +inf makes its row
        NaN, and so do masks on all classes. The host does not read labels, so that it never waits
        for the device: a label that is no class fails an assertion there, as it does where torch
        takes it for an index, and its row is NaN.

        Args:
            logits: (N, C) of float32.
            target: (N,) class indices of int64; none of them is ignored.
            values: (N,) of all rows, contiguous.
            gradient: (N, C) derivatives of the values times `by`, contiguous.
            total: () sum of the values times `by`.
            by: A factor, such as 1 / N for a mean.

        Returns:
            `native.DONE`, for every row is covered.
        """
        from .triton_kernel import rows_kernel  # only builds of torch for CUDA bring triton

        if logits.dtype != torch.float32:
            raise TypeError(f"logits must be float32, got {logits.dtype}")
        if logits.numel() > 0:
            tensors = logits.contiguous(), target.contiguous(), values, gradient
            with torch.cuda.device_of(logits):  # type: ignore[no-untyped-call]
                launch = rows_kernel[(logits.shape[0],)]
                launch(*tensors, self.classes, by, self._constant, **self._options)
        if total is not None:
            total.copy_(by * values.sum(dtype=torch.float64))
        return native.DONE


def covered(form: Form) -> bool:
    """Whether the Triton kernel has all terms of a loss."""
    return form.covered and form.rescaling is None and all(map(_covers, form.terms))


def choose(
    fused: Callable[[int], Form | None], classes: int, dtype: torch.dtype, device: torch.device
) -> TritonKernel | None:
    """The kernel for a loss on a CUDA device, if Triton works there and covers it."""
    if device.type != "cuda" or torch.version.cuda is None or version() is None:
        return None
    form = fused(classes) if dtype == torch.float32 and classes > 1 else None
    if form is None or not covered(form):
        return None
    kernel = TritonKernel(form, classes)
    return kernel if _can_launch(kernel, device) else None


@cache
def version() -> str | None:
    """The version of Triton; None if there is none, or one that is too old."""
    try:
        from .triton_kernel import VERSION
    except ImportError:
        return None
    return str(VERSION)


def _can_launch(kernel: TritonKernel, device: torch.device) -> bool:
    """Whether a row can be evaluated: Triton calls a C compiler, and knows not every device."""
    logits = torch.zeros(1, kernel.classes, device=device, dtype=torch.float32)
    target = torch.zeros(1, device=device, dtype=torch.int64)
    values = logits.new_empty(1)
    try:
        kernel.rows(logits, target, values, torch.empty_like(logits))
        return bool(values.isfinite().all())  # which waits for the device
    except Exception as error:  # whatever it lacks, torch operations do without it
        warnings.warn(f"the Triton kernel does not run here: {error}", stacklevel=2)
        return False


def _covers(term: Term) -> bool:
    powers = all(one.line is None for one in term.formula.series)
    everywhere = term.fewest <= 1 and term.most == math.inf  # in rows with any number of rivals
    return term.formula.kind == "polynomial" and powers and everywhere and not term.relaxation


def _series(form: Form, role: Role, name: str) -> dict[str, tuple[float, ...]]:
    """The terms of a role as `triton_kernel` takes them: one polynomial for each strength."""
    groups: dict[tuple[float, float], list[Term]] = {}
    for term in form.terms:
        if term.role == role:
            groups.setdefault((term.shared, term.least), []).append(term)
    mean = 1 if role == "others" else 2  # over [0, x], or over [1 - y, 1]
    rows = [_added(terms, which) for terms in groups.values() for which in (0, mean)]
    padded = zip(*zip_longest(*rows, fillvalue=0.0), strict=True)
    series, strength = chain.from_iterable(padded), chain.from_iterable(groups)
    return {f"{name}_strength": tuple(strength), f"{name}_series": tuple(series)}


def _added(terms: list[Term], which: int) -> list[float]:
    """The coefficients of one polynomial of each term, times the term's factor, added up."""
    powers = [(term.factor, term.formula.coefficients(double=False)[which]) for term in terms]
    scaled = [[factor * number for number in numbers] for factor, numbers in powers]
    return [math.fsum(column) for column in zip_longest(*scaled, fillvalue=0.0)]

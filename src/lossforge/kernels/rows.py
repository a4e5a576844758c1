"""The compiled kernel for one loss."""

from collections.abc import Callable

import torch
from torch import Tensor

from . import native
from .formula import Form


class Kernel:
    """The kernel for one loss, number of classes and dtype.

    Args:
        form: The loss.
        classes: The number of classes.
        dtype: Of the logits.
    """

    def __init__(self, form: Form, classes: int, dtype: torch.dtype) -> None:
        self.classes = classes
        self.is_cross_entropy = form.is_cross_entropy
        self._numbers = form.numbers(double=dtype == torch.float64)
        self._address = self._numbers.buffer_info()[0]
        self._rows, self._labels = native.functions(dtype)

    def labels_valid(self, target: Tensor) -> bool:
        """Whether every label, of contiguous ones, is one of the classes."""
        return bool(self._labels(target.data_ptr(), target.shape[0], self.classes))

    def rows(
        self,
        logits: Tensor,
        target: Tensor,
        values: Tensor,
        gradient: Tensor | None,
        *,
        total: Tensor | None = None,
        by: float = 1.0,
    ) -> bool:
        """Write the values and what else is asked for; False if a row is not covered.

        Args:
            logits: (N, C), contiguous.
            target: (N,) class indices, contiguous.
            values: (N,) of all rows.
            gradient: (N, C) derivatives of the values times `by`.
            total: () sum of the values times `by`.
            by: A factor, such as 1 / N for a mean.
        """
        n, classes = logits.shape
        status = self._rows(
            self._address,
            logits.data_ptr(),
            target.data_ptr(),
            n,
            classes,
            by,
            values.data_ptr(),
            None if total is None else total.data_ptr(),
            None if gradient is None else gradient.data_ptr(),
            torch.get_num_threads(),
        )
        return bool(status == native.DONE)


def choose(fused: Callable[[int], Form | None], classes: int, dtype: torch.dtype) -> Kernel | None:
    """The kernel for a loss, if the library is there and covers it."""
    if native.library() is None or dtype not in (torch.float32, torch.float64) or classes < 2:
        return None
    form = fused(classes)
    return Kernel(form, classes, dtype) if form is not None and form.covered else None

"""The compiled kernel for one loss."""

from array import array

import torch
from torch import Tensor

from . import native
from .formula import Form

DTYPES = (torch.float32, torch.float64)


class Kernel:
    """The kernel for one loss, number of classes and dtype.

    Args:
        numbers: The loss: `Form.numbers` in the precision of the dtype.
        classes: The number of classes.
        dtype: Of the logits.
        is_cross_entropy: Whether torch has this loss itself.
    """

    def __init__(
        self,
        numbers: "array[float]",
        classes: int,
        dtype: torch.dtype,
        *,
        is_cross_entropy: bool = False,
    ) -> None:
        self.classes = classes
        self.is_cross_entropy = is_cross_entropy
        self._numbers = numbers
        self._address = self._numbers.buffer_info()[0]
        self._rows = native.function(dtype)

    @classmethod
    def of(cls, form: Form, classes: int, dtype: torch.dtype) -> "Kernel":
        """The kernel for a form that is covered; the library must be built."""
        numbers = form.numbers(double=dtype == torch.float64)
        return cls(numbers, classes, dtype, is_cross_entropy=form.is_cross_entropy)

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

        Args:
            logits: (N, C), contiguous.
            target: (N,) class indices, contiguous.
            values: (N,) of all rows.
            gradient: (N, C) derivatives of the values times `by`.
            total: () sum of the values times `by`.
            by: A factor, such as 1 / N for a mean.

        Returns:
            `native.DONE`, or another status if a row is not covered.
        """
        n, classes = logits.shape
        status: int = self._rows(
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
        return status

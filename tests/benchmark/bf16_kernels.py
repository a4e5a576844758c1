"""Convolutions of bfloat16 tensors that take seconds where the CPU has no instructions for them."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

BF16 = torch.bfloat16
CONVOLUTIONS = {
    torch.ops.aten.convolution.default,
    torch.ops.aten.convolution_backward.default,
}


class QuickConvolutions(TorchDispatchMode):
    """Within this context, products and sums are of float32 and results are rounded to bfloat16.

    That is what a bfloat16 kernel does, up to the order of its sums. Autocast, all other kernels
    and all tensors in between are as they are without it.

    Attributes:
        forward: How many convolutions there were.
        backward: How many of their gradients.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forward = self.backward = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in CONVOLUTIONS or args[0].dtype != BF16:
            return func(*args, **(kwargs or {}))
        wide = [a.float() if isinstance(a, Tensor) and a.dtype == BF16 else a for a in args]
        found = func(*wide, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.forward += 1
            return found.to(BF16)
        self.backward += 1
        return tuple(None if part is None else part.to(BF16) for part in found)

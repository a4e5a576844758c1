"""Evaluation in cache-sized blocks of rows."""

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 1 << 16  # elements: a handful of float32 temporaries of this size fit a core's cache


def in_blocks(function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> tuple[Tensor, ...]:
    """`function(*tensors)` for a function that treats rows independently.

    Eager torch writes every intermediate result to memory. Cut into blocks of rows, the
    temporaries stay in the cache and the peak memory is that of the results. A compiler fuses the
    operations itself, so under `torch.compile` nothing is cut.

    Args:
        function: Takes blocks of the tensors' rows, returns tensors of as many rows.
        tensors: The first (rows, width), all with the same number of rows.
    """
    rows, width = tensors[0].shape
    if torch.compiler.is_compiling() or rows * width <= _BLOCK:
        return function(*tensors)
    step = max(1, _BLOCK // width)
    blocks = zip(*(torch.split(tensor, step) for tensor in tensors), strict=True)
    results = [function(*block) for block in blocks]
    return tuple(torch.cat(parts) for parts in zip(*results, strict=True))

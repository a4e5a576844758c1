r"""Training in several processes, with the gradient of one.

Let B be a batch, l_i the loss of sample i with its class weight (0 where its label is ignored), and
D the sum of the kept weights over all of B. One process descends along the gradient of

.. math:: L = \frac{1}{D} \sum_{i \in B} l_i .

Of W processes, process r holds the part B_r of B, and `DistributedDataParallel` averages their
gradients. If process r differentiates :math:`\frac{W}{D} \sum_{i \in B_r} l_i`, the average is

.. math:: \frac{1}{W} \sum_r \nabla \frac{W}{D} \sum_{i \in B_r} l_i
    = \frac{1}{D} \sum_{i \in B} \nabla l_i = \nabla L,

because the parts are disjoint and make up B; their sizes do not matter, and one may be empty.
D must be that of the whole batch. (Each process dividing by its own D_r gives
:math:`\frac{1}{W} \sum_r \frac{1}{D_r} \sum_{B_r} \nabla l_i`, which is the same only if all
D_r = D / W.) No message is needed for it: all processes draw the same batch order and know all
labels. With reduction "sum" the same holds with D = 1.

The L1 decay and the clipping act on the averaged gradient, which is the same everywhere, so they
too are those of one process; then the optimizers take the same step from the same parameters.

Two things differ from one process: a batch norm sees only its process's part of the batch, and
augmentation and dropout draw from a separate random stream in each process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from .state import State


def world() -> tuple[int, int]:
    """Return this process's rank and the number of processes; (0, 1) without a process group."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def share(positions: Tensor) -> Tensor:
    """Return this process's share; shares differ by at most one, and rank 0's is never smaller."""
    rank, size = world()
    return positions.tensor_split(size)[rank]


def total(values: Tensor) -> Tensor:
    """Sum over all processes, for all of them."""
    if world()[1] > 1:
        distributed.all_reduce(values)
    return values


def wrap(model: nn.Module) -> nn.Module:
    """Average the model's gradients over the processes; all start from rank 0's weights."""
    return DistributedDataParallel(model) if world()[1] > 1 else model


def agree_on_buffers(model: nn.Module) -> None:
    """Give every process the buffers of rank 0, such as a batch norm's running mean."""
    if world()[1] > 1:
        for buffer in model.buffers():
            distributed.broadcast(buffer, 0)


def agree_on_state(state: State | None, device: torch.device) -> State | None:
    """Give every process the state of rank 0; the others need not have read one."""
    rank, size = world()
    if size == 1:
        return state
    content = [state.to_bytes() if state is not None and rank == 0 else None]
    distributed.broadcast_object_list(content, 0, device=device)
    return None if content[0] is None else State.from_bytes(content[0])


@contextmanager
def launched(device: str = "cpu") -> Iterator[str]:
    """Join the process group if torchrun started this process, and leave it at the end.

    Args:
        device: "cpu", or "cuda" for one GPU a process.

    Yields:
        The device of this process.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield device
        return
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()

"""What each of two processes computes for test_global_mean.py."""

import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import lossforge
from lossforge.integrations.distributed import GlobalMean

CLASSES = 4
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
LOSSES = {
    "plain": lossforge.BEF(),
    "weight": lossforge.CE(weight=WEIGHT),
    "sum": lossforge.CE(reduction="sum"),  # which is not used
    "soft": lossforge.BEF(weight=WEIGHT),
}


def problem(name):
    """Six samples with three places each, most of the first three ignored."""
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(6, 5, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(CLASSES, (6, 3), generator=generator)
    labels[:3, 1:] = -100
    if name == "soft":
        labels = torch.randn(6, CLASSES, 3, generator=generator, dtype=torch.float64).softmax(1)
    return inputs, labels


def step(name, rows, criterion, wrap):
    """The value on `rows` and the gradient that the optimizer would see."""
    torch.manual_seed(0)
    model = wrap(nn.Conv1d(5, CLASSES, 1, dtype=torch.float64))
    inputs, labels = problem(name)
    value = criterion(model(inputs[rows]), labels[rows])
    value.backward()
    return value.item(), [parameter.grad.clone() for parameter in model.parameters()]


def work(rank, size, folder):
    """Write this process's values and gradients, of the global mean and of a mean of means."""
    url = f"file://{folder}/rendezvous"
    distributed.init_process_group("gloo", init_method=url, rank=rank, world_size=size)
    rows = slice(3 * rank, 3 * rank + 3)
    found = {}
    for name, loss in LOSSES.items():
        found[name] = step(name, rows, GlobalMean(loss), DistributedDataParallel)
        local = loss.with_policy(reduction="mean")
        found["local " + name] = step(name, rows, local, DistributedDataParallel)
    torch.save(found, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()
    # Threads of Gloo outlive the group, and abort the process if they free a tensor while the
    # interpreter is finalised (github.com/pytorch/pytorch/pull/179291).
    os._exit(0)

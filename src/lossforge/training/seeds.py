"""Named random streams.

Each purpose has its own generator, made from the run's seed whenever it is needed. So draws for
one purpose never shift another's stream, and a checkpoint holds no random state: the stream of
epoch 7 does not require those of epochs 1 to 6.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator

from ..errors import check_integer


def generator(seed: int, *purpose: str | int) -> Generator:
    """Make a CPU generator for one purpose of a run.

    Args:
        seed: The run's seed, 0 or more.
        purpose: What is drawn, as words and numbers: ``generator(3, "order", 7)``.
    """
    return Generator().manual_seed(_derive(seed, *purpose))


@contextmanager
def seeded(device: torch.device, seed: int, *purpose: str | int) -> Iterator[None]:
    """Seed torch's global streams inside the context, and restore them afterwards.

    Layers such as dropout draw from the global stream and take no generator.

    Args:
        device: Where such layers run.
        seed: As for `generator`.
        purpose: As for `generator`.
    """
    state = _derive(seed, *purpose)
    if device.type == "cpu":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(state)
            yield
    else:
        module = torch.get_device_module(device)
        index = module.current_device() if device.index is None else device.index
        with torch.random.fork_rng(devices=[index], device_type=device.type), module.device(index):
            torch.default_generator.manual_seed(state)
            module.manual_seed(state)
            yield


def _derive(seed: int, *purpose: str | int) -> int:
    """Derive 63 bits that differ for every seed and purpose."""
    check_integer("seed", seed, 0)
    # the text of a tuple distinguishes ("a", 1) from ("a", "1") and ("a1",)
    text = repr((int(seed), *purpose)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1

"""Networks by name."""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator

from ..errors import check_integer, unknown
from .cnn import CNN8
from .mlp import MLP
from .network import Network
from .resnet import resnet34, resnet50


def _mlp(num_classes: int, *, inputs: Sequence[int], hidden: Sequence[int] = (256, 256)) -> Network:
    return MLP(math.prod(inputs), num_classes, hidden)


NETWORKS: dict[str, Callable[..., Network]] = {
    "mlp": _mlp,
    "cnn8": CNN8,
    "cnn8-narrow": partial(CNN8, width=16),
    "resnet34": resnet34,
    "resnet50": resnet50,
}


def names() -> tuple[str, ...]:
    """List the names that `make` takes."""
    return tuple(NETWORKS)


def make(
    name: str,
    num_classes: int,
    *,
    inputs: Sequence[int],
    generator: Generator | None = None,
    **options: Any,
) -> Network:
    """Make a network by name, on the CPU, its weights drawn from `generator` alone.

    Torch's global random state is neither read nor changed, so that two runs with equally seeded
    generators start from the same weights whatever else they have drawn.

    Args:
        name: One of `names()`, in any case.
        num_classes: Logits, at least 2.
        inputs: Shape of one sample: (channels, height, width), or (features,) for "mlp".
        generator: The source of the weights, on the CPU; one seeded with 0 if None, so that
            networks made without it are all alike.
        options: What else the network takes: `hidden` of "mlp", `width` and `shrink` of the
            CNNs, `zero_init_residual` of the ResNets.

    Example:
        >>> make("mlp", 10, inputs=(64,), hidden=(32,)).fc
        Linear(in_features=32, out_features=10, bias=True)
    """
    build = _find(name)
    for size in (shape := _shape(inputs)):
        check_integer("inputs", size, 1)
    known = [key for key in inspect.signature(build).parameters if key not in _COMMON]
    for option in options:
        if option not in known:
            raise TypeError(f"{name} has no option {option!r}; it takes {', '.join(known)}")
    source = Generator().manual_seed(0) if generator is None else _on_cpu(generator)
    # On "meta" the layers' own initialisation draws nothing.
    with torch.device("meta"):
        network = build(num_classes, inputs=shape, **options)
    network.to_empty(device="cpu")
    network.reset_parameters(source)
    return network


_COMMON = ("num_classes", "inputs")


def _find(name: str) -> Callable[..., Network]:
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r}")
    build = NETWORKS.get(name.strip().lower())
    if build is None:
        raise unknown("network", name, NETWORKS)
    return build


def _shape(inputs: object) -> tuple[int, ...]:
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs must be the shape of one sample, got {inputs!r}")
    if not inputs:
        raise ValueError("inputs must be the shape of one sample, got ()")
    return tuple(inputs)


def _on_cpu(generator: Generator) -> Generator:
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, got {generator!r}")
    if generator.device.type != "cpu":
        raise ValueError(f"generator must be on the CPU, got one on {generator.device}")
    return generator

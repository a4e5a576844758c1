"""Where the theory computes: on the CPU, whatever the default device is."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

_P = ParamSpec("_P")
_R = TypeVar("_R")


def on_cpu(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Create tensors on the CPU: small ones in double precision, where other devices are slow."""

    @wraps(function)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # the context makes every operation twice as slow, so not where it changes nothing
        if torch.get_default_device().type == "cpu":
            return function(*args, **kwargs)
        with torch.device("cpu"):
            return function(*args, **kwargs)

    return wrapped

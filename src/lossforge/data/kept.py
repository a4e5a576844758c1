"""Features that take long to compute, kept in the user's cache by a hash of their content."""

import hashlib
import os
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..text import duration
from .source import user_cache


def kept_rows(name: str, content: Iterable[NDArray[Any]], compute: Callable[[], Tensor]) -> Tensor:
    """Return kept features, or compute and keep them.

    The file is `features/NAME-HASH.npy` in the user's cache, mapped into memory when it is read, so
    that several processes share it. It may be deleted at any time. Its hash covers the content, the
    version of torch and the instruction set, on which the last bits depend.

    Args:
        name: Of the kind of features, with its parameters.
        content: Arrays that the features are made of; equal content gives equal features.
        compute: Makes the features, (N, F).
    """
    digest = hashlib.sha256()
    digest.update(f"{name} {torch.__version__} {torch.backends.cpu.get_cpu_capability()}".encode())
    for array in content:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    path = user_cache() / "features" / f"{name}-{digest.hexdigest()[:32]}.npy"
    kept = _read(path)
    if kept is not None:
        return kept
    rows = compute()
    _write(path, rows)
    return rows


def _read(path: Path) -> Tensor | None:
    try:
        # copy on write: torch asks for an array that may be written to
        return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))
    except OSError:
        return None
    except (ValueError, EOFError):
        warnings.warn(f"{path} is damaged and made anew", stacklevel=2)
        return None


def _write(path: Path, rows: Tensor) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            np.save(stream, rows.numpy())
        os.replace(temporary, path)
    except OSError as error:
        warnings.warn(f"{path} cannot be written, features are not kept: {error}", stacklevel=2)
    finally:
        with suppress(OSError):
            temporary.unlink()


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """Hash tensors with their names, such as all parameters and buffers of a network."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class Lines:
    """Progress as a line on stderr after two seconds, and then every ten, with the time left.

    Args:
        text: What is done.
        unit: What is counted.
    """

    def __init__(self, text: str, unit: str = "images") -> None:
        self._text, self._unit = text, unit
        self._start = time.monotonic()
        self._next = self._start + 2

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 10
            left = (now - self._start) * (total - done) / done if done else None
            rest = "" if left is None else f", about {duration(left)} left"
            sys.stderr.write(f"{self._text}: {done:,} of {total:,} {self._unit}{rest}\n")

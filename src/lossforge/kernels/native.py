"""The compiled library, if there is one, and which path evaluates losses here.

The library is built where lossforge is installed and a C compiler is found; nothing needs it. The
environment variable LOSSFORGE_KERNEL=off forces the composed path, that is, torch operations;
LOSSFORGE_KERNEL=cuda has the Triton kernel too, which no device has run yet (`triton_rows`).
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import torch

SWITCH = "LOSSFORGE_KERNEL"
COMPOSED = "composed"  # how the description of the composed path begins

LAYOUT = 4  # of what Python and C hand to each other, as in rows.c
DONE, MEMORY = 0, 3  # what `rows` returns if it has written all rows, or has no memory for one
_switched = os.environ.get(SWITCH, "").strip().lower()
_off = _switched not in ("", "on", "1", "cuda")
_composed = ContextVar("_composed", default=False)


@cache
def library() -> ctypes.CDLL | None:
    """Load the compiled library; None if it was not built."""
    here = Path(__file__).parent
    for suffix in EXTENSION_SUFFIXES:
        with suppress(OSError, AttributeError):  # there is none, or one of another machine or time
            found = ctypes.CDLL(str(here / f"_rows{suffix}"))
            if found.lossforge_layout() == LAYOUT:
                return _declared(found)
    return None


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    pointer, whole = ctypes.c_void_p, ctypes.c_long
    for name in ("lossforge_rows_f32", "lossforge_rows_f64"):
        function = getattr(loaded, name)
        numbers = [whole, whole, ctypes.c_double]
        function.argtypes = [*(pointer,) * 3, *numbers, *(pointer,) * 3, whole]
    loaded.lossforge_instructions.restype = ctypes.c_char_p
    loaded.lossforge_compiler.restype = ctypes.c_char_p
    return loaded


def function(dtype: torch.dtype) -> Any:
    """The C function `rows` for logits of a dtype; the library must be built."""
    found = library()
    assert found is not None
    return found.lossforge_rows_f64 if dtype == torch.float64 else found.lossforge_rows_f32


def is_built() -> bool:
    """Whether there is a compiled library."""
    return library() is not None


def is_on() -> bool:
    """Whether the compiled kernel may evaluate losses."""
    return not (_off or _composed.get()) and library() is not None


def is_on_cuda() -> bool:
    """Whether the Triton kernel may evaluate losses on CUDA."""
    return _switched == "cuda" and not _composed.get()


@contextmanager
def composed() -> Iterator[None]:
    """Evaluate losses by torch operations inside the block, in this thread."""
    token = _composed.set(True)
    try:
        yield
    finally:
        _composed.reset(token)


def describe() -> str:
    """Say in a few words which path evaluates losses: part of a run's circumstances."""
    from .triton_rows import version

    found = library()
    if _off:
        return f"{COMPOSED} ({SWITCH}=off)"
    path = COMPOSED
    if found is not None and not _composed.get():
        texts = found.lossforge_instructions(), found.lossforge_compiler()
        path = f"C, {', '.join(text.decode() for text in texts)}"
    return f"{path}; on CUDA Triton {version()}" if is_on_cuda() and version() else path


library()  # now: loaded in a forked process, it would wait for threads that only the parent has

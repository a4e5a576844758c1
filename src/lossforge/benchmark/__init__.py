"""Grids of paired runs, which may be interrupted at any moment and continued to the same bits."""

from .grid import GridSpec, make_grid, narrow, one_run, presets, read_grid
from .model import Model, load
from .run import execute
from .spec import Run, RunSpec, resolve
from .store import RunFolder, read_spec, statuses

__all__ = [
    "GridSpec",
    "Model",
    "Run",
    "RunFolder",
    "RunSpec",
    "execute",
    "load",
    "make_grid",
    "narrow",
    "one_run",
    "presets",
    "read_grid",
    "read_spec",
    "resolve",
    "statuses",
]

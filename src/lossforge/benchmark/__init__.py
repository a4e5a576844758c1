"""Grids of paired runs: specs in, records out; interrupted at any moment, and continued."""

from .grid import GridSpec, make_grid, presets, read_grid
from .spec import RunSpec, check
from .store import RunFolder, read_spec, statuses
from .work import execute

__all__ = [
    "GridSpec",
    "RunFolder",
    "RunSpec",
    "check",
    "execute",
    "make_grid",
    "presets",
    "read_grid",
    "read_spec",
    "statuses",
]

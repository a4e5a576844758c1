"""Earlier names of functions of `grid` and `run`."""

from collections.abc import Sequence
from typing import Any

from ..data.source import PathLike
from . import grid, run
from .grid import protocol as protocol
from .spec import RunSpec, resolve

read_settings = grid.read_changes


def one_run(
    data: str, noise: str, loss: str, *, seed: int = 0, settings: dict[str, Any] | None = None
) -> RunSpec:
    """Return the spec of `lossforge.benchmark.one_run`."""
    return grid.one_run(data, noise, loss, seed=seed, changes=settings).spec


def narrow(
    whole: grid.GridSpec, *, settings: dict[str, Any] | None = None, **selection: Any
) -> grid.GridSpec:
    """Return `lossforge.benchmark.narrow` of a grid."""
    return grid.narrow(whole, changes=settings, **selection)


def check_data(specs: Sequence[RunSpec], data_dir: PathLike | None) -> None:
    """Check the files of runs."""
    run.check_data([resolve(spec) for spec in specs], data_dir)

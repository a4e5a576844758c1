"""Ways to get the runs of a grid done: here, on a Ray cluster, by Slurm, or by a shell."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..spec import RunSpec
from . import local, ray_tasks, shell, slurm
from .options import Options

__all__ = ["EXECUTORS", "Executor", "Options", "run_all"]

Executor = Callable[[Path, Sequence[RunSpec], Options], None]

EXECUTORS: dict[str, Executor] = {
    "local": local.run_all,
    "print": shell.run_all,
    "ray": ray_tasks.run_all,
    "slurm": slurm.run_all,
}


def run_all(executor: str, store: Path, specs: Sequence[RunSpec], **options: Any) -> None:
    """Do runs that are not finished, and return when they are.

    A `RuntimeError` names the runs that failed, after all others are done. Ctrl-C raises a
    `KeyboardInterrupt` that says how to go on.

    Args:
        executor: One of "local", "print", "ray" and "slurm".
        store: The folder of runs.
        specs: What to do.
        options: Fields of `Options`.
    """
    if executor not in EXECUTORS:
        raise ValueError(f"executor must be one of {', '.join(EXECUTORS)}, got {executor!r}")
    EXECUTORS[executor](store, specs, Options(**options))

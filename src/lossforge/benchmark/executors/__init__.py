"""Ways to do the runs of a grid: local processes, a Ray cluster, Slurm, or printed commands."""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import unknown
from ..spec import Run, RunSpec
from . import local, ray_tasks, slurm
from .options import GridStatus, Options

__all__ = ["EXECUTORS", "Executor", "Options", "commands", "find_executor", "run_all"]

Executor = Callable[[Path, Sequence[Run | RunSpec], Options], None]


def run_all(executor: str, store: Path, runs: Sequence[Run | RunSpec], **options: Any) -> None:
    """Do all runs that are not finished, and return when they are.

    A `RuntimeError` names the runs that failed, after all others are done. Ctrl-C raises a
    `KeyboardInterrupt` whose message says how to continue.

    Args:
        executor: One of "local", "print", "ray" and "slurm".
        store: The folder of runs.
        runs: The runs, or their specs; the store keeps the transition matrix of a `Run`.
        options: Fields of `Options`.
    """
    find_executor(executor)(store, runs, Options(**options))


def find_executor(name: str) -> Executor:
    """Return the executor of that name."""
    if name not in EXECUTORS:
        raise unknown("executor", name, EXECUTORS)
    return EXECUTORS[name]


def commands(store: Path, runs: Sequence[Run | RunSpec], options: Options) -> list[str]:
    """Return one shell command per unfinished run, for GNU parallel, a queue or another machine.

    The commands need only the store, and may be run in any order and at any time.
    """
    start = ["lossforge", "run", str(store.resolve())]
    end = [] if options.data_dir is None else ["--data-dir", str(options.data_dir)]
    return [
        shlex.join([*start, run, *end, *(["--trust"] if spec.code and options.trust else [])])
        for run, spec in GridStatus(store, runs, options).unfinished.items()
    ]


def _print_commands(store: Path, runs: Sequence[Run | RunSpec], options: Options) -> None:
    for command in commands(store, runs, options):
        sys.stdout.write(command + "\n")


EXECUTORS: dict[str, Executor] = {
    "local": local.run_all,
    "print": _print_commands,
    "ray": ray_tasks.run_all,
    "slurm": slurm.run_all,
}

"""Executor options and the status of a grid."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...data.source import PathLike
from ...errors import check_integer
from ..spec import Run, RunSpec
from ..store import RunFolder

CONTINUE = "stopped; the same command continues where this one stopped"
# Reading thousands of run folders takes a second. A refresh is followed by a pause of REST times as
# long as it took, at most LONGEST_REST seconds.
REST, LONGEST_REST = 20, 10.0


@dataclass(frozen=True)
class Options:
    """How to do the runs of a grid; each executor uses the options that concern it.

    Args:
        workers: Runs at a time; None for as many as the processors or GPUs allow.
        data_dir: Where the data are, instead of the usual folders.
        gpus: The GPUs to use, as CUDA_VISIBLE_DEVICES names them; None for all, empty for none.
        runs_per_gpu: Runs that share a GPU.
        on_progress: Called at every refresh with the status of every run by its id.
        on_wait: Called once if all that is left to do is claimed by other workers, with the ids.
        address: Of a Ray cluster, such as "auto" or "ray://host:10001"; None starts a local one.
        cluster: Of submitit: "slurm", or "local" for processes on this machine.
        trust: Whether runs may execute the user's own code that their specs name.
        parameters: Passed to submitit, such as {"slurm_partition": "gpu", "timeout_min": 600}.
    """

    workers: int | None = None
    data_dir: PathLike | None = None
    gpus: Sequence[str] | None = None
    runs_per_gpu: int = 1
    on_progress: Callable[[Mapping[str, str]], object] | None = None
    on_wait: Callable[[Sequence[str]], object] | None = None
    address: str | None = None
    cluster: str = "slurm"
    trust: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_integer("workers", self.workers, 1)
        check_integer("runs_per_gpu", self.runs_per_gpu, 1)
        if self.data_dir is not None:  # workers may have another working directory
            object.__setattr__(self, "data_dir", Path(self.data_dir).resolve())


class GridStatus:
    """The status of the runs of a grid.

    Args:
        store: The folder of runs; runs that it lacks are added.
        runs: The runs, or their specs.
        options: Their `on_progress` is called at every refresh.
    """

    def __init__(self, store: Path, runs: Sequence[Run | RunSpec], options: Options) -> None:
        self._folders: dict[str, RunFolder] = {}
        for run in runs:
            spec = run.spec if isinstance(run, Run) else run
            folder = self._folders[spec.id] = RunFolder(store, spec)
            if isinstance(run, Run):
                folder.open(run.noise, run.code)
            else:
                folder.open()
        self._on_progress = options.on_progress
        self.failures: dict[str, str] = {}
        self.statuses: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Refresh statuses and report progress."""
        began = time.monotonic()
        for run, folder in self._folders.items():
            if self.statuses.get(run) != "finished":
                self.statuses[run] = folder.status
        if self._on_progress is not None:
            self._on_progress(dict(self.statuses))
        ended = time.monotonic()
        self._due = ended + min(REST * (ended - began), LONGEST_REST)

    def poll(self) -> None:
        """Refresh, unless the pause after the last refresh is not over."""
        if time.monotonic() >= self._due:
            self.refresh()

    @property
    def unfinished(self) -> dict[str, RunSpec]:
        """The runs that are neither finished nor failed, by id."""
        return {
            run: folder.spec
            for run, folder in self._folders.items()
            if self.statuses[run] != "finished" and run not in self.failures
        }

    def saved(self) -> set[str]:
        """Return the names of all that survives a crash: finished runs and checkpoints."""
        checkpoints = {
            f"{run}/{path.name}"
            for run in self.unfinished
            for path in self._folders[run].path.glob("checkpoint-*.pt")
        }
        return checkpoints | {run for run, status in self.statuses.items() if status == "finished"}

    def raise_failures(self) -> None:
        """Raise an error that names the failed runs and their reasons, if there are any."""
        failed = {
            run: reason for run, reason in self.failures.items() if self.statuses[run] != "finished"
        }
        if failed:
            lines = [
                f"  {run} ({_describe(self._folders[run].spec)}): {reason}"
                for run, reason in failed.items()
            ]
            raise RuntimeError(
                "\n".join([f"{len(failed)} of {len(self._folders)} runs failed:", *lines])
            )


def _describe(spec: RunSpec) -> str:
    return f"{spec.data}, {spec.noise}, {spec.loss}, seed {spec.seed}"

"""Slurm job arrays, through submitit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import extra
from ..spec import Run, RunSpec
from . import local
from .options import GridStatus, Options

POLL = 2.0
JOBS = 1000  # in an array; Slurm's default limit is 1001
MINUTES = 240  # of a job; one that needs more is queued again and continues
REQUEUES = 1000


@dataclass(frozen=True)
class Job:
    """A share of the runs, done on the machine of the job, `runs_per_gpu` at a time."""

    store: Path
    options: Options

    def __call__(self, specs: Sequence[RunSpec]) -> None:
        local.run_all(self.store, specs, self.options)

    def checkpoint(self, specs: Sequence[RunSpec]) -> Any:
        """Return what submitit queues at a timeout: the same job, which continues."""
        return extra("submitit.helpers", "slurm").DelayedSubmission(self, specs)


def run_all(store: Path, runs: Sequence[Run | RunSpec], options: Options) -> None:
    """Submit the unfinished runs as a job array, and wait for it.

    The array has one job per run, or `workers` jobs that share the runs. The parameter
    {"gpus_per_node": 1} requests a GPU. Logs are in the folder `logs` of the store. Ctrl-C ends the
    waiting, not the jobs.
    """
    submitit = extra("submitit", "slurm")
    status = GridStatus(store, runs, options)
    specs = list(status.unfinished.values())
    if not specs:
        return
    executor = submitit.AutoExecutor(
        folder=store.resolve() / "logs", cluster=options.cluster, slurm_max_num_timeout=REQUEUES
    )
    usual = {
        "name": "lossforge",
        "timeout_min": MINUTES,
        "cpus_per_task": max(spec.threads for spec in specs) * options.runs_per_gpu,
    }
    executor.update_parameters(**{**usual, **options.parameters})
    task = Job(store.resolve(), replace(options, workers=options.runs_per_gpu, on_progress=None))
    count = min(len(specs), options.workers or JOBS)
    shares = [tuple(specs[first::count]) for first in range(count)]
    jobs = executor.map_array(task, shares)
    _wait(jobs, status)
    for job, share in zip(jobs, shares, strict=True):
        _note_failures(job, share, status)
    status.raise_failures()


def _wait(jobs: Sequence[Any], status: GridStatus) -> None:
    try:
        while not all(job.done() for job in jobs):
            time.sleep(POLL)
            status.poll()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the jobs continue; scancel {jobs[0].job_id.partition('_')[0]} ends them"
        ) from None
    status.refresh()


def _note_failures(job: Any, share: Sequence[RunSpec], status: GridStatus) -> None:
    """Note why the unfinished runs of a job failed."""
    error = job.exception()
    lines = [] if error is None else [line.strip() for line in str(error).splitlines()]
    for spec in share:
        if status.statuses[spec.id] != "finished":
            reasons = [line.partition("): ")[2] for line in lines if line.startswith(spec.id)]
            reason = reasons[-1] if reasons else "its job ended before it did"
            status.failures[spec.id] = f"{reason} (see {job.paths.stderr})"

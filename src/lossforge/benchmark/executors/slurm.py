"""Arrays of Slurm jobs, through submitit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import extra
from ..spec import RunSpec
from . import local
from .options import Options, Watch

POLL = 2.0
JOBS = 1000  # in an array; Slurm's own limit is 1001 unless it was configured otherwise
MINUTES = 240  # of a job; one that needs more is queued again and goes on
REQUEUES = 1000


@dataclass(frozen=True)
class Job:
    """Does some runs on the machine it is sent to, `runs_per_gpu` at a time."""

    store: Path
    options: Options

    def __call__(self, specs: Sequence[RunSpec]) -> None:
        local.run_all(self.store, specs, self.options)

    def checkpoint(self, specs: Sequence[RunSpec]) -> Any:
        """What submitit queues when the time is over: the same again, which goes on."""
        return extra("submitit.helpers", "slurm").DelayedSubmission(self, specs)


def run_all(store: Path, specs: Sequence[RunSpec], options: Options) -> None:
    """Submit the unfinished runs as an array, and wait for it.

    It has a job for each run, or `workers` jobs that have their share of the runs. A GPU is asked
    for by the parameter {"gpus_per_node": 1}. Logs are in the folder `logs` of the store. Ctrl-C
    ends the waiting, not the jobs.
    """
    submitit = extra("submitit", "slurm")
    watch = Watch(store, specs, options)
    runs = list(watch.unfinished.values())
    if not runs:
        return
    executor = submitit.AutoExecutor(
        folder=store.resolve() / "logs", cluster=options.cluster, slurm_max_num_timeout=REQUEUES
    )
    asked = {
        "name": "lossforge",
        "timeout_min": MINUTES,
        "cpus_per_task": max(spec.threads for spec in runs) * options.runs_per_gpu,
    }
    executor.update_parameters(**{**asked, **options.parameters})
    job = Job(store.resolve(), replace(options, workers=options.runs_per_gpu, on_progress=None))
    count = min(len(runs), options.workers or JOBS)
    shares = [tuple(runs[first::count]) for first in range(count)]
    jobs = executor.map_array(job, shares)
    _wait(jobs, watch)
    for job, share in zip(jobs, shares, strict=True):
        _hear(job, share, watch)
    watch.conclude()


def _wait(jobs: Sequence[Any], watch: Watch) -> None:
    try:
        while not all(job.done() for job in jobs):
            time.sleep(POLL)
            watch.look()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the jobs go on; scancel {jobs[0].job_id.partition('_')[0]} ends them"
        ) from None
    watch.look()


def _hear(job: Any, share: Sequence[RunSpec], watch: Watch) -> None:
    """Note why runs of a job are not finished."""
    error = job.exception()
    said = [] if error is None else [line.strip() for line in str(error).splitlines()]
    for spec in share:
        if watch.statuses[spec.id] != "finished":
            whys = [line.partition("): ")[2] for line in said if line.startswith(spec.id)]
            why = whys[-1] if whys else "its job ended before it did"
            watch.failures[spec.id] = f"{why} (see {job.paths.stderr})"

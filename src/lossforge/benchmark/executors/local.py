"""Worker processes on this machine, which share its processors and GPUs."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from ... import interrupts
from ..pool import Pool, Worker
from ..spec import Run, RunSpec
from ..worker import read_failure
from .options import CONTINUE, GridStatus, Options

POLL = 0.5


def run_all(store: Path, runs: Sequence[Run | RunSpec], options: Options) -> None:
    """Do all runs, and return when they are finished, by these or other workers."""
    status, idle = GridStatus(store, runs, options), 0
    try:
        with interrupts.deferred(), make_pool(store, status, options) as pool:
            while status.unfinished:
                interrupts.check()
                if any(worker.has_ended for worker in pool):
                    status.refresh()  # or another would be started for runs that are finished
                pool.remove_ended()
                pool.fill(lambda: _has_work(status, len(pool)))
                idle = 0 if len(pool) else idle + 1
                # after one refresh, as the claim of a worker that just died still counts before
                if idle == 2 and options.on_wait is not None:
                    options.on_wait(list(status.unfinished))
                time.sleep(POLL)
                if len(pool):  # spare their processors
                    status.poll()
                else:
                    status.refresh()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(CONTINUE) from None
    status.raise_failures()


def make_pool(store: Path, status: GridStatus, options: Options) -> Pool:
    """Make a pool of workers for the unfinished runs, none of them started yet."""
    threads = max((spec.threads for spec in status.unfinished.values()), default=1)
    gpus = worker_gpus(options, threads)
    command = [sys.executable, "-m", "lossforge.benchmark.worker", str(store.resolve())]
    command += ["--parent", str(os.getpid())]
    if options.data_dir is not None:
        command += ["--data-dir", str(options.data_dir)]
    if options.trust:
        command.append("--trust")

    def note_failure(line: str) -> None:
        run, reason = read_failure(line) or (None, "")
        if run in status.statuses:
            status.failures[run] = reason

    def start(slot: int) -> Worker:
        words, environment, gpu = command, {"OMP_NUM_THREADS": str(threads)}, gpus[slot]
        if gpu is not None:
            words = [*command, "--device", "cuda"]
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        return Worker(words, "\n".join(status.unfinished), environment, note_failure)

    return Pool(len(gpus), start, status.saved)


def _has_work(status: GridStatus, workers: int) -> bool:
    """Check whether another worker would find a run to do."""
    runs = status.unfinished
    return workers < len(runs) and any(status.statuses[run] != "running" for run in runs)


def worker_gpus(options: Options, threads: int) -> list[str | None]:
    """Return the GPU of each worker, or None for a worker without one."""
    gpus = _visible_gpus() if options.gpus is None else list(options.gpus)
    if gpus:
        count = options.workers or len(gpus) * options.runs_per_gpu
        return [gpus[slot % len(gpus)] for slot in range(count)]
    return [None] * (options.workers or max(1, processors() // threads))


def processors() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _visible_gpus() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name] if torch.cuda.is_available() else []
    return [str(number) for number in range(torch.cuda.device_count())]

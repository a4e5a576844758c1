"""Worker processes on this machine, its processors and GPUs divided among them."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from ..spec import RunSpec
from ..worker import FAILED
from .options import CONTINUE, Options, Watch

POLL = 0.5
PATIENCE = 10.0  # for a worker to end by itself
DEATHS = 5  # of workers in a row, with nothing achieved


class Worker:
    """A process that takes runs, and what it said.

    Args:
        command: What to start.
        runs: Ids of the runs it may take.
        environment: Added to that of this process.
    """

    def __init__(
        self, command: Sequence[str], runs: Iterable[str], environment: dict[str, str]
    ) -> None:
        with tempfile.TemporaryFile("w+") as names:
            names.write("\n".join(runs))
            names.seek(0)
            self.process = subprocess.Popen(
                command,
                stdin=names,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C is for us alone, who then stop the workers
            )
        self.failures: dict[str, str] = {}
        self.last_lines: deque[str] = deque(maxlen=5)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("failed "):
                _, run, why = line.rstrip().split(" ", 2)
                self.failures[run] = why
            self.last_lines.append(line.strip())

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def has_died(self) -> bool:
        return self.has_ended and self.process.returncode not in (0, FAILED)

    def stop(self) -> None:
        """Ask it to end, and see to it."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.listen()

    def listen(self) -> None:
        """Hear the last it said."""
        self._reader.join(PATIENCE)
        if self.process.stdout is not None and not self._reader.is_alive():
            self.process.stdout.close()


class Pool:
    """A fixed number of places for workers; one who dies is replaced.

    Args:
        store: The folder of runs.
        watch: How far the runs are.
        options: How many workers, and where.
    """

    def __init__(self, store: Path, watch: Watch, options: Options) -> None:
        threads = max((spec.threads for spec in watch.unfinished.values()), default=1)
        self._watch = watch
        self._places = places(options, threads)
        self._workers: list[Worker | None] = [None] * len(self._places)
        self._deaths, self._achieved = 0, watch.achieved
        self._command = [sys.executable, "-m", "lossforge.benchmark.worker", str(store.resolve())]
        self._command += ["--parent", str(os.getpid())]
        if options.data_dir is not None:
            self._command += ["--data-dir", str(options.data_dir.resolve())]
        self._environment = {"OMP_NUM_THREADS": str(threads)}

    def tend(self) -> None:
        """Hear those who ended, and start others while there are runs for them."""
        for place, worker in enumerate(self._workers):
            if worker is not None:
                self._watch.failures.update(worker.failures)
                if worker.has_ended:
                    worker.listen()
                    self._watch.failures.update(worker.failures)
                    self._workers[place] = None
                    if worker.has_died:
                        self._count_death(worker)
        for place, worker in enumerate(self._workers):
            if worker is None and self._has_work():
                self._workers[place] = self._start(self._places[place])

    def _has_work(self) -> bool:
        runs = self._watch.unfinished
        free = [run for run in runs if self._watch.statuses[run] != "running"]
        return bool(free) and sum(worker is not None for worker in self._workers) < len(runs)

    def _start(self, gpu: str | None) -> Worker:
        command, environment = list(self._command), dict(self._environment)
        if gpu is not None:
            command += ["--device", "cuda"]
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        return Worker(command, self._watch.unfinished, environment)

    def _count_death(self, worker: Worker) -> None:
        achieved = self._watch.achieved
        self._deaths = self._deaths + 1 if achieved == self._achieved else 1
        self._achieved = achieved
        if self._deaths >= DEATHS:
            said = "; ".join(worker.last_lines) or "nothing"
            raise RuntimeError(
                f"{self._deaths} workers died in a row and nothing was achieved; the last ended "
                f"with status {worker.process.returncode} and said: {said}"
            )

    def stop(self) -> None:
        """End all workers; what they were doing can be resumed."""
        alive = [worker for worker in self._workers if worker is not None]
        for worker in alive:
            worker.process.terminate()
        for worker in alive:
            worker.stop()


def places(options: Options, threads: int) -> list[str | None]:
    """The GPU of each worker, or None for each that has none."""
    gpus = _visible_gpus() if options.gpus is None else list(options.gpus)
    if gpus:
        count = options.workers or len(gpus) * options.runs_per_gpu
        return [gpus[place % len(gpus)] for place in range(count)]
    return [None] * (options.workers or max(1, processors() // threads))


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _visible_gpus() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name] if torch.cuda.is_available() else []
    return [str(number) for number in range(torch.cuda.device_count())]


def run_all(store: Path, specs: Sequence[RunSpec], options: Options) -> None:
    """Do all runs, and return when they are finished, here or elsewhere."""
    watch = Watch(store, specs, options)
    pool = Pool(store, watch, options)
    try:
        while watch.unfinished:
            pool.tend()
            time.sleep(POLL)
            watch.look()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(CONTINUE) from None
    finally:
        pool.stop()
    watch.conclude()

"""Tasks on a Ray cluster whose machines share the store's folder."""

import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...data.source import PathLike
from ...errors import extra
from ..run import Outcome, execute
from ..spec import Run, RunSpec
from .local import processors, worker_gpus
from .options import CONTINUE, GridStatus, Options

POLL = 1.0
RETRIES = 10  # of a run whose worker process died
OBJECT_STORE = 128 * 2**20  # bytes; only specs and outcomes go through it


def run_all(store: Path, runs: Sequence[Run | RunSpec], options: Options) -> None:
    """Do all runs as tasks, each with a processor per thread and a share of a GPU, if any."""
    ray = extra("ray", "ray")
    status = GridStatus(store, runs, options)
    if not status.unfinished:
        return
    with _connected(ray, status, options):
        try:
            _Tasks(ray, store.resolve(), status, options).finish()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(CONTINUE) from None
    status.raise_failures()


def run_task(
    store: str, spec: str, data_dir: PathLike | None, device: str, trust: bool = False
) -> Outcome:
    """Do one run, on the machine that Ray has chosen."""
    run = RunSpec.model_validate_json(spec)
    return execute(Path(store), run, data_dir=data_dir, device=device, trust=trust)


class _Tasks:
    """Runs that wait for a task, and those that have one."""

    def __init__(self, ray: Any, store: Path, status: GridStatus, options: Options) -> None:
        self._ray, self._store, self._status, self._options = ray, store, status, options
        may_use_gpus = options.gpus is None or len(options.gpus) > 0
        has_gpus = may_use_gpus and ray.cluster_resources().get("GPU", 0) > 0
        self._device = "cuda" if has_gpus else "cpu"
        self._share = 1 / options.runs_per_gpu if has_gpus else 0
        self._task = ray.remote(max_retries=RETRIES)(run_task)
        self._waiting = deque(status.unfinished.values())
        self._limit = options.workers or len(self._waiting)
        self._running: dict[Any, RunSpec] = {}

    def finish(self) -> None:
        """Do all runs; submit those claimed by other workers again until they are finished."""
        try:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < self._limit:
                    self._submit(self._waiting.popleft())
                self._collect()
                self._status.poll()
            self._status.refresh()
        finally:
            for task in self._running:
                self._ray.cancel(task)

    def _submit(self, spec: RunSpec) -> None:
        task = self._task.options(num_cpus=spec.threads, num_gpus=self._share).remote(
            str(self._store),
            spec.model_dump_json(),
            self._options.data_dir,
            self._device,
            self._options.trust,
        )
        self._running[task] = spec

    def _collect(self) -> None:
        ready, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=POLL)
        outcomes = set()
        for task in ready:
            spec = self._running.pop(task)
            try:
                outcomes.add(outcome := self._ray.get(task))
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                reason = f"{type(cause).__name__}: {cause}"
                self._status.failures[spec.id] = " ".join(reason.split())
                continue
            if outcome == "busy":
                self._waiting.append(spec)
        if outcomes == {"busy"}:
            time.sleep(POLL)


@contextmanager
def _connected(ray: Any, status: GridStatus, options: Options) -> Iterator[None]:
    """Connect to the cluster, unless the caller has a connection already, which then stays open."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if options.address is not None:
        try:
            ray.init(address=options.address, **quiet)
        except ConnectionError as error:
            raise ConnectionError(f"no Ray cluster at {options.address}: {error}") from None
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        threads = max(spec.threads for spec in status.unfinished.values())
        ray.init(
            address="local",
            num_cpus=threads * (options.workers or max(1, processors() // threads)),
            num_gpus=len(set(worker_gpus(options, threads)) - {None}),
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            **quiet,
        )
    try:
        yield
    finally:
        ray.shutdown()

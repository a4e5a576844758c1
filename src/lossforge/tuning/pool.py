"""Several worker processes on one search."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from ..data.source import PathLike
from .life import Watch
from .search import POLL, OnTrial
from .study import Study

PATIENCE = 10.0  # for a worker to end by itself
DEATHS = 5  # of workers in a row, with no trial finished


class Worker:
    """A process that does trials, and what it said at its end."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._said: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        with tempfile.TemporaryFile("w+") as asked:
            json.dump(task, asked)
            asked.seek(0)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lossforge.tuning.worker"],
                stdin=asked,
                stderr=self._said,
                env={**os.environ, "OMP_NUM_THREADS": str(task["plan"]["spec"]["threads"])},
                start_new_session=True,  # Ctrl-C is for us alone, who then stop the workers
            )

    def end(self) -> str:
        """See to it that it has ended; its last line."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        self._said.close()
        return lines[-1] if lines else f"it ended with status {self.process.returncode}"


def search_together(
    study: Study,
    url: str,
    limit: int,
    *,
    workers: int,
    data_dir: PathLike | None,
    device: str,
    on_trial: OnTrial,
) -> None:
    """Let processes do the trials; one that is killed is replaced, and its trial done again."""
    task = {
        "plan": study.plan.model_dump(),
        "url": url,
        "limit": limit,
        "parent": os.getpid(),
        "data_dir": None if data_dir is None else os.fspath(data_dir),
        "device": device,
    }
    places: list[Worker | None] = [None] * workers
    watch, deaths, before = Watch(), 0, study.finished
    try:
        while study.finished < limit:
            for place, worker in enumerate(places):
                if worker is None:
                    places[place] = Worker(task)
                elif worker.process.poll() is not None:
                    places[place], said = None, worker.end()
                    deaths = deaths + 1 if study.finished == before else 1
                    before = study.finished
                    if worker.process.returncode == 3 or deaths >= DEATHS:
                        raise RuntimeError(said)
            time.sleep(POLL)
            study.recover(watch.is_lost)
            on_trial(study)
    finally:
        alive = [worker for worker in places if worker is not None]
        for worker in alive:
            worker.process.terminate()
        for worker in alive:
            worker.end()

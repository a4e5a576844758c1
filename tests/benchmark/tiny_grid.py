"""A grid of twelve runs that take a moment each, and workers for it that may be killed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from lossforge.benchmark import RunSpec, make_grid

DRILL = Path(__file__).with_name("drill.py")
KEPT = {"spec.json", "record.json", "about.json", "metrics.jsonl"}


TINY = """
name = "tiny"
data = "digits"
subset = 200
model = "mlp"
model_options = {hidden = [16]}
noise = ["clean", "symmetric:0.4"]
losses = ["CE", "GCE", "BEF"]
seeds = [0, 1]
training = {epochs = 3, batch_size = 50, lr = 0.1}
"""


def tiny_runs() -> list[RunSpec]:
    return make_grid(tomllib.loads(TINY)).runs()


def result_of(run: RunSpec) -> dict[str, Any]:
    """The least that the record of a run may hold."""
    spec = run.model_dump(mode="json")
    return {
        "id": run.id,
        "spec": spec,
        "classes": 10,
        "noise_rate": 0.0,
        "metrics": [],
        "parameters": "",
    }


def longer(run: RunSpec, epochs: int) -> RunSpec:
    return run.model_copy(update={"training": {**run.training, "epochs": epochs}})


def long_runs() -> list[RunSpec]:
    """Two that last long enough to be met at work."""
    return [longer(run, 100) for run in tiny_runs()[:2]]


def impossible_run() -> RunSpec:
    """One that fails, on data that nobody has."""
    return tiny_runs()[0].model_copy(update={"data": "nothing"})


def records(store: Path) -> dict[str, bytes]:
    """Every record of a store, to the byte."""
    return {path.parent.name: path.read_bytes() for path in store.glob("*/record.json")}


def owners(store: Path) -> set[int]:
    """The processes that hold claims, dead ones included."""
    found = set()
    for claim in store.glob("*/claim.*"):
        try:
            found.add(int(claim.read_text().split()[-1]))
        except FileNotFoundError:  # let go while we looked
            continue
    return found


class Drill:
    """Talks to the process that forks workers."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(DRILL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def _ask(self, name: str, **arguments):
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, store: Path, runs: list[RunSpec], **options) -> int:
        texts = [run.model_dump_json() for run in runs]
        return self._ask("start", store=str(store), runs=texts, **options)

    def overwrite(self, path: Path, content: str, number: int) -> int:
        """Let a process write a file and die at a point of that; its exit status."""
        return self.wait(self._ask("overwrite", path=str(path), content=content, number=number))

    def wait(self, pid: int, seconds: float = 60) -> int | None:
        return self._ask("wait", pid=pid, seconds=seconds)

    def work(self, store: Path, runs: list[RunSpec], **options) -> int | None:
        """Let one worker do the runs; its exit status."""
        return self.wait(self.start(store, runs, **options))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

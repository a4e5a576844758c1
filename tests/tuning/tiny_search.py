"""A search whose trials take a moment each, in this process or in one that may be killed."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

SETTINGS = {
    "subset": 200,
    "model_options": {"hidden": [16]},
    "epochs": 4,
    "batch_size": 50,
    "optimizer": "sgd",
    "lr": 0.1,
    "hold_out": 0.2,
}
NOISE = "symmetric:0.4"
COUNTED = ("COMPLETE", "PRUNED")


def words(store: Path, **changes) -> list[str]:
    """The command line of the search."""
    options = {"noise": NOISE, "loss": "GCE", "trials": 12, "final-seeds": 0}
    settings = {**SETTINGS, **changes.pop("settings", {})}
    options |= {"store": store, **{key.replace("_", "-"): value for key, value in changes.items()}}
    found = [f"--{key}={value}" for key, value in options.items()]
    return ["tune", "--json", *found, *(f"--set={k}={json.dumps(v)}" for k, v in settings.items())]


def start(store: Path, **changes) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "lossforge", *words(store, **changes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(process: subprocess.Popen, seconds: float = 120) -> dict:
    """What a search says at its end."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return json.loads(out)


def wait_for(store: Path, finished: int, running: int = 0, seconds: float = 60) -> list["Row"]:
    """Wait until so many trials count, and so many are being done; all trials."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = stored(store)
        counted = sum(row.state in COUNTED for row in found)
        # one that has an owner has begun
        begun = [row for row in found if row.state == "RUNNING" and "worker" in row.attributes]
        if counted >= finished and len(begun) >= running:
            return found
        time.sleep(0.02)
    raise TimeoutError(f"{finished} trials and {running} running were not seen in {store}")


class Row(NamedTuple):
    """A trial in the file."""

    state: str
    attributes: dict
    point: str


def stored(store: Path) -> list[Row]:
    """All trials of the one search in a store, read without touching anything."""
    path = store / "study.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as file:
        try:
            trials = file.execute("SELECT trial_id, state FROM trials ORDER BY trial_id").fetchall()
            return [Row(state, *_more(file, number)) for number, state in trials]
        except sqlite3.OperationalError:  # its tables are being made
            return []


def _more(file: sqlite3.Connection, number: int) -> tuple[dict, str]:
    attributes = file.execute(
        "SELECT key, value_json FROM trial_user_attributes WHERE trial_id = ?", (number,)
    )
    point = file.execute(
        "SELECT param_name, param_value FROM trial_params WHERE trial_id = ?", (number,)
    )
    known = {key: json.loads(value) for key, value in attributes}
    numbers = sorted(point.fetchall())
    return known, json.dumps(numbers) if numbers else ""

"""The tiny grid on a Ray cluster of two workers, once in peace and once with a worker killed."""

import json
import os
import signal
import sys
from pathlib import Path

from tiny_grid import impossible_run, long_runs, owners, tiny_runs

from lossforge.benchmark.executors import run_all
from lossforge.errors import extra


def main() -> None:
    folder = Path(sys.argv[1])
    ray = extra("ray", "ray")
    run_all("ray", folder / "peace", tiny_runs(), workers=2)
    assert not ray.is_initialized()  # what it started, it ended

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    killed: list[int] = []

    def kill_one(statuses) -> None:
        if not killed and "running" in statuses.values():
            killed.append(owners(folder / "kill").pop())
            os.kill(killed[0], signal.SIGKILL)

    failed = ""
    try:
        runs = [*long_runs(), *tiny_runs(), impossible_run()]
        run_all("ray", folder / "kill", runs, on_progress=kill_one)
    except RuntimeError as error:
        failed = str(error)
    assert ray.is_initialized()  # what was there before, it left
    ray.shutdown()
    (folder / "told.json").write_text(json.dumps({"killed": killed, "failed": failed}))


if __name__ == "__main__":
    main()

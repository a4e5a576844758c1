"""A worker process of a search: ``python -m lossforge.tuning.worker``, its task on standard input.

A signal ends it after the batch it is at; it also ends with its parent. The next worker repeats its
trial.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from .. import interrupts
from ..benchmark.pool import FAILED, exit_with_parent, read_task, stops_on_signals
from ..catalog import Code, receive
from .plan import Plan
from .score import HeldOutScore, visible
from .search import POLL, search
from .study import open_study


def work(task: dict[str, Any]) -> None:
    """Do trials until enough are finished.

    Args:
        task: The plan, the database's url, the limit, the parent process, data folder, device, and
            the user's own code that the parent has admitted.
    """
    receive(
        Code(name, digest, None if source is None else source.encode("latin-1"))
        for name, digest, source in task["code"]
    )
    plan = Plan.model_validate_json(json.dumps(task["plan"]))
    folder = None if task["data_dir"] is None else Path(task["data_dir"])
    limit, parent = task["limit"], task["parent"]
    score = HeldOutScore(plan.spec, visible(plan, folder), task["device"])
    with open_study(plan, task["url"]) as study:
        while True:
            search(
                study,
                score,
                limit,
                on_trial=lambda study: exit_with_parent(parent),
                on_epoch=lambda: exit_with_parent(parent),
            )
            if study.finished >= limit:
                return
            time.sleep(POLL)
            interrupts.check()
            exit_with_parent(parent)


def main() -> None:
    """Do the task on standard input."""
    with stops_on_signals():
        try:
            work(json.loads(read_task()))
        except Exception as error:  # the parent reports any error
            interrupts.check()  # it may come from the signal that stops this worker
            sys.stderr.write(" ".join(f"{error}".split()) + "\n")
            sys.exit(FAILED)


if __name__ == "__main__":
    main()

"""A worker process of a search: ``python -m lossforge.tuning.worker``, its task on standard input.

SIGTERM ends it at once; the trial it was at is taken up by the next. It stops with its parent.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from .objective import Objective, visible
from .plan import Plan
from .search import POLL, search
from .storage import open_study
from .study import Study

STOPPED = 128 + signal.SIGTERM


def work(task: dict[str, Any]) -> None:
    """Do trials until enough are finished.

    Args:
        task: The plan, the url, the limit, the parent and where data and device are.
    """
    plan = Plan.model_validate_json(json.dumps(task["plan"]))
    folder = None if task["data_dir"] is None else Path(task["data_dir"])
    objective = Objective(plan.spec, visible(plan.spec, plan.splits, folder), task["device"])

    def stop_with_parent(study: Study) -> None:
        if os.getppid() != task["parent"]:
            raise SystemExit(STOPPED)

    with open_study(plan, task["url"]) as study:
        while True:
            search(study, objective, task["limit"], on_trial=stop_with_parent)
            if study.finished >= task["limit"]:
                return
            time.sleep(POLL)
            stop_with_parent(study)


def _stop(signum: int, frame: FrameType | None) -> None:
    signal.signal(signum, signal.SIG_IGN)  # giving the trial up is not to be interrupted
    raise SystemExit(STOPPED)


def main() -> None:
    """Do what standard input asks for."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        work(json.load(sys.stdin))
    except Exception as error:  # whatever it is, the parent says it
        sys.stderr.write(" ".join(f"{error}".split()) + "\n")
        sys.exit(3)


if __name__ == "__main__":
    main()

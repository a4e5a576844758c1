"""A worker process: does the runs of a store one after another until none is free.

``python -m lossforge.benchmark.worker STORE [ID ...]``; without ids it reads them from standard
input, one per line. A run that fails is reported on standard output and skipped. SIGTERM, SIGHUP
and Ctrl-C end the worker after the batch it is at; the next worker resumes its run.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from .. import interrupts
from ..data.source import PathLike
from .pool import FAILED, exit_with_parent, read_task, stops_on_signals
from .run import execute
from .store import read_spec

# The line that reports a failed run. Other output, also that of libraries, goes to the same pipe.
FAILURE = "lossforge.benchmark.worker: failed run"
_REPORT = re.compile(rf"{re.escape(FAILURE)} (\S+) (\S.*)")


def work(
    store: Path,
    runs: Iterable[str],
    *,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    parent: int | None = None,
    trust: bool = False,
) -> dict[str, str]:
    """Do runs until all are finished, failed or claimed by other workers.

    Args:
        store: The folder of runs.
        runs: The ids of the runs.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        parent: The process to end with; checked after every epoch.
        trust: Whether runs may execute the user's own code that their specs name.

    Returns:
        The error messages of failed runs, by id.
    """
    failures: dict[str, str] = {}
    open_runs, before = list(runs), -1
    while open_runs and len(open_runs) != before:
        before, busy = len(open_runs), []
        for run in open_runs:
            interrupts.check()
            try:
                outcome = execute(
                    store,
                    read_spec(store, run),
                    data_dir=data_dir,
                    device=device,
                    on_epoch=lambda state: exit_with_parent(parent),
                    trust=trust,
                )
            except Exception as error:  # any error; other runs may still work
                interrupts.check()  # it may come from the signal that stops this worker
                failures[run] = report_failure(run, error)
                continue
            if outcome == "busy":
                busy.append(run)
        open_runs = busy
    return failures


def report_failure(run: str, error: Exception) -> str:
    """Print the traceback and a line that `read_failure` reads; return the message as one line."""
    traceback.print_exception(error)
    message = " ".join(f"{type(error).__name__}: {error}".split())
    sys.stdout.write(f"{FAILURE} {run} {message}\n")
    sys.stdout.flush()
    return message


def read_failure(line: str) -> tuple[str, str] | None:
    """Return the id of a failed run and the message, if a line of output reports one."""
    found = _REPORT.fullmatch(line.rstrip())
    return None if found is None else (found[1], found[2])


def main() -> None:
    """Do the runs named on the command line or on standard input."""
    parser = argparse.ArgumentParser(prog="python -m lossforge.benchmark.worker")
    parser.add_argument("store", type=Path, help="folder of runs")
    parser.add_argument("runs", nargs="*", help="ids of runs; none: one per line on standard input")
    parser.add_argument("--data-dir", type=Path, help="where the data are")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--parent", type=int, help="process to end with")
    parser.add_argument("--trust", action="store_true", help="execute the code that specs name")
    args = parser.parse_args()
    with stops_on_signals():
        failures = work(
            args.store,
            args.runs or read_task().split(),
            data_dir=args.data_dir,
            device=args.device,
            parent=args.parent,
            trust=args.trust,
        )
    sys.exit(FAILED if failures else 0)


if __name__ == "__main__":
    main()

"""A worker process: takes runs of a store one after another until none is free.

``python -m lossforge.benchmark.worker STORE [ID ...]``; without ids it reads them from standard
input, one a line. A run that fails is told on standard output and left aside. SIGTERM and Ctrl-C
end the worker at once, and what it was doing is resumed by the next.
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from ..data.source import PathLike
from ..training import State
from .store import read_spec
from .work import execute

FAILED = 3  # the exit status if runs failed; all have been told
STOPPED = 128 + signal.SIGTERM


def work(
    store: Path,
    runs: Iterable[str],
    *,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    parent: int | None = None,
) -> dict[str, str]:
    """Do runs until all are finished, have failed, or are in other hands.

    Args:
        store: The folder of runs.
        runs: The ids of those to do.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        parent: The process to stop with, looked for after every epoch.

    Returns:
        What went wrong, by id.
    """

    def stop_with_parent(state: State) -> None:
        if parent is not None and os.getppid() != parent:
            raise SystemExit(STOPPED)

    failures: dict[str, str] = {}
    open_runs, before = list(runs), -1
    while open_runs and len(open_runs) != before:
        before, busy = len(open_runs), []
        for run in open_runs:
            try:
                spec = read_spec(store, run)
                outcome = execute(
                    store, spec, data_dir=data_dir, device=device, on_epoch=stop_with_parent
                )
            except Exception as error:  # whatever it is, other runs may well work
                failures[run] = tell(run, error)
                continue
            if outcome == "busy":
                busy.append(run)
        open_runs = busy
    return failures


def tell(run: str, error: Exception) -> str:
    """Write down a failure, and return it in a line."""
    traceback.print_exception(error)
    message = " ".join(f"{type(error).__name__}: {error}".split())
    sys.stdout.write(f"failed {run} {message}\n")
    sys.stdout.flush()
    return message


def _stop(signum: int, frame: FrameType | None) -> None:
    signal.signal(signum, signal.SIG_IGN)  # letting the claim go is not to be interrupted
    raise SystemExit(STOPPED)


def main() -> None:
    """Do the runs that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m lossforge.benchmark.worker")
    parser.add_argument("store", type=Path, help="folder of runs")
    parser.add_argument("runs", nargs="*", help="ids of runs; none: one a line on standard input")
    parser.add_argument("--data-dir", type=Path, help="where the data are")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--parent", type=int, help="process to stop with")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    failures = work(
        args.store,
        args.runs or sys.stdin.read().split(),
        data_dir=args.data_dir,
        device=args.device,
        parent=args.parent,
    )
    sys.exit(FAILED if failures else 0)


if __name__ == "__main__":
    main()

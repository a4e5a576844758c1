"""Which trials are being worked on, and which are lost."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from ..benchmark.claim import place, process_exists

HEARTBEAT = 10.0
STALE = 60.0  # a trial elsewhere that has not moved for so long is lost
NAMELESS = 2.0  # a trial gets its owner's name at once


def owner() -> str:
    """This process, as other processes can look for it."""
    return f"{place()} {os.getpid()}"


class Watch:
    """Tells trials on other machines that have stopped moving; no clock is compared."""

    def __init__(self, patience: float = STALE) -> None:
        self._patience = patience
        self._seen: dict[int, tuple[object, float]] = {}

    def is_lost(self, trial: Any) -> bool:
        """Whether nothing was heard of a running trial for too long."""
        now, sign = time.monotonic(), (trial.user_attrs.get("beat"), len(trial.intermediate_values))
        before, since = self._seen.setdefault(trial.number, (sign, now))
        if before != sign:
            self._seen[trial.number] = (sign, now)
            return False
        return now - since > self._patience or is_gone(trial)


@contextmanager
def beating(trial: Any) -> Iterator[None]:
    """Show other machines that a trial is being worked on."""
    finished = threading.Event()

    def beat() -> None:
        count = 0
        while not finished.wait(HEARTBEAT):
            count += 1
            with suppress(Exception):  # the next beat may pass where this one did not
                trial.set_user_attr("beat", count)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def is_gone(trial: Any) -> bool:
    """Whether the process at a trial ran here and is no more, or died before it left its name."""
    if "worker" not in trial.user_attrs:
        return bool((datetime.now() - trial.datetime_start).total_seconds() > NAMELESS)
    *where, pid = trial.user_attrs["worker"].split()
    if where != place().split():
        return False
    return int(pid) == os.getpid() or not process_exists(int(pid))

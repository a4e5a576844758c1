"""Worker processes: started with a task on standard input, replaced when they die, stopped at exit.

The parent holds a `Pool` of `Worker` objects. Inside a worker process, `stops_on_signals` and
`exit_with_parent` make sure that it ends with a clean-up, and not after its parent.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType

from .. import interrupts

FAILED = 3  # exit status of a worker that has reported what went wrong
STOPPED = 128 + signal.SIGTERM  # exit status of a worker that was stopped by a signal
TIMEOUT = 30.0  # seconds for workers to end by themselves, after a batch or an import
DRAIN = 1.0  # seconds to read the output of one that was killed
MAX_DEATHS = 5  # in a row, without progress


class Worker:
    """A process, and the last lines of its output.

    Args:
        command: The command to start.
        task: Its standard input.
        environment: Variables added to those of this process.
        on_line: Called with every line of output, in a thread of its own.
    """

    def __init__(
        self,
        command: Sequence[str],
        task: str,
        environment: Mapping[str, str],
        on_line: Callable[[str], object] | None = None,
    ) -> None:
        with tempfile.TemporaryFile("w+") as stdin:
            stdin.write(task)
            stdin.seek(0)
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C reaches the parent only, which stops the workers
            )
        self.last_lines: deque[str] = deque(maxlen=5)
        self._on_line = on_line
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self._on_line is not None:
                self._on_line(line)
            self.last_lines.append(line.strip())

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def has_died(self) -> bool:
        """Whether it ended without finishing its work or reporting a failure."""
        return self.has_ended and self.process.returncode not in (0, FAILED)

    @property
    def last_line(self) -> str:
        """The last line of its output; without any, its exit status."""
        lines = [line for line in self.last_lines if line]
        return lines[-1] if lines else f"a worker exited with status {self.process.poll()}"

    def close(self, deadline: float | None = None) -> None:
        """Wait, then kill; drain the remaining output.

        Args:
            deadline: Until when to wait, by `time.monotonic`; `TIMEOUT` seconds by default.
        """
        deadline = time.monotonic() + TIMEOUT if deadline is None else deadline
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(max(DRAIN, deadline - time.monotonic()))
        if self.process.stdout is not None and not self._reader.is_alive():
            self.process.stdout.close()


class Pool:
    """A fixed number of slots for workers; used in a `with` block, which stops them at its end.

    Args:
        size: The number of slots.
        start: Starts the worker of a slot, given its number.
        progress: Returns a value that changes whenever something is saved that survives a crash.
    """

    def __init__(
        self, size: int, start: Callable[[int], Worker], progress: Callable[[], object]
    ) -> None:
        self._start, self._progress = start, progress
        self._workers: list[Worker | None] = [None] * size
        self._deaths, self._last_progress = 0, progress()

    def __len__(self) -> int:
        """Return the number of occupied slots."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Worker]:
        """Return the workers in the occupied slots."""
        return (worker for worker in self._workers if worker is not None)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        workers = list(self)
        for worker in workers:
            worker.process.terminate()
        deadline = time.monotonic() + TIMEOUT
        for worker in workers:
            worker.close(deadline)

    def remove_ended(self) -> list[Worker]:
        """Free the slots of workers that have ended, and return those workers.

        Raises:
            RuntimeError: If too many workers in a row died without progress.
        """
        ended = []
        for slot, worker in enumerate(self._workers):
            if worker is not None and worker.has_ended:
                worker.close()
                self._workers[slot] = None
                ended.append(worker)
                if worker.has_died:
                    self._count_death(worker)
        return ended

    def fill(self, has_work: Callable[[], bool]) -> None:
        """Start workers in free slots while there is work for them."""
        for slot, worker in enumerate(self._workers):
            if worker is None and has_work():
                self._workers[slot] = self._start(slot)

    def _count_death(self, worker: Worker) -> None:
        progress = self._progress()
        self._deaths = self._deaths + 1 if progress == self._last_progress else 1
        self._last_progress = progress
        if self._deaths >= MAX_DEATHS:
            output = "; ".join(worker.last_lines) or "none"
            raise RuntimeError(
                f"{self._deaths} workers died in a row without progress; the last exited with "
                f"status {worker.process.returncode}, its last output: {output}"
            )


@contextmanager
def stops_on_signals() -> Iterator[None]:
    """Make signals end this process with status `STOPPED`, at the next `interrupts.check`."""
    interrupts.install(obey=[signal.SIGTERM])  # with which the parent stops it
    try:
        with interrupts.deferred():
            yield
    except KeyboardInterrupt:
        interrupts.end()
        raise SystemExit(STOPPED) from None


def read_task() -> str:
    """Read standard input, which may be a pipe that stays open: a signal does not wait for it."""
    with interrupts.raising():
        interrupts.check()  # one may have come before
        return sys.stdin.read()


def exit_with_parent(parent: int | None) -> None:
    """End this process if its parent is no longer the process of that number."""
    if parent is not None and os.getppid() != parent:
        raise SystemExit(STOPPED)

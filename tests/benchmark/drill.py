"""Forks workers that are killed: in this process everything is imported already, so that each of
them starts in milliseconds. Commands come as JSON lines on standard input, answers go back so.

A worker may carry faults: at the first of these points of its writing it sends SIGKILL to itself.
The points are the calls that change a folder, before, inside (a write that is half done) and after.
The package knows nothing of this; the calls are wrapped in the worker's process only.
"""

import io
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from tiny_grid import tiny_runs

from lossforge.benchmark import RunFolder, RunSpec, execute
from lossforge.benchmark.worker import work
from lossforge.files import write_atomically

DRAFT = re.compile(r"^\.(?P<name>.+?)\.[0-9a-f]{32}(\.part)?$")


def plain(path) -> str:
    """A file's name without what differs from one time to the next."""
    name = Path(path).name
    if draft := DRAFT.match(name):
        return f"draft of {draft['name']}"
    return re.sub(r"^claim\.\d+$", "claim", name)


class Points:
    """Wraps the calls that change a folder, and tells each point as it is passed."""

    def __init__(self, reached) -> None:
        self.reached = reached
        self.replaced = ""
        for name in ("replace", "link", "unlink", "mkdir", "utime"):
            setattr(os, name, self.wrap(name, getattr(os, name)))
        self.fsync, os.fsync = os.fsync, self.fsync_wrapped
        self.open, io.open = io.open, self.open_wrapped

    def wrap(self, verb, call):
        def wrapped(*args, **kwargs):
            name = plain(args[-1] if verb in ("replace", "link") else args[0])
            name = "folder" if verb == "mkdir" else name
            self.reached(f"before {verb} {name}")
            result = call(*args, **kwargs)
            self.reached(f"after {verb} {name}")
            self.replaced = name if verb == "replace" else self.replaced
            return result

        return wrapped

    def fsync_wrapped(self, handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        name = f"folder of {self.replaced}" if path.is_dir() else plain(path)
        self.reached(f"before fsync {name}")
        self.fsync(handle)
        self.reached(f"after fsync {name}")

    def open_wrapped(self, file, mode="r", *args, **kwargs):
        if not set(mode) & set("wxa"):
            return self.open(file, mode, *args, **kwargs)
        self.reached(f"before open {plain(file)}")
        stream = self.open(file, mode, *args, **kwargs)
        self.reached(f"after open {plain(file)}")
        return Stream(stream, plain(file), self.reached)


class Stream:
    """A file that is written in two halves."""

    def __init__(self, stream, name, reached) -> None:
        self.stream, self.name, self.reached = stream, name, reached

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.stream.close()

    def write(self, content):
        middle = len(content) // 2
        self.reached(f"before write {self.name}")
        self.stream.write(content[:middle])
        self.stream.flush()
        self.reached(f"inside write {self.name}")
        self.stream.write(content[middle:])
        self.stream.flush()
        self.reached(f"after write {self.name}")
        return len(content)


def start(
    store: str, runs: list[str], faults: list[str] | None = None, passed: str | None = None
) -> int:
    """Fork a worker that enters runs and does them; its status is 0 if nothing failed.

    Args:
        store: The folder of runs.
        runs: The specs, as JSON.
        faults: Where it kills itself, at the first it comes to.
        passed: A file that takes the points it passes; with faults, the one that it died at.
    """
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        os.dup2(2, 1)  # standard output is for the answers
        if passed is not None:
            log = os.open(passed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            Points(lambda point: reach(point, faults, log))
        specs = [RunSpec.model_validate_json(run) for run in runs]
        for spec in specs:
            RunFolder(Path(store), spec).open()
        status = 1 if work(Path(store), [spec.id for spec in specs]) else 0
    finally:
        os._exit(status)


def reach(point: str, faults: list[str] | None, log: int) -> None:
    if faults is None or point in faults:
        os.write(log, f"{point}\n".encode())
    if faults is not None and point in faults:
        os.kill(os.getpid(), signal.SIGKILL)


def overwrite(path: str, content: str, number: int) -> int:
    """Fork a process that writes a file and kills itself at a point, counted from 1."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        passed: list[str] = []

        def count(point: str) -> None:
            passed.append(point)
            if len(passed) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        Points(count)
        write_atomically(Path(path), content.encode())
        status = 0
    finally:
        os._exit(status)


def wait(pid: int, seconds: float = 60) -> int | None:
    """The exit status, negative for a signal; None if it has not ended in time."""
    end = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


def main() -> None:
    commands = {"start": start, "overwrite": overwrite, "wait": wait}
    with tempfile.TemporaryDirectory() as folder:  # so that whatever is imported late is there
        execute(Path(folder), tiny_runs()[0])
    for line in sys.stdin:
        name, arguments = json.loads(line)
        sys.stdout.write(json.dumps(commands[name](**arguments)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A Ray head node of this test's own, with its folder, its ports and nobody else's processes."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PORTS = range(20_000, 30_000)  # Ray keeps 10002 to 19999 for its workers
START = 120.0  # seconds


class Head(NamedTuple):
    """Where the cluster is, for a process with this environment."""

    client: str
    node: str
    environment: dict[str, str]


@contextmanager
def own_folder() -> Iterator[dict[str, str]]:
    """An environment in which Ray writes to a folder that is removed in the end."""
    # the paths of its sockets must be short, and nothing may be written to the user's folder
    folder = tempfile.mkdtemp(prefix="ray")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    own = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder, "HOME": folder, "PYTHONPATH": path}
    try:
        yield {**os.environ, **own}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def head_node() -> Iterator[Head]:
    """A running head node of two processors, with a server for clients."""
    with own_folder() as environment:
        port, client = _free_ports()
        log = Path(environment["HOME"], "head.log")
        words = ["--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}"]
        words += [f"--ray-client-server-port={client}", "--num-cpus=2", "--include-dashboard=false"]
        words += [f"--object-store-memory={128 * 2**20}", f"--temp-dir={environment['HOME']}/ray"]
        with log.open("wb") as said:
            head = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *words],
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        try:
            found = Head(f"ray://127.0.0.1:{client}", f"127.0.0.1:{port}", environment)
            _wait_for(found, head, log)
            yield found
        finally:
            head.terminate()  # it takes the processes that it started along
            head.wait(30)


def _free_ports() -> tuple[int, int]:
    free = (port for port in PORTS if not _taken(port))
    return next(free), next(free)


def _taken(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return True
    return False


def _wait_for(found: Head, head: subprocess.Popen, log: Path) -> None:
    """Wait until a client is served: the server listens before it can start what serves one."""
    code = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False)"
    words = [sys.executable, "-c", code, found.client]
    end = time.monotonic() + START
    said = ""
    while (left := end - time.monotonic()) > 0:
        assert head.poll() is None, log.read_text()
        try:
            trial = subprocess.run(
                words, env=found.environment, capture_output=True, text=True, timeout=left
            )
        except subprocess.TimeoutExpired:
            break
        if trial.returncode == 0:
            return
        said = trial.stderr
    raise AssertionError(f"no client was served in {START:.0f} s\n{log.read_text()}\n{said}")

"""Real data for the tests that want it."""

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that LOSSFORGE_DATA names."""
    folder = os.environ.get("LOSSFORGE_DATA", "").split(os.pathsep)[0]
    if not folder:
        pytest.skip("LOSSFORGE_DATA is not set: it names a folder with real data")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def cifar10_folder(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds CIFAR-10 in the official layout."""
    if (real_data / "cifar10" / "cifar-10-batches-py").is_dir():
        return real_data
    script = real_data / "cifar10" / "expand.py"
    if not script.is_file():
        pytest.skip(f"{real_data} holds no CIFAR-10")
    base = tmp_path_factory.getbasetemp()
    # the workers of a parallel run share the folder above, and the images are unpacked once
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cifar10"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            subprocess.run([sys.executable, script, f"{folder}.part"], check=True)
            Path(f"{folder}.part").rename(folder)
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a web server that hands out what is in it."""
    folder = tmp_path_factory.mktemp("served")
    handler = partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

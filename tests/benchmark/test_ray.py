"""On a Ray cluster, of its own or of others, the records are the same."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ray_head import Head, head_node, own_folder
from tiny_grid import KEPT, TINY, impossible_run, long_runs, owners, records

from lossforge.benchmark.claim import is_alive

pytestmark = [pytest.mark.slow, pytest.mark.alone]
pytest.importorskip("ray")

PATIENCE = 300.0  # seconds
RAY = Path(__file__).with_name("ray_grid.py")


@pytest.fixture(scope="module")
def head():
    with head_node() as found:
        yield found


def test_tasks_give_the_same_records_though_one_is_killed(drill, undisturbed, tmp_path):
    with own_folder() as environment:
        done = subprocess.run(
            [sys.executable, str(RAY), str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    assert len(told["killed"]) == 1
    assert drill.work(tmp_path / "long", long_runs()) == 0
    assert records(tmp_path / "peace") == undisturbed
    assert records(tmp_path / "kill") == {**undisturbed, **records(tmp_path / "long")}
    assert "1 of 15 runs failed" in told["failed"]
    assert impossible_run().id in told["failed"]
    assert {path.name for path in (tmp_path / "peace").glob("*/*")} == KEPT


@contextmanager
def bench(
    head: Head, folder: Path, address: str, grid: str = TINY
) -> Iterator[subprocess.Popen[str]]:
    """The command, as somebody types it who has the cluster's address."""
    (folder / "grid.toml").write_text(grid)
    words = [sys.executable, "-m", "lossforge", "bench", str(folder / "grid.toml")]
    words += ["--store", str(folder / "store"), "--executor", "ray", "--address", address]
    with subprocess.Popen(
        words, env=head.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        try:
            yield command
        finally:
            command.kill()


@pytest.mark.parametrize("kind", ["client", "node", "auto"])
def test_a_running_cluster_gives_the_same_records(head, undisturbed, tmp_path, kind):
    address = {"client": head.client, "node": head.node, "auto": "auto"}[kind]
    with bench(head, tmp_path, address) as command:
        _, said = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, said
    assert records(tmp_path / "store") == undisturbed
    assert {path.name for path in (tmp_path / "store").glob("*/*")} == KEPT


def test_a_client_is_told_what_failed(head, tmp_path):
    code = (
        "import sys; from pathlib import Path; from tiny_grid import impossible_run\n"
        "from lossforge.benchmark.executors import run_all\n"
        "run_all('ray', Path(sys.argv[1]), [impossible_run()], address=sys.argv[2])"
    )
    words = [sys.executable, "-c", code, str(tmp_path), head.client]
    done = subprocess.run(
        words, env=head.environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert "1 of 1 runs failed" in done.stderr
    assert "SpecError: unknown data set 'nothing'" in done.stderr


def wait_until(condition) -> None:
    """Wait for other processes."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_client_that_is_interrupted_takes_its_tasks_back(head, tmp_path):
    store, endless = tmp_path / "store", TINY.replace("epochs = 3", "epochs = 4000")
    with bench(head, tmp_path, head.client, endless) as command:
        wait_until(lambda: owners(store))
        os.kill(command.pid, signal.SIGINT)
        _, said = command.communicate(timeout=PATIENCE)
    assert command.returncode == 130, said
    assert "the same command continues" in said
    # Ray may end a worker before it lets its claim go: a claim of the dead is anybody's
    wait_until(lambda: not any(is_alive(run / "claim") for run in store.iterdir() if run.is_dir()))


def test_a_cluster_that_is_not_there_is_named(head, tmp_path):
    away = "ray://127.0.0.1:9"
    patience = {f"RAY_CLIENT_{which}_CONNECTION_TIMEOUT_S": "1" for which in ("INITIAL", "MAX")}
    hasty = head._replace(environment={**head.environment, **patience})
    with bench(hasty, tmp_path, away) as command:
        _, said = command.communicate(timeout=PATIENCE)
    assert command.returncode == 2, said
    assert f"error: no Ray cluster at {away}: " in said

"""Worker processes: a signal ends one that waits for its task, and one deadline ends them all."""

import signal
import sys
import time

import pytest

pytest.importorskip("pydantic")
from lossforge import interrupts
from lossforge.benchmark import pool, worker

IGNORES = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(60)"
)


class OpenPipe:
    """Standard input on which nothing comes but a signal."""

    waits = False

    def read(self):
        interrupts._note(signal.SIGTERM, None)
        self.waits = True
        raise OSError("nothing came")


def _benchmark_worker():
    return worker


def _search_worker():
    pytest.importorskip("optuna")
    from lossforge.tuning import worker

    return worker


@pytest.mark.parametrize("find", [_benchmark_worker, _search_worker])
@pytest.mark.parametrize("early", [False, True], ids=["while it waits", "before"])
def test_a_signal_ends_a_worker_that_waits_for_its_task(monkeypatch, find, early):
    main = find().main
    monkeypatch.setattr(interrupts, "install", lambda **_: None)
    monkeypatch.setattr(interrupts, "_received", signal.SIGTERM if early else None)
    monkeypatch.setattr(sys, "argv", ["worker", "store"])
    pipe = OpenPipe()
    monkeypatch.setattr(sys, "stdin", pipe)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == pool.STOPPED
    assert not pipe.waits


def test_hung_workers_are_waited_for_together(monkeypatch):
    monkeypatch.setattr(pool, "TIMEOUT", 0.4)
    command = [sys.executable, "-c", IGNORES]
    with pool.Pool(4, lambda slot: pool.Worker(command, "", {}), lambda: 0) as workers:
        workers.fill(lambda: True)
        started = [one for one in workers._workers if one is not None]
        while any(not one.last_lines for one in started):
            time.sleep(0.01)
        begin = time.monotonic()
    assert time.monotonic() - begin < 4 * 0.4
    assert [one.process.returncode for one in started] == [-signal.SIGKILL] * 4

"""A claim has one holder, whoever dies."""

import errno
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_grid import result_of, tiny_runs

from lossforge.benchmark import RunFolder
from lossforge.benchmark.claim import claimed, is_alive

ROUNDS = 200
RACERS = Path(__file__).with_name("racers.py")


def dead_pid() -> int:
    """The number of a process that was."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def here(pid: int) -> str:
    return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')} {pid}"


def lay(path: Path, owner: str, age: float = 0.0) -> Path:
    """Somebody else's claim."""
    claim = path.with_name(f"{path.name}.1")
    claim.write_text(owner)
    os.utime(claim, (time.time() - age,) * 2)
    return claim


def can_claim(path: Path, **times: float) -> bool:
    with claimed(path, **times) as ours:
        return ours


@pytest.fixture
def path(tmp_path):
    return tmp_path / "claim"


def test_a_claim_has_one_holder_and_is_let_go(path):
    with claimed(path) as first, claimed(path) as second:
        assert first
        assert not second
        assert is_alive(path)
    assert list(path.parent.iterdir()) == []
    assert not is_alive(path)
    assert can_claim(path)


def test_an_exception_lets_it_go(path):
    with pytest.raises(KeyError), claimed(path):
        raise KeyError
    assert can_claim(path)


@pytest.mark.slow
@pytest.mark.parametrize("dead", [False, True], ids=["free", "dead owner"])
def test_one_of_two_wins_every_race(tmp_path, dead):
    pid = dead_pid()
    for number in range(ROUNDS):
        (tmp_path / str(number)).mkdir()
        if dead:
            lay(tmp_path / str(number) / "claim", here(pid))
    done = subprocess.run(
        [sys.executable, str(RACERS), str(tmp_path), str(ROUNDS)],
        capture_output=True,
        check=True,
        timeout=100,
    )
    holders, wins = json.loads(done.stdout)
    assert holders == [1] * ROUNDS
    assert min(wins) > 0  # or it was no race


def test_the_claim_of_a_process_that_is_gone_is_taken_over_at_once(path):
    lay(path, here(dead_pid()))
    assert not is_alive(path)
    with claimed(path) as ours:
        assert ours
        assert is_alive(path)
        assert not can_claim(path)
    assert can_claim(path)


@pytest.mark.parametrize(
    "owner",
    ["elsewhere pid:[4026531836] 1", f"{socket.gethostname()} pid:[1] 999999", ""],
    ids=["another machine", "another container", "nobody"],
)
def test_a_claim_from_elsewhere_is_taken_over_when_it_is_stale(path, owner):
    claim = lay(path, owner, age=50)
    assert is_alive(path)
    assert not can_claim(path)
    os.utime(claim, (time.time() - 70,) * 2)
    assert not is_alive(path)
    assert can_claim(path)


@pytest.mark.parametrize("owner", ["elsewhere pid:[4026531836] 1", ""])
def test_a_claim_dated_in_the_future_lapses_like_an_old_one(path, owner):
    """Its owner, if it lived, would have renewed it by the clock of the file system."""
    claim = lay(path, owner, age=-50)
    assert not can_claim(path)
    os.utime(claim, (time.time() + 10**6,) * 2)
    assert not is_alive(path)
    assert can_claim(path)


ABSURD = {
    "binary": b"\xff\xfe\x00\x80" * 100,
    "zeros": bytes(1000),
    "a huge process": here(10**30).encode(),
    "more digits than int takes": here(1).encode() + b"0" * 10_000,
    "no process": here(0).encode(),
    "a negative process": here(-1).encode(),
    "another script's digits": "elsewhere \u0663".encode(),
    "a place with spaces": b"  a  b \n c 17\n",
    "a megabyte": b"x " * 500_000,
}


@pytest.mark.parametrize("content", ABSURD.values(), ids=ABSURD)
def test_a_claim_with_absurd_contents_lapses(path, content):
    claim = path.with_name("claim.1")
    claim.write_bytes(content)
    is_alive(path)
    can_claim(path)
    claim.write_bytes(content)
    os.utime(claim, (time.time() - 70,) * 2)
    assert not is_alive(path)
    assert can_claim(path)


def make_folder(claim):
    claim.mkdir()


def make_fifo(claim):
    os.mkfifo(claim)


def make_loop(claim):
    claim.symlink_to(claim.name)


def make_dangling(claim):
    claim.symlink_to("nowhere")


@pytest.mark.parametrize("make", [make_folder, make_fifo, make_loop, make_dangling])
def test_a_claim_that_is_no_file_lapses(path, make):
    claim = path.with_name("claim.1")
    make(claim)
    assert is_alive(path)
    assert not can_claim(path)
    os.utime(claim, (time.time() - 70,) * 2, follow_symlinks=False)
    assert not is_alive(path)
    assert can_claim(path)


def test_a_run_is_finished_though_its_claim_is_a_folder(tmp_path):
    run = tiny_runs()[0]
    folder = RunFolder(tmp_path, run)
    folder.open()
    (folder.path / "claim.1").mkdir()
    folder.finish(result_of(run), {})
    folder.open()
    assert folder.finished


@pytest.mark.parametrize("suffix", ["0", "007", "\u0663", "1.part", "-1", "", "x"])
def test_a_name_that_is_no_number_claims_nothing(path, suffix):
    path.with_name(f"claim.{suffix}").write_text("elsewhere 1")
    assert not is_alive(path)
    assert can_claim(path)


def test_the_heart_keeps_a_claim_alive(path):
    with claimed(path, heartbeat=0.05, stale=1.0) as ours:
        assert ours
        Path(f"{path}.1").write_text("elsewhere 1")  # so that its time alone decides
        for _ in range(15):
            time.sleep(0.1)
            assert is_alive(path, stale=1.0)
            assert not can_claim(path, stale=1.0)


def test_a_heart_that_stopped_is_noticed(path):
    with claimed(path, heartbeat=60, stale=0.3) as ours:
        assert ours
        time.sleep(0.4)
        assert can_claim(path, stale=0.3)


def test_a_failed_heartbeat_does_not_end_the_heart(path, monkeypatch):
    touch, failures = os.utime, [OSError(errno.ESTALE, "stale")] * 3

    def sometimes(*args, **kwargs):
        if failures:
            raise failures.pop()
        touch(*args, **kwargs)

    with claimed(path, heartbeat=0.02, stale=0.5):
        monkeypatch.setattr(os, "utime", sometimes)
        time.sleep(0.8)
        assert failures == []
        assert not can_claim(path, stale=0.5)


def test_a_late_owner_lets_nothing_go_but_its_own(path):
    """One who was taken for dead and comes back does not free the claim of its successor."""
    with claimed(path, heartbeat=60, stale=0.1) as first:
        time.sleep(0.2)
        successor = claimed(path, stale=0.1)
        assert successor.__enter__()
    assert first
    assert not can_claim(path)
    successor.__exit__(None, None, None)
    assert can_claim(path)


def test_of_two_that_find_a_claim_dead_one_takes_it_over(path, monkeypatch):
    """The second takes it between the first one's look and its attempt."""
    lay(path, here(dead_pid()))
    second = claimed(path)

    def overtaken(pid, signum):
        monkeypatch.undo()
        assert second.__enter__()
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", overtaken)
    assert not can_claim(path)
    second.__exit__(None, None, None)
    assert can_claim(path)


def test_one_who_looked_before_it_was_let_go_does_not_win_beside_another(path, monkeypatch):
    """Between reading a claim and asking for its process, both may be gone."""
    claim = lay(path, here(dead_pid()))

    def let_go(pid, signal):
        claim.unlink(missing_ok=True)
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", let_go)
    assert not can_claim(path)
    monkeypatch.undo()
    assert can_claim(path)


def test_without_links_a_claim_still_has_one_holder(path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOTSUP, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with claimed(path) as ours:
        assert ours
        assert not can_claim(path)
    assert can_claim(path)


def test_a_folder_that_is_missing_is_named(tmp_path):
    with (
        pytest.raises(OSError, match=r"cannot claim: No such file.*nowhere"),
        claimed(tmp_path / "nowhere" / "claim"),
    ):
        pass

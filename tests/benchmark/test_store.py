"""Files that are old or new, whole; runs that lose nothing when the disk is full."""

import os
import resource
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
from made_records import whole_record
from tiny_grid import records, tiny_runs

from lossforge.benchmark import RunFolder, RunSpec, execute, read_spec, statuses
from lossforge.benchmark.claim import STALE
from lossforge.benchmark.executors import options, run_all
from lossforge.benchmark.store import Forecast
from lossforge.errors import SpecError
from lossforge.files import write_atomically

SPEC = RunSpec(data="digits", model="mlp", loss="CE", expression="CE", training={"lr": 0.1})


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path, SPEC)
    folder.open()
    return folder


@pytest.fixture
def disk(tmp_path):
    """A disk of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"mounting a small disk is not allowed: {mounted.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """A file that takes all space but some."""
    free = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"x" * (free.f_bavail * free.f_bsize - leave))
    return filler


@pytest.mark.slow
def test_a_write_that_is_killed_leaves_old_or_new(drill, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    found = []
    while drill.overwrite(path, "new" * 1000, len(found) + 1) == -signal.SIGKILL:
        found.append(path.read_text())
    changed = found.index("new" * 1000)
    assert changed > 5
    assert found == ["old"] * changed + ["new" * 1000] * (len(found) - changed)


def test_a_full_disk_names_the_file_and_keeps_what_was(disk):
    path = disk / "record.json"
    write_atomically(path, b"old")
    fill(disk, leave=8192)
    with pytest.raises(OSError, match=r"cannot write: No space left on device.*record\.json"):
        write_atomically(path, b"new" * 10000)
    assert path.read_bytes() == b"old"
    assert {path.name for path in disk.iterdir()} == {"record.json", "filler"}


def test_a_read_only_disk_names_the_file_and_keeps_what_was(disk):
    folder = RunFolder(disk, SPEC)
    folder.open()
    folder.save_checkpoint(1, b"one")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(OSError, match=r"cannot write: Read-only.*checkpoint-000002\.pt"):
        folder.save_checkpoint(2, b"two")
    with pytest.raises(OSError, match=r"cannot claim: Read-only.*claim"), folder.claim():
        pass
    other = RunFolder(disk, SPEC.model_copy(update={"seed": 1}))
    with pytest.raises(OSError, match=f"cannot make the folder.*{other.path.name}"):
        other.open()
    folder.open()
    assert folder.load_checkpoint() == b"one"


def test_a_file_that_may_not_grow_is_named(tmp_path):
    """The same without a disk of our own: where nothing may be mounted, this remains."""
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"cannot write: File too large.*record\.json"):
            write_atomically(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_no_draft(tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_goes_on_when_the_full_disk_has_room_again(drill, undisturbed, disk):
    run = tiny_runs()[0]
    RunFolder(disk, run).open()
    filler = fill(disk, leave=48 * 1024)
    with pytest.raises(RuntimeError, match=r"No space left on device: '.*checkpoint-.*\.pt'"):
        run_all("local", disk, [run], workers=1, gpus=())
    kept = {path.name for path in (disk / run.id).iterdir()}
    assert {"spec.json", "checkpoint-000001.pt"} <= kept
    assert not any(name.startswith((".", "claim")) for name in kept)
    filler.unlink()
    assert drill.work(disk, [run]) == 0
    assert records(disk) == {run.id: undisturbed[run.id]}


def test_the_newest_two_checkpoints_are_kept(folder):
    for epoch in (1, 2, 3):
        folder.save_checkpoint(epoch, f"epoch {epoch}".encode())
    assert len(list(folder.path.glob("checkpoint-*"))) == 2
    assert folder.load_checkpoint() == b"epoch 3"


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100], ids=len)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(folder, damage):
    for epoch in (1, 2):
        folder.save_checkpoint(epoch, f"epoch {epoch}".encode())
    (folder.path / "checkpoint-000002.pt").write_bytes(damage)
    with pytest.warns(UserWarning, match=r"checkpoint-000002\.pt is damaged"):
        assert folder.load_checkpoint() == b"epoch 1"


def test_the_status_tells_how_far_a_run_is(folder, tmp_path):
    def status() -> str:
        ((_, found),) = statuses(tmp_path, [SPEC])
        return found

    assert status() == "waiting"
    with folder.claim():
        assert status() == "running"
        folder.save_checkpoint(1, b"one")
    assert status() == "started"
    folder.finish(whole_record(SPEC), {})
    assert status() == "finished"


def test_the_time_left_is_that_of_runs_of_the_same_kind(tmp_path, monkeypatch):
    runs = tiny_runs()[:4]
    other = runs[0].model_copy(update={"data": "breast-cancer"})
    forecast = Forecast(tmp_path, [*runs, other], workers=2)
    found = {run.id: "waiting" for run in [*runs, other]}
    *_, last = found
    assert forecast.left(found) is None
    for run, seconds in zip(runs[:2], (10.0, 30.0), strict=True):
        folder = RunFolder(tmp_path, run)
        folder.open()
        folder.finish(whole_record(run), {"seconds": seconds})
        found[run.id] = "finished"
    folder = RunFolder(tmp_path, other)
    folder.open()
    folder.finish(whole_record(other), {"seconds": 100.0})
    monkeypatch.setattr(RunSpec, "id", property(lambda spec: pytest.fail("a spec hashed again")))
    assert forecast.left(found) == timedelta(seconds=30)  # 20 s for each of three, two at a time
    found[last] = "finished"
    assert forecast.left(found) == timedelta(seconds=20)  # the other's 100 s count for none of them


@pytest.mark.parametrize(("seconds", "rest"), [(0.1, 2), (0.4, 8), (100, options.LONGEST_REST)])
def test_statuses_of_many_runs_take_little_of_a_processor(tmp_path, monkeypatch, seconds, rest):
    now, shown = [0.0], []
    monkeypatch.setattr(options.time, "monotonic", lambda: now[0])

    def show(found):
        shown.append(found)
        now[0] += seconds

    status = options.GridStatus(tmp_path, [SPEC], options.Options(on_progress=show))
    now[0] += rest - 0.01
    status.poll()
    assert len(shown) == 1
    now[0] += 0.02
    status.poll()
    assert len(shown) == 2


def test_a_finished_run_is_tidy(folder):
    """Also if the one who finished it was killed at the last moment."""
    folder.finish(whole_record(SPEC), {})
    folder.save_checkpoint(1, b"one")
    (folder.path / "claim.1").write_text("elsewhere 1")
    young, old = folder.path / ".record.json.1.part", folder.path / ".claim.2"
    young.touch()
    old.touch()
    os.utime(old, (time.time() - 2 * STALE,) * 2)
    folder.open()
    names = {path.name for path in folder.path.iterdir()}
    assert names == {"spec.json", "record.json", "about.json", young.name}


def test_a_finished_run_is_not_repeated(folder, tmp_path):
    folder.finish(whole_record(SPEC), {})
    assert execute(tmp_path, SPEC) == "finished before"


def test_a_run_in_other_hands_is_left_alone(folder, tmp_path):
    with folder.claim():
        assert execute(tmp_path, SPEC) == "busy"


def test_a_spec_is_read_back(folder, tmp_path):
    assert read_spec(tmp_path, SPEC.id) == SPEC


def test_a_spec_that_is_missing_changed_or_broken_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no run 0123"):
        read_spec(tmp_path, "0123")
    path = folder.path / "spec.json"
    path.write_text(path.read_text().replace("digits", "mnist"))
    with pytest.raises(SpecError, match=r"spec\.json was changed"):
        read_spec(tmp_path, SPEC.id)
    path.write_text("{")
    with pytest.raises(SpecError, match=r"spec\.json: "):
        read_spec(tmp_path, SPEC.id)

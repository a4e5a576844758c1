"""`lossforge clean` killed by SIGKILL: no half of a file, and the next call completes it."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")
from test_clean import write_audit
from typer.testing import CliRunner

from lossforge.cli.main import app
from lossforge.data.own import content_hash
from lossforge.files import draft_of

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ROWS = 5000
# the command, which kills itself at the n-th call of a function of the operating system
DEADLY = """
import os, signal, sys
name, number = sys.argv[1], int(sys.argv[2])
usual = getattr(os, name)
def deadly(*words):
    global number
    number -= 1
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    return usual(*words)
setattr(os, name, deadly)
sys.argv[1:] = sys.argv[3:]
from lossforge.cli.main import app
app()
"""


def table(folder, suffix):
    """A table of animals, and what an audit says of it."""
    path = folder / f"pets{suffix}"
    rows = [(f"P{3 * n}", f"words of number {n}", ("cat", "dog")[n % 2]) for n in range(ROWS)]
    names = ("pet", "say", "kind")
    if suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names, *rows])
    suspects = [(n, rows[n][2], "cat" if n % 2 else "dog", 0.1) for n in range(0, ROWS, 7)]
    return path, write_audit(folder / "audit", path, "kind", suspects=suspects)


def photos(folder, count):
    """A folder of files that are called images; `clean` does not look into them."""
    root = folder / "pets"
    names = [f"{('cat', 'dog')[n % 2]}/{n:03}.png" for n in range(count)]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode() * 2000)
    order = sorted(names)
    pairs = [(place, order[place].split("/")[0]) for place in range(0, count, 9)]
    suspects = [(place, own, "dog" if own == "cat" else "cat", 0.1) for place, own in pairs]
    return root, write_audit(folder / "audit", root, None, suspects=suspects)


def content(place):
    """Everything under a name, hidden files included."""
    if place.is_file():
        return place.read_bytes()
    return {path.relative_to(place).as_posix(): path.read_bytes()
            for path in place.rglob("*") if path.is_file()}  # fmt: skip


def words_of(source, audit, out):
    return ["clean", str(source), "--audit", str(audit), "--relabel", "--out", str(out)]


def cleaned(source, audit, out):
    done = CliRunner().invoke(app, words_of(source, audit, out))
    assert done.exit_code == 0, done.stderr
    return content(out)


def check_completed(source, audit, out, expected, before):
    """After a kill: whole files alone; the next two calls end with the same bytes."""
    if out.is_dir():
        for name, raw in content(out).items():
            assert draft_of(out / name) or raw == expected[name]
    for _ in range(2):
        assert cleaned(source, audit, out) == expected
    assert not any(draft_of(path) for path in out.parent.iterdir())
    assert content_hash(source) == before


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("old", [False, True], ids=["new", "over-another"])
def test_a_killed_table_is_never_half_written(tmp_path, suffix, moment, old):
    source, audit = table(tmp_path, suffix)
    before, out = content_hash(source), tmp_path / "out" / f"clean{suffix}"
    out.parent.mkdir()
    expected = cleaned(source, audit, tmp_path / f"expected{suffix}")
    if old:
        out.write_bytes(b"old")
    killed = subprocess.run(
        [sys.executable, "-c", DEADLY, moment, "1", *words_of(source, audit, out)],
        env=ENVIRONMENT, capture_output=True, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in out.parent.iterdir() if draft_of(path) == out.name] != []
    assert out.read_bytes() == b"old" if old else not out.exists()
    check_completed(source, audit, out, expected, before)


@pytest.mark.parametrize(
    ("moment", "number"), [("fsync", 1), ("replace", 1), ("replace", 2), ("fsync", 60)]
)
def test_a_killed_copy_of_a_folder_is_completed(tmp_path, moment, number):
    source, audit = photos(tmp_path, 60)
    before, out = content_hash(source), tmp_path / "out" / "pets"
    expected = cleaned(source, audit, tmp_path / "expected" / "pets")
    killed = subprocess.run(
        [sys.executable, "-c", DEADLY, moment, str(number), *words_of(source, audit, out)],
        env=ENVIRONMENT, capture_output=True, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert len(content(out)) < len(expected)
    check_completed(source, audit, out, expected, before)


def test_a_copy_that_others_kill_is_completed(tmp_path):
    source, audit = photos(tmp_path, 400)  # it takes long enough to be killed in between
    before, out = content_hash(source), tmp_path / "out" / "pets"
    expected = cleaned(source, audit, tmp_path / "expected" / "pets")
    process = subprocess.Popen(
        [sys.executable, "-m", "lossforge", *words_of(source, audit, out)],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not (out / "cat" / "002.png").exists():
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert 2 <= len(content(out)) < len(expected)
    check_completed(source, audit, out, expected, before)

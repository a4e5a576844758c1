"""The real command line under signals, and with an output that cannot be written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("typer")

from lossforge.cli.main import COMMANDS

# sends itself a signal when a module is first imported, as if Ctrl-C had been typed then
PLANTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {signum})
sys.meta_path.insert(0, Finder())
sys.argv = ["lossforge", *{words!r}]
from lossforge.__main__ import main
main()
"""
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
TINY = [
    *("--noise=symmetric:0.4", "--set=subset=200", "--set=batch_size=50", "--set=epochs=100000"),
    '--set=model_options={"hidden":[16]}',
]


def interrupted_import(module: str, *words: str, signum: int = signal.SIGINT):
    script = PLANTED.format(module=module, words=words, signum=int(signum))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("module", ["lossforge.cli.main", "typer", "lossforge.cli.library"])
@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_while_the_command_line_is_imported_ends_it(module, signum):
    done = interrupted_import(module, "--help", signum=signum)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signum, "", "interrupted\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_while_a_command_is_imported_ends_it(name):
    module = {"run": "bench"}.get(name, name)
    done = interrupted_import(f"lossforge.cli.{module}", name, "--help")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("losses",),
        ("certify", "BEF", "--noise", "pair:0.4", "--classes", "3"),
        ("frontier", "MAE", "--classes", "3"),
        ("design", "--noise", "pair:0.4", "--classes", "3"),
        ("train",),
        ("bench",),
        ("run", "store", "id"),
        ("tune",),
        ("audit", "digits"),
        ("report", "."),
        ("data", "list"),
    ],
    ids=lambda words: words[0],
)
def test_a_signal_while_torch_is_imported_ends_every_command(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = interrupted_import("torch.nn", *words)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr.startswith("interrupted")
    assert len(done.stderr.splitlines()) == 1


def write_to(stdout, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "lossforge", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )


OUTPUTS = [
    ("--version",),
    ("--help",),
    ("losses", "--help"),
    pytest.param(("losses",), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_full_output_is_one_line_and_a_status(words):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        done = write_to(full, *words)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_reader_that_is_gone_ends_a_command_quietly(words):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        done = write_to(pipe, *words)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_amid_a_long_output_ends_it_too(unbuffered):
    code = (
        "from lossforge.cli.output import checked_output\n"
        "with checked_output():\n"
        "    print('x' * 10_000_000)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(300) == 141


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_closed_output_is_one_line_and_a_status(words):
    line = " ".join([sys.executable, "-m", "lossforge", *words])
    done = subprocess.run(
        ["sh", "-c", f"{line} >&-"], stderr=subprocess.PIPE, text=True, timeout=300
    )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: Bad file descriptor\n"


def wait_for(condition, seconds: float = 300):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def start(command: str, store: Path, **options) -> subprocess.Popen:
    """Start a run that ends only by a signal, and wait until it trains."""
    words = [command, f"--store={store}", "--loss=CE", *TINY]
    words += ["--workers=1", "--seeds=0"] if command == "bench" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "lossforge", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LOSSFORGE_CHECKPOINT_SECONDS": "0"},
        **options,
    )
    wait_for(lambda: list(store.glob("*/checkpoint-*")))
    return process


def check_order(process: subprocess.Popen, store: Path, signum: int) -> None:
    """Send a signal: no claim and no worker is left, and the status names the signal."""
    (claim,) = store.glob("*/claim.*")
    owner = int(claim.read_text().split()[-1])
    process.send_signal(signum)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 128 + signum
    assert out == ""
    assert err.splitlines()[-1].endswith("the same command continues where this one stopped")
    assert "Traceback" not in err
    assert not list(store.glob("*/claim.*"))
    assert not Path(f"/proc/{owner}").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "bench"])
@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_puts_everything_in_order(command, signum, tmp_path):
    check_order(start(command, tmp_path), tmp_path, signum)


@pytest.mark.slow
def test_workers_end_though_the_command_was_started_to_ignore_sigterm(tmp_path):
    def ignore_sigterm() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    process = start("bench", tmp_path, preexec_fn=ignore_sigterm)
    process.send_signal(signal.SIGTERM)
    check_order(process, tmp_path, signal.SIGINT)

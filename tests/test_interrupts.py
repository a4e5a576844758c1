"""A signal is obeyed where it is safe: at once, as an exception, or at the next safe point."""

import signal
import subprocess
import sys

import pytest

START = """
import os, signal, sys
from lossforge import interrupts
def send(signum={signum}):
    os.kill(os.getpid(), signum)
interrupts.install()
"""


def run(script: str, signum: int = signal.SIGINT) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", START.format(signum=int(signum)) + script],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "script",
    [
        "send(); print('after')",
        "import importlib\nclass Broken:\n    def __del__(self):\n        send()\nBroken()",
        "with interrupts.deferred():\n    send()\nprint('after')",
    ],
    ids=["anywhere", "in a destructor", "at the end of a section"],
)
def test_with_nothing_to_put_in_order_a_signal_ends_the_process_at_once(script, signum):
    done = run(script, signum)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signum, "", "interrupted\n")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("with interrupts.raising():\n send(); print('after')", ""),
        ("with interrupts.raising(), interrupts.deferred():\n send(); print('after')", "after\n"),
        ("with interrupts.deferred():\n send(); print('after'); interrupts.check()", "after\n"),
    ],
    ids=["at once", "at the end of a section", "at a safe point"],
)
def test_a_signal_is_an_exception_where_it_is_caught(script, said, signum):
    script = "\n".join(f" {line}" for line in script.splitlines())
    done = run(f"try:\n{script}\nexcept KeyboardInterrupt:\n sys.exit(interrupts.status())", signum)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signum, said, "")


def test_a_deferred_signal_is_not_lost_in_a_destructor():
    done = run(
        "class Broken:\n    def __del__(self):\n        send()\n"
        "with interrupts.deferred():\n    Broken()\n    print('after')\n    interrupts.check()"
    )
    assert done.stdout == "after\n"
    assert done.returncode != 0
    assert "ignored" not in done.stderr


def test_a_second_interrupt_ends_a_clean_up():
    done = run("with interrupts.deferred():\n    send(); print('in', flush=True); send(); print()")
    assert (done.returncode, done.stdout) == (130, "in\n")


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_after_any_signal_ends_a_clean_up(first):
    then = "send(signal.SIGINT); print('after')"
    done = run(f"with interrupts.deferred():\n    send(); print('in', flush=True); {then}", first)
    assert (done.returncode, done.stdout) == (128 + first, "in\n")


def test_a_second_demand_to_end_does_not_disturb_the_clean_up():
    done = run("with interrupts.deferred():\n    send(); send(); print('in')", signal.SIGTERM)
    assert done.returncode == 143


def test_the_first_signal_decides_the_status():
    script = "with interrupts.deferred():\n    send(); send(signal.SIGINT); interrupts.check()"
    done = run(
        f"try:\n    {script.replace(chr(10), chr(10) + '    ')}\n"
        "except KeyboardInterrupt:\n    sys.exit(interrupts.status())",
        signal.SIGTERM,
    )
    assert done.returncode == 143


def test_a_signal_that_was_ignored_from_the_start_stays_so():
    done = subprocess.run(
        ["nohup", sys.executable, "-c", START.format(signum=1) + "send(); print('after')"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "after\n")


def test_the_library_alone_handles_no_signals():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import lossforge, signal; from lossforge import interrupts\n"
            "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
            "with interrupts.deferred():\n    interrupts.check()",
        ],
        timeout=300,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ends", [True, False])
def test_a_second_demand_does_not_kill_a_process_that_is_ending(signum, ends):
    """An object that outlives the handlers of the interpreter gets the second one."""
    script = f"""
class Late:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        kill(pid, {int(signum)})
try:
    with interrupts.deferred():
        send()
        interrupts.check()
except KeyboardInterrupt:
    sys.late = Late()
    {"interrupts.end()" if ends else "pass"}
    sys.exit(interrupts.status())
"""
    assert run(script, signum).returncode == (128 + signum if ends else -signum)


@pytest.mark.parametrize("ends", [True, False])
def test_the_status_survives_an_exception_that_left_an_import(ends, tmp_path):
    """Classes that are made by exec make Python count the exception as unhandled."""
    (tmp_path / "interrupted.py").write_text(f"""
import signal, sys
from lossforge import interrupts
interrupts.install()
try:
    with interrupts.raising():
        exec("signal.raise_signal(signal.SIGTERM)")
except KeyboardInterrupt:
    {"interrupts.end()" if ends else "pass"}
    sys.exit(interrupts.status())
""")
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, timeout=300)
    assert done.returncode == (143 if ends else -signal.SIGINT)

"""Random signals at random moments, on the real command line and on its workers.

One problem is one life of a store: `train` or `bench` with two workers is started, a signal is sent
to it or to one of its workers, and the same command is repeated until it has finished. The records
and the model that `train` leaves are then those of an undisturbed store, to the byte. Needs the
/proc and the subreapers of Linux.

Importing torch takes seconds. Most commands are therefore forks of this process, in which
everything is imported, and so are their workers; one in `REAL` is a process of its own.
"""

import ctypes
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from lossforge import __main__ as command_line
from lossforge import interrupts
from lossforge.benchmark import pool, worker

SIZE = 1000
REAL = 12
DEADLINE = 150.0  # seconds for anything, on a machine that has other things to do
ORPHANED = 30.0  # seconds in which workers notice that their parent was killed
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: processes whose parent has died become our children
RESULTS = ("record.json", "model.json", "model.safetensors")  # the same bytes in every store
KEPT = {"spec.json", "about.json", "metrics.jsonl", *RESULTS}
STATUSES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
DEADLY = {signal.SIGKILL: -signal.SIGKILL, signal.SIGUSR1: -signal.SIGUSR1}
HARMLESS = (signal.SIGSTOP, signal.SIGPIPE)  # a stopped process is continued
TRAINING = {"epochs": 6, "batch_size": 50, "lr": 0.1}
GRID = """
name = "tiny"
data = "digits"
subset = 200
model = "mlp"
model_options = {hidden = [16]}
noise = ["clean", "symmetric:0.4"]
losses = ["GCE"]
seeds = [0, 1]
training = {epochs = 6, batch_size = 50, lr = 0.1}
"""


@dataclass(frozen=True)
class _Story:
    """What happens to a store, drawn from the seed."""

    command: str
    real: bool
    signum: signal.Signals
    on_worker: bool
    moment: float  # of the signal, as a share of the command's time
    pause: float  # until a second signal, or until a stopped process is continued
    twice: bool

    def __str__(self) -> str:
        target = "worker of " if self.on_worker else ""
        twice, real = " twice" * self.twice, "real " * self.real
        return f"{self.signum.name}{twice} on {target}{real}{self.command} at {self.moment:.3f}"

    @classmethod
    def draw(cls, seed: int) -> "_Story":
        chance = random.Random(f"signals {seed}")
        command = chance.choice(["train", "bench", "bench"])
        signum = chance.choice([*STATUSES, *STATUSES, *DEADLY, *HARMLESS])
        return cls(
            command=command,
            real=chance.randrange(REAL) == 0,
            signum=signum,
            on_worker=command == "bench" and chance.random() < 0.5,
            moment=chance.random(),
            pause=chance.uniform(0.0, 0.3),
            twice=signum in STATUSES and chance.random() < 0.15,
        )


def attack(seed: int) -> list[str]:
    """Send a signal, finish the store, and compare it with an undisturbed one."""
    story = _Story.draw(seed)
    folder = Path(tempfile.mkdtemp(prefix="lossforge-signals-"))
    try:
        found = _disturb(story, folder) + _finish(story, folder)
    finally:
        _end_children()
        shutil.rmtree(folder, ignore_errors=True)
    return [f"{story}: {line}" for line in found]


def _disturb(story: _Story, folder: Path) -> list[str]:
    """Start a command and send the signal; return what is wrong when the command has ended."""
    duration, results = _undisturbed(story.command)
    pid = _start(story.command, folder, real=story.real)
    _wait_until(lambda: _handles_signals(pid))
    time.sleep(story.moment * (duration + (4.0 if story.real else 0.0)))
    target = _worker_of(pid) if story.on_worker else pid
    if target is not None:
        _send(target, story)
    expected = {0 if story.on_worker else {**STATUSES, **DEADLY}.get(story.signum, 0)}
    if _results(folder) == results:
        expected.add(0)  # it was faster than the signal
    status = _wait(pid)
    orderly = status == STATUSES.get(story.signum) and not (story.on_worker or story.twice)
    found, said = [], (folder / "said").read_text()
    if status not in expected:
        found.append(f"exit status {status}, expected {expected}; it said {said!r}")
    if status == 0 and _results(folder) != results:
        found.append("exit status 0, but not all results are there and the same")
    if "Traceback" in said or "failed" in said:
        found.append(f"it said {said!r}")
    if orderly and (claims := [str(path) for path in folder.glob("store/*/claim.*")]):
        found.append(f"claims are left: {claims}")
    if not _have_ended(0.0 if orderly else ORPHANED):
        found.append(f"processes are left behind after exit status {status}")
    return found


def _finish(story: _Story, folder: Path) -> list[str]:
    """Repeat the command; return what is wrong with the store."""
    start = time.monotonic()
    status = _wait(_start(story.command, folder))
    if status != 0:
        return [f"repeated, it ends with {status} and {(folder / 'said').read_text()!r}"]
    found, (usual, results) = [], _undisturbed(story.command)
    if (seconds := time.monotonic() - start) > usual + 45:
        found.append(f"repeated, it took {seconds:.0f} s: a claim was in the way")
    if _results(folder) != results:
        found.append("the results are not those of an undisturbed store")
    for path in (folder / "store").glob("*/*"):
        if path.name not in KEPT and not path.name.startswith("."):
            found.append(f"{path.parent.name}/{path.name} is left")
    return found


@functools.cache
def _undisturbed(command: str) -> tuple[float, dict[str, bytes]]:
    """How long a command takes, and its results; before that, all imports."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    os.environ |= {"LOSSFORGE_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    _import_everything()
    with tempfile.TemporaryDirectory() as name:
        start = time.monotonic()
        status = _wait(_start(command, Path(name)))
        if status != 0:
            raise RuntimeError(f"{command} ends with {status}: {(Path(name) / 'said').read_text()}")
        return time.monotonic() - start, _results(Path(name))


def _results(folder: Path) -> dict[str, bytes]:
    """The records of a store, and the models of runs that keep one."""
    found = (path for name in RESULTS for path in folder.glob(f"store/*/{name}"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _words(command: str, folder: Path) -> list[str]:
    store = f"--store={folder / 'store'}"
    if command == "bench":
        grid = folder / "grid.toml"
        grid.write_text(GRID)
        return ["bench", str(grid), store, "--workers=2"]
    settings = ["subset=200", 'model_options={"hidden":[16]}']
    settings += [f"{key}={value}" for key, value in TRAINING.items()]
    return [
        "train",
        store,
        "--noise=symmetric:0.4",
        "--loss=GCE",
        *(f"--set={s}" for s in settings),
    ]


# Processes


def _start(command: str, folder: Path, *, real: bool = False) -> int:
    """Start a command in a session of its own; it writes to the file `said`."""
    words = _words(command, folder)

    def run() -> NoReturn:
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        _redirect(os.open(os.devnull, os.O_RDONLY), said)
        if real:
            os.execv(sys.executable, [sys.executable, "-m", "lossforge", *words])
        pool.subprocess = SimpleNamespace(  # type: ignore[assignment]
            Popen=_Forked,
            PIPE=subprocess.PIPE,
            STDOUT=subprocess.STDOUT,
            TimeoutExpired=subprocess.TimeoutExpired,
        )
        _call(command_line.main, ["lossforge", *words])

    return _fork(run)


def _fork(run: Callable[[], NoReturn]) -> int:
    """Fork; the child has the usual signal handlers before a signal can reach it."""
    sys.stdout.flush()
    everything = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for one in (signal.SIGINT, *STATUSES):
                signal.signal(one, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            interrupts._received, interrupts._reaction = None, interrupts._Reaction.EXIT
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            run()
        finally:
            os._exit(70)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _call(main: Callable[[], None], words: list[str]) -> NoReturn:
    """End this fork as Python ends a program."""
    sys.argv, status = words, 0
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _redirect(stdin: int, out: int) -> None:
    for number, handle in ((0, stdin), (1, out), (2, out)):
        os.dup2(handle, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


class _Forked:
    """Stands in for the `subprocess.Popen` of a worker: a fork, which has everything imported."""

    def __init__(self, command: list[str], *, stdin: Any, env: dict[str, str], **_: Any) -> None:
        reading, writing = os.pipe()

        def run() -> NoReturn:
            _redirect(stdin.fileno(), writing)
            os.close(reading)
            os.environ.update(env)
            _call(worker.main, command[2:])

        self.pid = _fork(run)
        os.close(writing)
        self.stdout = open(reading, errors="replace")  # noqa: SIM115
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = DEADLINE) -> int | None:
        if not _wait_until(lambda: self.poll() is not None, timeout):
            raise subprocess.TimeoutExpired("worker", timeout)
        return self.returncode

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _import_everything() -> None:
    """Do a grid in this process, whose imports the forks then have."""
    from lossforge.benchmark import execute, executors, grid, records  # noqa: F401
    from lossforge.cli import bench, train  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.toml"
        path.write_text(GRID)
        execute(Path(folder), grid.read_grid(str(path)).resolve()[0][0])


def _handles_signals(pid: int) -> bool:
    """Whether the command line has begun, or the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    caught = next((line.split()[1] for line in status.splitlines() if "SigCgt" in line), "0")
    ended = "\nState:\tZ" in status
    return ended or bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def _worker_of(pid: int) -> int | None:
    """A worker of a command, as soon as it has one; None if it ends before."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        try:
            if found := children.read_text().split():
                return int(found[-1])
        except OSError:
            return None
        if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return None
        time.sleep(0.002)
    return None


def _send(pid: int, story: _Story) -> None:
    with suppress(ProcessLookupError):  # it had ended
        os.kill(pid, story.signum)
        if story.signum == signal.SIGSTOP or story.twice:
            time.sleep(story.pause)
            os.kill(pid, story.signum if story.twice else signal.SIGCONT)


def _wait(pid: int) -> int | None:
    """The exit status, negative for a signal; None, after a kill, if it did not end."""
    found: list[int] = []

    def has_ended() -> bool:
        ended, status = os.waitpid(pid, os.WNOHANG)
        found.extend([os.waitstatus_to_exitcode(status)] if ended else [])
        return bool(ended)

    if _wait_until(has_ended):
        return found[0]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _have_ended(seconds: float) -> bool:
    """Whether no process that a command started is left, after at most so many seconds."""

    def reaped() -> bool:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        return False

    return _wait_until(reaped, seconds)


def _end_children() -> None:
    """Kill what a faulty command has left behind."""
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    _have_ended(DEADLINE)


def _wait_until(condition: Callable[[], bool], seconds: float = DEADLINE) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.002)
    return True

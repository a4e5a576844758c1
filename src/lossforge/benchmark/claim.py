"""One worker per run, by files alone: any number of machines may share a folder.

Claims are numbered, and the highest number is valid. If that claim is stale, the worker that
creates the next number has the run: of several that find it stale at once, exactly one. A stale
claim stays until the run is finished; reusing a number would let two workers claim it.
"""

import errno
import os
import re
import socket
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..files import file_system_time

HEARTBEAT = 5.0
STALE = 60.0  # seconds without a heartbeat after which a claim is stale, on whatever machine
NUMBER = re.compile("[1-9][0-9]*")
MAX_BYTES = 1000  # of a claim's content
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def claimed(path: Path, *, heartbeat: float = HEARTBEAT, stale: float = STALE) -> Iterator[bool]:
    """Try to claim a run; yield whether that succeeded, and release the claim at the end.

    While a claim is held, a thread renews its time. A claim that was not renewed for `stale`
    seconds, or whose process no longer exists on this machine, is stale. If its owner is alive
    after all (a suspended machine), both do the same work and write the same results, each file in
    one step.

    Args:
        path: The name of the claims, to which their numbers are added.
        heartbeat: Seconds between renewals.
        stale: Seconds without renewal after which a claim is stale.
    """
    mine = _take(path, stale)
    if mine is None:
        yield False
        return
    try:
        with keep_alive(lambda: os.utime(mine), heartbeat):
            yield True
    finally:
        with suppress(OSError):  # the next worker finds it stale
            mine.unlink()


@contextmanager
def keep_alive(renew: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call `renew` every so many seconds, in a thread; errors are ignored until the next call."""
    finished = threading.Event()

    def beat() -> None:
        while not finished.wait(seconds):
            with suppress(Exception):  # the next call may succeed
                renew()

    thread = threading.Thread(target=beat, daemon=True)
    try:
        thread.start()
        yield
    finally:
        finished.set()
        if thread.ident is not None:
            thread.join()


def is_alive(path: Path, *, stale: float = STALE) -> bool:
    """Whether a run is claimed by a live worker."""
    number = _highest(path)
    if not number:
        return False
    now = file_system_time(path.parent)
    return not _is_stale(_numbered(path, number), stale, time.time() if now is None else now)


def _take(path: Path, stale: float) -> Path | None:
    """Create the next claim with its content in one step, unless the last one is valid."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.write_text(f"{place()} {os.getpid()}")
        now = draft.stat().st_mtime  # by the clock of the file system, as for claims
        number = _highest(path)
        if number and not _is_stale(_numbered(path, number), stale, now):
            return None
        mine = _numbered(path, number + 1)
        _link(draft, mine)
        return mine
    except FileExistsError:
        return None
    except OSError as error:
        raise OSError(
            error.errno, f"cannot claim: {os.strerror(error.errno or 0)}", str(path)
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _link(draft: Path, mine: Path) -> None:
    """Give a file a second name, unless that name exists."""
    try:
        os.link(draft, mine)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # The file system has no links. A crash before the content is written leaves a claim
        # without an owner, which becomes stale with time.
        with mine.open("x") as stream:
            stream.write(draft.read_text())


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _highest(path: Path) -> int:
    suffixes = [claim.suffix[1:] for claim in path.parent.glob(f"{path.name}.*")]
    return max((int(suffix) for suffix in suffixes if NUMBER.fullmatch(suffix)), default=0)


def _is_stale(claim: Path, stale: float, now: float) -> bool:
    """Check whether a claim is out of date, or its process has ended.

    A live owner renews its claim by the clock of the file system: one that is dated in the future
    is as stale as an old one.
    """
    try:
        found = claim.lstat()
        owner = _read_owner(claim) if stat.S_ISREG(found.st_mode) else None
    except FileNotFoundError:
        return False  # just released; the next attempt finds it free
    has_ended = owner is not None and owner[0] == place() and not process_exists(owner[1])
    if abs(now - found.st_mtime) > stale or has_ended:
        return os.path.lexists(claim)  # or its owner released it before it ended
    return False


def _read_owner(claim: Path) -> tuple[str, int] | None:
    """Read the place and the process of a claim's owner; None if the content is something else."""
    try:
        with claim.open("rb") as stream:
            content = stream.read(MAX_BYTES)
    except PermissionError:
        return None
    where, _, pid = content.decode(errors="replace").strip().rpartition(" ")
    return (where, int(pid)) if NUMBER.fullmatch(pid) else None


def place() -> str:
    """The scope of process numbers: a machine, and a container on it."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def process_exists(pid: int) -> bool:
    """Whether a process of that number exists on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True

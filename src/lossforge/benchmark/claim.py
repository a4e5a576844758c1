"""One worker per run, by files alone: any number of machines may share a folder.

Claims are numbered, and the highest number holds. Where it is dead, the next number is for the
first who creates it: of several that find it dead at once, exactly one. A dead claim stays until
the run is finished, for a number that were free again could be won twice.
"""

import errno
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..files import file_system_time

HEARTBEAT = 5.0
STALE = 60.0  # a claim whose heart has not beaten this long is dead, whatever machine it was on
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def claimed(path: Path, *, heartbeat: float = HEARTBEAT, stale: float = STALE) -> Iterator[bool]:
    """Try to claim a run; yields whether it is ours, and lets it go at the end.

    While a claim is held, a thread renews its time. One that was not renewed for `stale` seconds,
    or whose process is gone from this machine, is dead. Should its owner live on after all (a
    suspended machine), both do the same work and write the same results, each file in one step.

    Args:
        path: The name of the claims, to which their numbers are added.
        heartbeat: Seconds between renewals.
        stale: Seconds without renewal after which a claim is dead.
    """
    mine = _take(path, stale)
    if mine is None:
        yield False
        return
    finished = threading.Event()
    beat = threading.Thread(target=_beat, args=(mine, finished, heartbeat), daemon=True)
    try:
        beat.start()
        yield True
    finally:
        finished.set()
        beat.join()
        with suppress(OSError):  # whoever comes next finds it dead
            mine.unlink()


def is_alive(path: Path, *, stale: float = STALE) -> bool:
    """Whether somebody works under this claim."""
    number = _highest(path)
    if not number:
        return False
    now = file_system_time(path.parent)
    return not _is_dead(_numbered(path, number), stale, time.time() if now is None else now)


def _take(path: Path, stale: float) -> Path | None:
    """Create the next claim with its content in one step, unless the last one is alive."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.write_text(f"{place()} {os.getpid()}")
        now = draft.stat().st_mtime  # by the clock of the file system, as the time of a claim is
        number = _highest(path)
        if number and not _is_dead(_numbered(path, number), stale, now):
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
    """Give a file a second name, if that is not taken."""
    try:
        os.link(draft, mine)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # The file system has no links. A crash before the content is written leaves a claim of
        # nobody, which is dead when its time is.
        with mine.open("x") as stream:
            stream.write(draft.read_text())


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _highest(path: Path) -> int:
    suffixes = [claim.suffix[1:] for claim in path.parent.glob(f"{path.name}.*")]
    return max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=0)


def _is_dead(claim: Path, stale: float, now: float) -> bool:
    try:
        age = now - claim.stat().st_mtime
        *where, pid = claim.read_text().split() or [""]
    except FileNotFoundError:
        return False  # it was let go just now, and whoever looks again finds it free
    here = where == place().split() and pid.isdecimal()
    if age > stale or (here and not process_exists(int(pid))):
        return claim.exists()  # or its owner let it go first, and then ended
    return False


def place() -> str:
    """Where process numbers mean the same: a machine, and on it a container."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def process_exists(pid: int) -> bool:
    """Whether this machine has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _beat(claim: Path, finished: threading.Event, heartbeat: float) -> None:
    while not finished.wait(heartbeat):
        with suppress(OSError):  # the next beat may pass where this one did not
            os.utime(claim)

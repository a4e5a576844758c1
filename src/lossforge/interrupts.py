"""Signals that ask a process to stop, obeyed where stopping is safe.

A handler that raises may do so inside an import, a destructor or the start of a thread, where the
exception is lost or becomes another error. After `install`, which the command line and its workers
call and the library never does, a signal is noted, and what follows depends on where it comes:

========================  ===================================================================
in general                the process exits at once: there is nothing to put in order
inside `raising`          KeyboardInterrupt, as Python raises it
inside `deferred`         nothing; the next call of `check` raises KeyboardInterrupt
========================  ===================================================================

A Ctrl-C after any of these signals ends the process wherever it comes.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from types import FrameType

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide it


class _Reaction(Enum):
    EXIT, RAISE, DEFER = range(3)


# A process has one set of signal handlers, so this module has one state.
_reaction = _Reaction.EXIT
_received: int | None = None


def install(*, obey: Collection[int] = ()) -> None:
    """Handle the signals in this process; one that it was started to ignore (nohup) stays so.

    Args:
        obey: Signals to handle even then.
    """
    for one in SIGNALS:
        if one in obey or signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _note)


def check() -> None:
    """Raise KeyboardInterrupt if a signal has come: a point where it is safe to stop."""
    if _received is not None:
        raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Check whether a signal has come."""
    return _received is not None


def status() -> int:
    """Return the exit status of an interrupted process: 128 and the number of the signal."""
    return 128 + (signal.SIGINT if _received is None else _received)


def end() -> None:
    """Ignore further requests to stop, but Ctrl-C: the process is ending, with its status.

    Python restores the default handlers before it ends, and a second signal would then kill it.
    """
    # A KeyboardInterrupt that leaves a call of exec, as of an import that makes a dataclass, counts
    # as unhandled: `python -m` then ends by SIGINT whatever its status, until the next such call.
    exec("")  # noqa: S102
    for one in SIGNALS:
        # a command called by another program leaves that program's handlers alone
        if one != signal.SIGINT and signal.getsignal(one) is _note:
            signal.signal(one, signal.SIG_IGN)


@contextmanager
def raising() -> Iterator[None]:
    """Let a signal raise KeyboardInterrupt at once."""
    with _reacting(_Reaction.RAISE):
        yield


@contextmanager
def deferred() -> Iterator[None]:
    """Let a signal wait for the next `check`, or for the end of the block."""
    with _reacting(_Reaction.DEFER):
        yield
    if _received is not None:
        _react()


@contextmanager
def _reacting(reaction: _Reaction) -> Iterator[None]:
    global _reaction
    before, _reaction = _reaction, reaction
    try:
        yield
    finally:
        _reaction = before


def _note(signum: int, frame: FrameType | None) -> None:
    global _received
    if signum == signal.SIGINT and _received is not None:
        _exit()
    _received = signum if _received is None else _received
    _react()


def _react() -> None:
    if _reaction is _Reaction.EXIT:
        _exit()
    if _reaction is _Reaction.RAISE:
        raise KeyboardInterrupt


def _exit() -> None:
    with suppress(OSError, AttributeError):  # stderr may be closed
        terminal = sys.stderr.isatty()
        os.write(2, (SHOW_CURSOR if terminal else b"") + b"interrupted\n")
    os._exit(status())

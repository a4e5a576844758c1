"""Writing files so that a crash at any moment leaves the old content or the new, whole."""

import errno
import os
import re
import tempfile
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_DRAFT = re.compile(r"\.(.+)\.[0-9a-f]{32}\.part", re.DOTALL)


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace a file's content in one step.

    The content goes to a temporary file beside it, which then takes its name. A failure (a full
    disk, a folder that may not be written) names the file and leaves what was there.

    Args:
        path: The file.
        content: All of its new content.
        durable: Whether the content is on disk before this returns, so that it outlives a crash
            of the machine and not only of the process.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        if durable:
            _flush_folder(path.parent)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot write: {os.strerror(error.errno or 0)}", str(path)
        ) from error
    finally:
        with suppress(OSError):  # a read-only file system refuses even to remove what is not there
            temporary.unlink()


def check_not_read(out: Path, inputs: Iterable[Path]) -> None:
    """Raise ValueError if writing a file would replace one that the user gave to read."""
    for one in inputs:
        if out.exists() and one.exists() and out.samefile(one):
            raise ValueError(f"out must not be a file that is read, got {out}")


def draft_of(path: Path) -> str | None:
    """Return the name of the file whose unfinished content a killed process left here, if so."""
    found = _DRAFT.fullmatch(path.name)
    return found[1] if found else None


def _flush_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
            raise
    finally:
        os.close(handle)


def file_system_time(folder: Path) -> float | None:
    """Return the time by the clock that dates a folder's files, which may be another machine's."""
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            return os.fstat(stream.fileno()).st_mtime
    except OSError:
        return None  # a folder that may not be written

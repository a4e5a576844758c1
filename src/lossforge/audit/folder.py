"""The folder of an audit: its default, the check before the work, and its files."""

import json
import shlex
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..data.source import PathLike
from ..files import write_atomically
from ..report.page import audit_page
from ..text import folder_name
from .findings import Audit
from .kept import check_place
from .subject import Subject

PAGE = "index.html"
PICTURES = 20_000_000  # characters of images on the page; the suspects after them have none
FINDINGS = "audit.json"
FILES = (PAGE, "suspects.csv", "transition.csv", FINDINGS)


def default_folder(data: PathLike) -> Path:
    """Return the folder for the audit of some data, `runs/audit/NAME`."""
    return Path("runs/audit") / folder_name(Path(data).resolve().name)


def check_folder(folder: PathLike) -> None:
    """Raise unless the files of an audit can be written to a folder; nothing is left there.

    Args:
        folder: It need not exist; the nearest existing folder above it must then be writable.
    """
    path = Path(folder).absolute()
    there = next(place for place in (path, *path.parents) if place.exists())
    if not there.is_dir():
        raise ValueError(f"the audit must be written to a folder, {str(there)!r} is a file")
    for name in FILES:
        if (path / name).is_dir():
            raise ValueError(f"{str(path / name)!r} must be a file or absent, it is a folder")
    foreign = [path / name for name in FILES if (path / name).exists()]
    if foreign and not (path / FINDINGS).exists():
        raise ValueError(
            f"{str(foreign[0])!r} is not from an audit, which has {FINDINGS} beside it; "
            "write the audit to another folder"
        )
    check_place(path)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", str(there)) from None


def write_audit(
    found: Audit,
    folder: Path,
    command: str,
    *,
    on_picture: Callable[[int, int], object] | None = None,
) -> Path:
    """Write the files of an audit, and return the page.

    Args:
        found: The findings.
        folder: Where to write, created if missing.
        command: The command that repeats the audit, shown on the page.
        on_picture: Called as images of suspects are read, with their number and that of suspects.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plain = found.to_dict()
    cleaning = _cleaning(found.subject, folder)
    pictures = _pictures(found, on_picture or (lambda done, total: None))
    page = audit_page(plain, command=command, pictures=pictures, cleaning=cleaning)
    contents = (page, found.suspects_csv(), found.transition_csv(), json.dumps(plain) + "\n")
    # the findings first: files without them count as the user's own
    for name, content in reversed([*zip(FILES, contents, strict=True)]):
        write_atomically(folder / name, content.encode())
    return folder / PAGE


def _pictures(found: Audit, report: Callable[[int, int], object]) -> dict[int, str]:
    """Return the images of the suspects on the page; one that has gone meanwhile is left out."""
    images, length = {}, 0
    for one in found.suspects:
        with suppress(OSError, ValueError):
            image = found.subject.picture(one.index)
            if image is not None:
                images[one.index] = image
                length += len(image)
                report(len(images), len(found.suspects))
        if length > PICTURES:
            break
    return images


def _cleaning(subject: Subject, folder: Path) -> str:
    """Return the command that applies exported decisions; nothing for data it does not take."""
    if subject.path is None:
        return ""
    name = subject.path.resolve()
    words = ["lossforge", "clean", str(subject.path), "--audit", str(folder)]
    words += [
        "--decisions",
        "decisions.csv",
        "--relabel",
        "--out",
        f"{name.stem}-clean{name.suffix}",
    ]
    return shlex.join(words)

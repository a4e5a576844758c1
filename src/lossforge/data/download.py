"""Downloading and unpacking, with nothing of the user's overwritten."""

import hashlib
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import extra


@dataclass(frozen=True)
class File:
    """One file of a data set as its authors distribute it.

    Args:
        path: Where it lies below the data set's folder.
        checksum: "md5:..." or "sha256:..."; empty where none is known.
        url: Where it can be downloaded, if it can.
    """

    path: str
    checksum: str = ""
    url: str = ""


def checksum_of(path: Path, like: str) -> str:
    """The checksum of a file, by the algorithm another one names."""
    algorithm, _, _ = like.partition(":")
    with path.open("rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def download(file: File, path: Path) -> Path:
    """Download one file, checked, with a progress bar; one that is there already is kept.

    A file that is there with another checksum is the user's: it is neither used nor replaced.
    """
    if path.exists():
        if file.checksum and (found := checksum_of(path, file.checksum)) != file.checksum:
            raise ValueError(
                f"{path} is there, but its checksum is {found}, expected {file.checksum}; "
                "move it away to download it anew"
            )
        return path
    pooch = extra("pooch", "bench")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pooch.retrieve(
            file.url,
            known_hash=file.checksum or None,
            fname=path.name,
            path=path.parent,
            progressbar=True,
        )
    except OSError as error:
        raise OSError(
            f"{file.url} cannot be downloaded ({type(error).__name__}); try again, or save it "
            f"yourself as {path}"
        ) from error
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Extract a tar archive into a folder, whole or not at all.

    Members that would land outside the folder, or link there, are refused, and what is in the
    folder already is not overwritten.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as workspace:
        inside = Path(workspace)
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(inside, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise ValueError(f"{archive} cannot be unpacked: {error}") from error
        made = sorted(inside.iterdir())
        present = [str(folder / item.name) for item in made if (folder / item.name).exists()]
        if present:
            raise FileExistsError(
                f"{', '.join(present)} is there already; move it away to unpack {archive.name}"
            )
        for item in made:
            shutil.move(item, folder / item.name)

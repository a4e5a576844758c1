"""Where a data set comes from: its folder on disk, its files, downloading them, how it is read."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from ..errors import extra
from .dataset import Dataset, Split

PathLike = str | os.PathLike[str]
VARIABLE = "LOSSFORGE_DATA"


def roots(data_dir: PathLike | None = None) -> list[Path]:
    """List the folders to search: `data_dir`, else those of LOSSFORGE_DATA, else the user's cache.

    LOSSFORGE_DATA may name several, separated as in PATH; downloads go to the first.
    """
    if data_dir is not None:
        return [Path(data_dir)]
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return named or [user_cache()]


def user_cache() -> Path:
    """Return the user's cache of this package."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lossforge"


def candidates(name: str, *parts: str, data_dir: PathLike | None = None) -> list[Path]:
    """List the paths that `parts` of a data set may have: in its folder, or directly in a root."""
    found = []
    for root in roots(data_dir):
        found += [root.joinpath(name, *parts), root.joinpath(*parts)]
        if root.name == parts[0]:
            found.append(root.joinpath(*parts[1:]))
    return found


def existing(name: str, *parts: str, data_dir: PathLike | None = None) -> Path | None:
    """Return the first of the candidates that exists, if one does."""
    places = candidates(name, *parts, data_dir=data_dir)
    return next((place for place in places if place.exists()), None)


def locate(name: str, *parts: str, data_dir: PathLike | None = None) -> Path:
    """Return the first of the candidates that exists, or raise an error with the folders searched.

    Args:
        name: The data set, which is also the name of its folder.
        parts: The path of the file or folder below that.
        data_dir: The only folder to search, instead of the usual ones.
    """
    path = existing(name, *parts, data_dir=data_dir)
    if path is not None:
        return path
    places = " or ".join(str(root) for root in roots(data_dir))
    raise FileNotFoundError(
        f"{name}: no {os.path.join(*parts)} in {places}; `lossforge data doctor {name}` shows the "
        f"expected layout, --data-dir or {VARIABLE} names another folder"
    )


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder that of the names and hashes of its files."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    whole = hashlib.sha256()
    for file in files_below(path):
        if not file.name.startswith("."):
            name = os.fsencode(file.relative_to(path).as_posix())  # it need not be UTF-8
            whole.update(name + f"\0{content_hash(file)}\n".encode())
    return whole.hexdigest()


def files_below(folder: Path) -> list[Path]:
    """Return all files below a folder, those of linked folders too, in the order of their paths."""
    return sorted(_walk(folder, frozenset()))


def _walk(folder: Path, above: frozenset[str]) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in above:  # a link to a folder it lies in
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _walk(path, above | {real})
        elif path.is_file():
            yield path


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
    """Compute the checksum of a file, by the algorithm that `like` names."""
    algorithm, _, _ = like.partition(":")
    with path.open("rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def download(file: File, path: Path) -> Path:
    """Download one file with a progress bar and check it; keep one that exists already.

    An existing file with another checksum is neither used nor replaced.
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


Labels = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Source:
    """One data set, or one set of labels for another.

    Args:
        name: Its name, which is also that of its folder.
        summary: One line for the list.
        num_classes: Number of classes; 0 where its parts differ in that.
        load: Reads it; None where it is not a data set of its own.
        splits: Reads its parts for the doctor; by default those of `load`.
        labels: For label files: reads sets of given labels, with the true ones if they are known.
        counts: Number of samples of each part when complete.
        layout: The files as their authors lay them out; empty for data that need none.
        files: The files worth checking one by one.
        archive: An archive of all of `files`.
        obtain: How to get what `fetch` cannot download.
        terms: Licence or terms of use.
        class_map: The class map that its asymmetric noise follows, see `lossforge.noise.NoiseSpec`.
        human_labels: Names of the sets of human labels that are known for it.
        instance_rates: Rates of the frozen instance-dependent labels, if such are published.
    """

    name: str
    summary: str
    num_classes: int
    load: Callable[..., Dataset] | None = None
    splits: Callable[[PathLike | None], Mapping[str, Split]] | None = None
    labels: Callable[[PathLike | None], Mapping[str, Labels]] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    layout: str = ""
    files: tuple[File, ...] = ()
    archive: File | None = None
    obtain: str = ""
    terms: str = ""
    class_map: str = "next"
    human_labels: tuple[str, ...] = ()
    instance_rates: tuple[float, ...] = ()

    def parts(self, data_dir: PathLike | None) -> Mapping[str, Split]:
        """Read every part by name; label files have none."""
        if self.splits is not None:
            return self.splits(data_dir)
        if self.load is None:
            return {}
        return (self.load(data_dir=data_dir) if self.layout else self.load()).parts()

    def place(self, file: File, data_dir: PathLike | None) -> Path:
        """Return the path where a file is, or would be."""
        parts = Path(file.path).parts
        found = existing(self.name, *parts, data_dir=data_dir)
        return found or candidates(self.name, *parts, data_dir=data_dir)[0]

    def missing(self, data_dir: PathLike | None) -> list[Path]:
        """List the missing files; none if an archive of them exists."""
        if self.archive is not None and self.place(self.archive, data_dir).exists():
            return []
        places = [self.place(file, data_dir) for file in self.files]
        return [place for place in places if not place.exists()]

    def fetch(self, data_dir: PathLike | None) -> list[Path]:
        """Download its files and check them; keep those that exist."""
        if self.obtain:
            raise ValueError(
                f"{self.name} cannot be downloaded from here: {self.obtain}; "
                f"the layout is\n{self.layout}"
            )
        places = {self.place(file, data_dir): file for file in self.files}
        if self.archive is None:
            return [download(file, place) for place, file in places.items()]
        missing = [str(place) for place in places if not place.exists()]
        if missing:
            archive = download(self.archive, self.place(self.archive, data_dir))
            if len(missing) < len(places):
                raise FileExistsError(
                    f"part of {self.name} is there, {', '.join(missing)} is missing; move away "
                    f"what is there, and {archive} is unpacked"
                )
            unpack(archive, archive.parent)
        return [self.place(file, data_dir) for file in self.files]

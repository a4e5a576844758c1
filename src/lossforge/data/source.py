"""One data set: what it is, where it comes from, how it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from .dataset import Dataset, Split
from .download import File, download, unpack
from .roots import PathLike, candidates, existing

Labels = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Source:
    """One data set, or one set of labels for another.

    Args:
        name: Its name, and that of its folder.
        summary: One line for the list.
        num_classes: How many classes it has; 0 where its parts differ in that.
        load: Reads it; None where it is not a data set of its own.
        splits: Reads its parts for the doctor; those of `load` if not given.
        labels: For label files: reads sets of given labels, with the true ones if they are known.
        counts: How many samples each part has when complete.
        layout: The files as their authors lay them out; empty for data that need none.
        files: The files worth checking one by one.
        archive: An archive of all of `files`.
        obtain: How to get what cannot be downloaded from here.
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
        """Every part by name; label files have none."""
        if self.splits is not None:
            return self.splits(data_dir)
        if self.load is None:
            return {}
        return (self.load(data_dir=data_dir) if self.layout else self.load()).parts()

    def place(self, file: File, data_dir: PathLike | None) -> Path:
        """Where a file is, or would be."""
        parts = Path(file.path).parts
        found = existing(self.name, *parts, data_dir=data_dir)
        return found or candidates(self.name, *parts, data_dir=data_dir)[0]

    def missing(self, data_dir: PathLike | None) -> list[Path]:
        """The files that are not there; none if an archive of them is."""
        if self.archive is not None and self.place(self.archive, data_dir).exists():
            return []
        places = [self.place(file, data_dir) for file in self.files]
        return [place for place in places if not place.exists()]

    def fetch(self, data_dir: PathLike | None) -> list[Path]:
        """Download it with its checksums; what is there already is kept."""
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

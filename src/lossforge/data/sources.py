"""The list of all data sets: what each is, where it comes from, how it is read."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..noise import noise_rate
from . import clothing, ilsvrc, webvision
from .cifar import CIFAR10, CIFAR100, CifarLayout, load_cifar10, load_cifar100
from .dataset import Dataset, Split
from .download import File, download, unpack
from .embedded import breast_cancer, digits
from .human import RELEASES, human_labels, instance_labels
from .intents import banking77, clinc150
from .roots import candidates, roots

PathLike = str | os.PathLike[str]
RATES = (0.2, 0.4, 0.6)


@dataclass(frozen=True)
class Source:
    """One data set, or one set of labels for another.

    Args:
        name: Its name, and that of its folder.
        summary: One line for the list.
        load: Reads it; None where it is not a data set of its own.
        splits: Reads its parts for the doctor; those of `load` if not given.
        rates: For label files: reads the shares of wrong labels.
        counts: How many samples each part has when complete.
        layout: The files as their authors lay them out; empty for data that need none.
        files: The files worth checking one by one.
        archive: An archive of all of `files`.
        obtain: How to get what cannot be downloaded from here.
        terms: Licence or terms of use.
    """

    name: str
    summary: str
    load: Callable[..., Dataset] | None = None
    splits: Callable[[PathLike | None], Mapping[str, Split]] | None = None
    rates: Callable[[PathLike | None], Mapping[str, float]] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    layout: str = ""
    files: tuple[File, ...] = ()
    archive: File | None = None
    obtain: str = ""
    terms: str = ""

    def read(self, data_dir: PathLike | None) -> Mapping[str, Split]:
        """Every part by name; label files have none."""
        if self.splits is not None:
            return self.splits(data_dir)
        if self.load is None:
            return {}
        options = {"data_dir": data_dir} if self.layout else {}
        return self.load(**options).parts()

    def place(self, file: File, data_dir: PathLike | None) -> Path:
        """Where a file is, or would be."""
        places = candidates(self.name, *Path(file.path).parts, data_dir=data_dir)
        return next((place for place in places if place.exists()), places[0])


def _cifar(layout: CifarLayout, load: Callable[..., Dataset], summary: str) -> Source:
    inside = (*layout.train, layout.test, layout.meta)
    return Source(
        layout.name,
        summary,
        load,
        counts={"train": 50_000, "test": 10_000},
        layout="\n".join(
            [f"{layout.name}/{layout.folder}/", *(f"  {file.path}" for file in inside)]
        )
        + f"\nor {layout.name}/{layout.archive.path}",
        files=tuple(File(f"{layout.folder}/{file.path}", file.checksum) for file in inside),
        archive=layout.archive,
        terms="no licence stated; cite Krizhevsky 2009",
    )


def _human_rates(data_dir: PathLike | None) -> dict[str, float]:
    found = {}
    for name, release in RELEASES.items():
        for kind in release.keys:
            labels = human_labels(name, kind, data_dir=data_dir)
            found[f"{name} {kind}"] = noise_rate(labels.true, labels.given)
    return found


def _instance(name: Literal["cifar10", "cifar100"]) -> Source:
    def rates(data_dir: PathLike | None) -> dict[str, float]:
        # the official labels come with the human ones, so that no image need be there
        kind: Literal["noisy", "worst"] = "noisy" if name == "cifar100" else "worst"
        true = human_labels(name, kind, data_dir=data_dir).true
        return {
            f"{rate}": noise_rate(true, instance_labels(name, rate, data_dir=data_dir))
            for rate in RATES
        }

    files = [f"{name}_dependent_{rate}.json" for rate in RATES]
    return Source(
        f"{name}-idn",
        f"frozen instance-dependent labels of {name.upper()}, rates 0.2, 0.4, 0.6",
        rates=rates,
        layout="\n".join([f"{name}-idn/", *(f"  {file}" for file in files)]),
        files=tuple(File(file) for file in files),
        obtain="copy them from datasets/data_dependent/config of "
        "https://github.com/cswjl/eps-softmax",
    )


_CLINC = "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json"
_BANKING = (
    "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/"
)

SOURCES = {
    source.name: source
    for source in (
        Source(
            "digits",
            "8 x 8 digits of scikit-learn, 10 classes; no download",
            digits,
            counts={"train": 1438, "test": 359},
        ),
        Source(
            "digits-pairs",
            "two digits side by side, 100 classes; no download",
            lambda **options: digits(2, **options),
        ),
        Source(
            "digits-triples",
            "three digits side by side, 1,000 classes; no download",
            lambda **options: digits(3, **options),
        ),
        Source(
            "breast-cancer",
            "30 measurements of scikit-learn, 2 classes; no download",
            breast_cancer,
        ),
        _cifar(CIFAR10, load_cifar10, "60,000 images of 32 x 32 pixels, 10 classes"),
        _cifar(CIFAR100, load_cifar100, "60,000 images of 32 x 32 pixels, 100 classes"),
        Source(
            "cifar-n",
            "human labels of the CIFAR training images, CIFAR-10N and CIFAR-100N",
            rates=_human_rates,
            layout="cifar-n/\n  CIFAR-10_human.pt\n  CIFAR-100_human.pt\n"
            "or for each\n  CIFAR-10_human_ordered.npy and image_order_c10.npy",
            files=tuple(release.file for release in RELEASES.values()),
            terms="CC BY-NC 4.0; cite Wei et al., ICLR 2022",
        ),
        _instance("cifar10"),
        _instance("cifar100"),
        Source(
            "clinc150",
            "requests to an assistant, text, 150 intents",
            clinc150,
            counts={"train": 15_000, "test": 4_500, "val": 3_000},
            layout="clinc150/\n  data_full.json",
            files=(
                File(
                    "data_full.json",
                    "sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
                    _CLINC,
                ),
            ),
            terms="CC BY 3.0; cite Larson et al., EMNLP 2019",
        ),
        Source(
            "banking77",
            "questions to a bank, text, 77 intents",
            banking77,
            counts={"train": 10_003, "test": 3_080},
            layout="banking77/\n  train.csv   text,category\n  test.csv",
            files=(
                File(
                    "train.csv",
                    "sha256:b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
                    _BANKING + "train.csv",
                ),
                File(
                    "test.csv",
                    "sha256:d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
                    _BANKING + "test.csv",
                ),
            ),
            terms="CC BY 4.0; cite Casanueva et al., 2020",
        ),
        Source(
            "webvision",
            "mini WebVision 1.0: images found by Google, 50 classes",
            webvision.load,
            counts={"train": 65_944, "webvision": 2_500, "ilsvrc12": 2_500},
            layout=webvision.LAYOUT + "\n" + ilsvrc.LAYOUT,
            obtain="register and download the Google images, the validation images and the "
            "file lists of WebVision 1.0 at https://data.vision.ee.ethz.ch/cvl/webvision",
            terms="research use; cite Li et al., 2017",
        ),
        Source(
            "ilsvrc12",
            "ImageNet validation images of the 50 classes of mini WebVision",
            splits=lambda data_dir: {"val": ilsvrc.load(data_dir=data_dir)},
            counts={"val": 2_500},
            layout=ilsvrc.LAYOUT,
            obtain="register at https://image-net.org and download ILSVRC2012_img_val.tar, or "
            "take the ImageNet Object Localization Challenge from Kaggle",
            terms="research use; cite Russakovsky et al., 2015",
        ),
        Source(
            "clothing1m",
            "a million pictures of clothes labelled by the text around them, 14 classes",
            clothing.load,
            counts={"train": 1_000_000, "test": 10_526},
            layout=clothing.LAYOUT,
            obtain="ask the authors, see https://github.com/Cysu/noisy_label",
            terms="research use; cite Xiao et al., CVPR 2015",
        ),
    )
}


def find(name: str) -> Source:
    """The entry of a name, in any case."""
    try:
        return SOURCES[name.lower()]
    except KeyError:
        raise ValueError(f"unknown data {name!r}, known: {', '.join(SOURCES)}") from None


def load(name: str, *, data_dir: PathLike | None = None, **options: Any) -> Dataset:
    """Load a data set by name.

    Args:
        name: One of `names()`; "digits" and its relatives need no download.
        data_dir: Where to look, instead of the folders of LOSSFORGE_DATA or the user's cache.
        options: Handed to the function that reads it, such as `features` of the texts.

    Example:
        >>> load("digits").num_classes
        10
    """
    source = find(name)
    if source.load is None:
        raise ValueError(f"{source.name} is not a data set of its own: {source.summary}")
    if source.layout:
        options["data_dir"] = data_dir
    return source.load(**options)


def names() -> list[str]:
    """The names that `load` takes."""
    return [name for name, source in SOURCES.items() if source.load is not None]


def fetch(name: str, *, data_dir: PathLike | None = None) -> list[Path]:
    """Download a data set with its checksums; what is there already is kept.

    Returns:
        The files and folders that are now there, none for data that need no download.
    """
    source = find(name)
    folder = roots(data_dir)[0] / source.name
    if source.archive is not None:
        unpacked = folder / Path(source.files[0].path).parts[0]
        if not unpacked.exists():
            unpack(download(source.archive, folder), folder)
        return [unpacked]
    if any(not file.url for file in source.files) or (source.layout and not source.files):
        raise ValueError(
            f"{source.name} cannot be downloaded from here: {source.obtain}; "
            f"lay it out in {folder.parent} as\n{source.layout}"
        )
    return [download(file, folder) for file in source.files]

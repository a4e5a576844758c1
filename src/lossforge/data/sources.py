"""The list of all data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from ..errors import unknown
from . import clothing, ilsvrc, webvision
from .cifar import CIFAR10, CIFAR100, CifarLayout, load_cifar10, load_cifar100
from .dataset import Dataset
from .download import File
from .embedded import breast_cancer, digits
from .human import INSTANCE_RATES, RELEASES, human_labels, instance_labels
from .intents import banking77, clinc150
from .roots import PathLike
from .source import Labels, Source


def _cifar(
    layout: CifarLayout, summary: str, num_classes: int, load: Callable[..., Dataset]
) -> Source:
    inside = (*layout.train, layout.test, layout.meta)
    return Source(
        layout.name,
        summary,
        num_classes,
        load,
        counts={"train": 50_000, "test": 10_000},
        layout="\n".join(
            [f"{layout.name}/{layout.folder}/", *(f"  {file.path}" for file in inside)]
        )
        + f"\nor {layout.name}/{layout.archive.path}",
        files=tuple(File(f"{layout.folder}/{file.path}", file.checksum) for file in inside),
        archive=layout.archive,
        terms="no licence stated; cite Krizhevsky 2009",
        class_map=layout.name,
        human_labels=tuple(RELEASES[layout.name].keys),
        instance_rates=INSTANCE_RATES,
    )


def _human(data_dir: PathLike | None) -> dict[str, Labels]:
    return {
        f"{name} {kind}": human_labels(name, kind, data_dir=data_dir)  # type: ignore[arg-type]
        for name, release in RELEASES.items()
        for kind in release.keys
    }


def _instance(name: Literal["cifar10", "cifar100"]) -> Source:
    def labels(data_dir: PathLike | None) -> dict[str, Labels]:
        try:
            # the official labels come with the human ones, so that no image need be there
            kind: Literal["noisy", "worst"] = "noisy" if name == "cifar100" else "worst"
            true = human_labels(name, kind, data_dir=data_dir).true
        except FileNotFoundError:
            true = None
        return {
            str(rate): (instance_labels(name, rate, data_dir=data_dir), true)
            for rate in INSTANCE_RATES
        }

    files = [f"{name}_dependent_{rate}.json" for rate in INSTANCE_RATES]
    return Source(
        f"{name}-idn",
        f"frozen instance-dependent labels of {name.upper()}, rates 0.2, 0.4, 0.6",
        100 if name == "cifar100" else 10,
        labels=labels,
        layout="\n".join([f"{name}-idn/", *(f"  {file}" for file in files)]),
        files=tuple(File(file) for file in files),
        obtain="copy them from datasets/data_dependent/config of "
        "https://github.com/cswjl/eps-softmax",
    )


def _lists(*paths: str) -> tuple[File, ...]:
    return tuple(File(path) for path in paths)


# Neither text publishes checksums; these are of the files as we have them.
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
            10,
            digits,
            counts={"train": 1438, "test": 359},
            class_map="mnist",
        ),
        Source(
            "digits-pairs",
            "two digits side by side, 100 classes; no download",
            100,
            lambda **options: digits(2, **options),
        ),
        Source(
            "digits-triples",
            "three digits side by side, 1,000 classes; no download",
            1000,
            lambda **options: digits(3, **options),
        ),
        Source(
            "breast-cancer",
            "30 measurements of scikit-learn, 2 classes; no download",
            2,
            breast_cancer,
        ),
        _cifar(CIFAR10, "60,000 images of 32 x 32 pixels, 10 classes", 10, load_cifar10),
        _cifar(CIFAR100, "60,000 images of 32 x 32 pixels, 100 classes", 100, load_cifar100),
        Source(
            "cifar-n",
            "human labels of the CIFAR training images, CIFAR-10N and CIFAR-100N",
            0,
            labels=_human,
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
            150,
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
            77,
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
            50,
            webvision.load,
            counts={"train": 65_944, "webvision": 2_500, "ilsvrc12": 2_500},
            layout=webvision.LAYOUT + "\n" + ilsvrc.LAYOUT,
            files=_lists(
                "info/synsets.txt", "info/train_filelist_google.txt", "info/val_filelist.txt"
            ),
            obtain="register and download the Google images, the validation images and the "
            "file lists of WebVision 1.0 at https://data.vision.ee.ethz.ch/cvl/webvision",
            terms="research use; cite Li et al., 2017",
        ),
        Source(
            "ilsvrc12",
            "ImageNet validation images of the 50 classes of mini WebVision",
            50,
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
            14,
            clothing.load,
            lambda data_dir: clothing.load(clean_val=True, data_dir=data_dir).parts(),
            counts={"train": 1_000_000, "test": 10_526, "clean_val": 14_313},
            layout=clothing.LAYOUT,
            files=_lists(
                "category_names_eng.txt",
                "noisy_label_kv.txt",
                "clean_label_kv.txt",
                "noisy_train_key_list.txt",
                "clean_val_key_list.txt",
                "clean_test_key_list.txt",
            ),
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
        raise unknown("data set", name, SOURCES) from None


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
        The files that are now there, none for data that need no download.
    """
    return find(name).fetch(data_dir)

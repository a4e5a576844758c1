"""CIFAR-10 and CIFAR-100, from the official "python version"."""

import io
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .augment import CIFAR10_TRANSFORM, CIFAR100_TRANSFORM
from .dataset import Dataset, Split, Transform
from .human import INSTANCE_RATES, RELEASES
from .patches import with_patches
from .pickles import read_pickle
from .source import File, PathLike, Source, existing, locate


@dataclass(frozen=True)
class CifarLayout:
    """What the two releases call the same things."""

    name: str
    folder: str
    archive: File
    train: tuple[File, ...]
    test: File
    meta: File
    label_key: str
    names_key: str
    transform: Transform


def _file(path: str, md5: str) -> File:
    return File(path, f"md5:{md5}")


# Checksums of the archives are those on https://www.cs.toronto.edu/~kriz/cifar.html, those of
# the files inside are torchvision's (datasets/cifar.py).
CIFAR10 = CifarLayout(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive=File(
        "cifar-10-python.tar.gz",
        "md5:c58f30108f718f92721af3b95e74349a",
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    ),
    train=(
        _file("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        _file("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        _file("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        _file("data_batch_4", "634d18415352ddfa80567beed471001a"),
        _file("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    ),
    test=_file("test_batch", "40351d587109b95175f43aff81a1287e"),
    meta=_file("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    label_key="labels",
    names_key="label_names",
    transform=CIFAR10_TRANSFORM,
)
CIFAR100 = CifarLayout(
    name="cifar100",
    folder="cifar-100-python",
    archive=File(
        "cifar-100-python.tar.gz",
        "md5:eb9058c3a382ffc7106e4002c42a8d85",
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    ),
    train=(_file("train", "16019d7e3df5f24257cddd939b257f8d"),),
    test=_file("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    meta=_file("meta", "7973b15100ade9c7d40fb424638fde48"),
    label_key="fine_labels",
    names_key="fine_label_names",
    transform=CIFAR100_TRANSFORM,
)


def load_cifar10(*, features: str | None = None, data_dir: PathLike | None = None) -> Dataset:
    """CIFAR-10: 50,000 and 10,000 images of 32 x 32 pixels, 10 classes.

    Args:
        features: "patches" or "patches:ATOMS" for features in place of images, see `with_patches`.
        data_dir: The folder to search instead of the usual ones.

    References:
        Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    return with_patches(_load(CIFAR10, data_dir), features)


def load_cifar100(*, features: str | None = None, data_dir: PathLike | None = None) -> Dataset:
    """CIFAR-100: as CIFAR-10, with 100 classes in 20 superclasses."""
    return with_patches(_load(CIFAR100, data_dir), features)


def _load(layout: CifarLayout, data_dir: PathLike | None) -> Dataset:
    release = _read(layout, data_dir)
    names = release[layout.meta.path].get(layout.names_key)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise ValueError(f"{layout.name}: {layout.meta.path} must list {layout.names_key!r}")
    return Dataset(
        layout.name,
        tuple(name.decode() if isinstance(name, bytes) else name for name in names),
        _split(layout, {file.path: release[file.path] for file in layout.train}),
        {"test": _split(layout, {layout.test.path: release[layout.test.path]})},
        transform=layout.transform,
    )


def _read(layout: CifarLayout, data_dir: PathLike | None) -> dict[str, dict[str, Any]]:
    """Every file of a release by name, out of its folder or straight out of its archive."""
    source = existing(layout.name, layout.folder, data_dir=data_dir) or existing(
        layout.name, layout.archive.path, data_dir=data_dir
    )
    if source is None:
        source = locate(layout.name, layout.folder, data_dir=data_dir)
    names = [file.path for file in (*layout.train, layout.test, layout.meta)]
    contents = _of_folder(source, names) if source.is_dir() else _of_archive(source, names)
    release = {name: read_pickle(io.BytesIO(contents[name]), source / name) for name in names}
    for name, content in release.items():
        if not isinstance(content, dict):
            raise ValueError(
                f"{source / name} must hold a dictionary, got {type(content).__name__}"
            )
    return release


def _of_folder(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    missing = [str(folder / name) for name in names if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"missing: {', '.join(missing)}")
    return {name: (folder / name).read_bytes() for name in names}


def _of_archive(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member)  # None for anything that is not a file
                if stream is not None and Path(member.name).name in names:
                    contents[Path(member.name).name] = stream.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error, KeyError) as error:
        raise ValueError(f"{archive} cannot be read: {error}") from error
    missing = [name for name in names if name not in contents]
    if missing:
        raise FileNotFoundError(f"{archive} lacks {', '.join(missing)}")
    return contents


def _split(layout: CifarLayout, batches: dict[str, dict[str, Any]]) -> Split:
    """Join batches of flat pixels into images, (N, 3, 32, 32)."""
    for name, batch in batches.items():
        pixels, labels = batch.get("data"), batch.get(layout.label_key)
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
            raise ValueError(
                f"{layout.name}: {name} must hold 'data' (uint8) and {layout.label_key!r}, "
                f"it holds {', '.join(map(str, batch))}"
            )
        if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
            raise ValueError(
                f"{layout.name}: {layout.label_key!r} of {name} must be a list of whole numbers"
            )
        if pixels.ndim != 2 or pixels.shape != (len(labels), 3 * 32 * 32):
            raise ValueError(
                f"{layout.name}: {name} has {len(labels)} labels and pixels of shape "
                f"{pixels.shape}, expected ({len(labels)}, 3072)"
            )
    images = torch.from_numpy(np.concatenate([batch["data"] for batch in batches.values()]))
    labels = torch.tensor(
        [label for batch in batches.values() for label in batch[layout.label_key]]
    )
    return Split(images.view(-1, 3, 32, 32), labels, labels)


def _source(
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


SOURCES = (
    _source(CIFAR10, "60,000 images of 32 x 32 pixels, 10 classes", 10, load_cifar10),
    _source(CIFAR100, "60,000 images of 32 x 32 pixels, 100 classes", 100, load_cifar100),
)

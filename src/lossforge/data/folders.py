"""Users' own images: a folder of class folders."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator

from ..errors import check_integer
from .augment import IMAGENET_MEAN, IMAGENET_STD, FileTransform
from .dataset import Dataset, Split, stratify, subset
from .images import ImageFiles
from .patches import with_patches
from .source import PathLike

LAYOUT = """\
train/<class>/*.jpg ... and test/<class>/*.jpg ... (or val/, valid/, validation/), or only
<class>/*.jpg ..., of which a random part of each class becomes the test split"""
SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
TEST_NAMES = ("test", "val", "valid", "validation")


def load(
    path: PathLike,
    *,
    clean: bool = False,
    size: int = 224,
    test_fraction: float = 0.2,
    features: str | None = None,
    generator: Generator | None = None,
) -> Dataset:
    """Load a folder of class folders; the names of the folders, sorted, are the classes.

    Args:
        path: A folder with `train` and `test` (or `val`, `valid`, `validation`) folders of class
            folders, or a folder of class folders. Of several test folders each becomes a test
            split by its name; a single one is "test", whatever its name.
        clean: Whether the labels are known to be right, as when noise will be added. Those of a
            separate test folder always count as right.
        size: Height and width that images are resized to.
        test_fraction: The part of each class set aside for testing where there is no test folder.
        features: "patches" or "patches:ATOMS" for features in place of images, see `with_patches`;
            a size of 32 is meant for them.
        generator: Draws that part; only needed then.
    """
    root = Path(path)
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder; expected layout:\n{LAYOUT}")
    check_integer("size", size, 1)
    if folders := _test_folders(root):
        classes = _class_names(root / "train")
        train = _split(root / "train", classes, size)
        splits = {name: _split(folder, classes, size) for name, folder in folders.items()}
        tests = {name: replace(test, true=test.given) for name, test in splits.items()}
    else:
        classes = _class_names(root)
        train, test = _divide(_split(root, classes, size), test_fraction, generator)
        tests = {"test": replace(test, true=test.given if clean else None)}
    train = replace(train, true=train.given if clean else None)
    transform = FileTransform(IMAGENET_MEAN, IMAGENET_STD, size=size, resize=_before_crop(size))
    return with_patches(Dataset("folder", classes, train, tests, transform=transform), features)


def _test_folders(root: Path) -> dict[str, Path]:
    """The folders beside `train` by the names of their splits; none if all are class folders."""
    found = [name for name in TEST_NAMES if (root / name).is_dir()]
    has_train = (root / "train").is_dir()
    if has_train != bool(found):
        # Otherwise "train" and "dev" would pass as classes.
        there = "train" if has_train else ", ".join(found)
        known = f"a test folder ({', '.join(TEST_NAMES)})" if has_train else "train"
        raise ValueError(f"{root} must have {known} beside {there}; expected layout:\n{LAYOUT}")
    return {name if len(found) > 1 else "test": root / name for name in found}


def _before_crop(size: int) -> int:
    return round(size * 256 / 224)


def _class_names(root: Path) -> tuple[str, ...]:
    names = sorted(
        child.name for child in root.iterdir() if child.is_dir() and not child.name.startswith(".")
    )
    if len(names) < 2:
        found = ", ".join(names) or "none"
        raise ValueError(f"{root} must hold at least 2 class folders, got {found}\n{LAYOUT}")
    return tuple(names)


def _split(root: Path, classes: tuple[str, ...], size: int) -> Split:
    unknown = sorted(set(_class_names(root)) - set(classes))
    if unknown:
        raise ValueError(f"{root} has classes that train has not: {', '.join(unknown)}")
    names: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        found = sorted(_images(root, root / name)) if (root / name).is_dir() else []
        if not found:
            raise ValueError(f"class {name!r} has no images in {root / name}")
        names += found
        labels += [label] * len(found)
    files = ImageFiles.under(root, names, size=size, resize=_before_crop(size))
    return Split(files, torch.tensor(labels))


def image_files(path: Path, size: int) -> ImageFiles:
    """Return an image, or all images below a folder in the order of their names."""
    if path.is_dir():
        root, names = path, sorted(_images(path, path))
    else:
        root, names = path.parent, [path.name]
    if not names or not path.exists():
        raise FileNotFoundError(f"{path}: no image there ({', '.join(sorted(SUFFIXES))})")
    return ImageFiles.under(root, names, size=size, resize=_before_crop(size))


def _images(root: Path, folder: Path) -> list[str]:
    return [
        file.relative_to(root).as_posix()
        for file in folder.rglob("*")
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    ]


def _divide(split: Split, test_fraction: float, generator: Generator | None) -> tuple[Split, Split]:
    if generator is None:
        raise ValueError(f"generator must be given where there is no test folder\n{LAYOUT}")
    train, test = stratify(split.given, test_fraction, generator=generator)
    return subset(split, train), subset(split, test)

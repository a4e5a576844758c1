"""WebVision 1.0 in the mini setting: the first 50 classes of its Google images."""

from collections.abc import Sequence
from pathlib import Path

import torch

from . import ilsvrc
from .augment import WEBVISION_TRANSFORM
from .dataset import Dataset, Split
from .images import ImageFiles
from .lists import at, read_labels, read_lines
from .roots import PathLike, locate

LAYOUT = """\
webvision/
  info/synsets.txt                 n01440764 tench, Tinca tinca
  info/train_filelist_google.txt   google/q0001/0XaqhGGRBYPuQM.jpg 0
  info/val_filelist.txt            val000001.jpg 0
  google/q0001/*.jpg ...           google_resized_256.tar, or the original images
  val_images_256/*.jpg             or val_images/*.jpg"""
NUM_CLASSES = 50
ALL_CLASSES = 1000
TESTS = ("webvision", "ilsvrc12")


def load(*, tests: Sequence[str] = TESTS, data_dir: PathLike | None = None) -> Dataset:
    """Mini WebVision: 65,944 images found by Google, 50 classes, about a fifth mislabelled.

    It is judged on WebVision's own validation images of these classes and on those of ILSVRC12.
    True labels of the training images are not known.

    Args:
        tests: The test sets wanted, of "webvision" and "ilsvrc12".
        data_dir: Where to look instead of the usual folders.

    References:
        Li et al., WebVision Database: Visual Learning and Understanding from Web Data, 2017.
        https://arxiv.org/abs/1708.02862
        Jiang et al., MentorNet, ICML 2018: the mini setting. https://arxiv.org/abs/1712.05055
    """
    unknown = [name for name in tests if name not in TESTS]
    if unknown or not tests:
        raise ValueError(f"tests must be some of {', '.join(TESTS)}, got {', '.join(unknown)!r}")
    train_list = locate("webvision", "info", "train_filelist_google.txt", data_dir=data_dir)
    root = train_list.parent.parent
    synsets, classes = _read_synsets(root / "info" / "synsets.txt")
    names, labels = _read_list(train_list)
    train = Split(ImageFiles.under(root, names), torch.tensor(labels))
    splits = {}
    if "webvision" in tests:
        splits["webvision"] = _validation(root)
    if "ilsvrc12" in tests:
        try:
            splits["ilsvrc12"] = ilsvrc.load(synsets, data_dir=data_dir)
        except FileNotFoundError as error:
            hint = 'tests=("webvision",) does without'
            raise FileNotFoundError(f"{error}\n{hint}") from None
    return Dataset("webvision", classes, train, splits, transform=WEBVISION_TRANSFORM)


def _validation(root: Path) -> Split:
    names, labels = _read_list(root / "info" / "val_filelist.txt")
    folders = [root / "val_images_256", root / "val_images"]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(f"{folders[0]} is missing; expected layout:\n{LAYOUT}")
    given = torch.tensor(labels)
    return Split(ImageFiles.under(folder, names), given, given)


def _read_list(path: Path) -> tuple[list[str], list[int]]:
    """The images of the first classes."""
    listed = zip(*read_labels(path, ALL_CLASSES, LAYOUT), strict=True)
    kept = [(name, label) for name, label in listed if label < NUM_CLASSES]
    if not kept:
        raise ValueError(f"{path} lists no image of the first {NUM_CLASSES} classes")
    return [name for name, _ in kept], [label for _, label in kept]


def _read_synsets(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """The first synsets, and the first of the names of each."""
    lines = read_lines(path, LAYOUT)[:NUM_CLASSES]
    if len(lines) < NUM_CLASSES:
        raise ValueError(f"{path} must list at least {NUM_CLASSES} synsets, got {len(lines)}")
    synsets, classes = [], []
    for i, line in enumerate(lines, start=1):
        synset, _, names = line.partition(" ")
        if not synset.startswith("n") or not names.strip():
            raise ValueError(at(path, i, line, "a synset and its names are expected"))
        synsets.append(synset)
        classes.append(names.split(",")[0].strip())
    return synsets, tuple(classes)

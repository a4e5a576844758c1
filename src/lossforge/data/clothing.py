"""Clothing1M: a million pictures from shops, labelled by the text around them."""

from pathlib import Path

import torch

from .augment import CLOTHING1M_TRANSFORM
from .dataset import Dataset, Split
from .images import ImageFiles, at, read_labels, read_lines, read_names
from .patches import with_patches
from .source import File, PathLike, Source, locate

LAYOUT = """\
clothing1m/
  category_names_eng.txt      14 lines
  noisy_label_kv.txt          images/0/00/x.jpg 5
  clean_label_kv.txt          images/0/01/y.jpg 5
  noisy_train_key_list.txt    images/0/00/x.jpg
  clean_val_key_list.txt      images/0/01/y.jpg
  clean_test_key_list.txt     images/0/01/y.jpg
  images/0/00/*.jpg ..."""
NUM_CLASSES = 14


def load(
    *, clean_val: bool = False, features: str | None = None, data_dir: PathLike | None = None
) -> Dataset:
    """Clothing1M: training on the noisy labels alone, 14 classes; test on clean ones.

    The clean training images are left aside, as in the published protocol. True labels of the
    noisy training images are taken as unknown, although a few thousand have one.

    Args:
        clean_val: Whether the official clean validation images come along, as one more test
            split, "clean_val". To choose anything on it is to use clean labels.
        features: "patches" or "patches:ATOMS" for features in place of images, see `with_patches`.
        data_dir: The folder to search instead of the usual ones.

    References:
        Xiao et al., Learning from Massive Noisy Labeled Data for Image Classification, CVPR 2015.
    """
    root = locate("clothing1m", "noisy_label_kv.txt", data_dir=data_dir).parent
    classes = tuple(line.strip() for line in read_lines(root / "category_names_eng.txt", LAYOUT))
    if len(classes) != NUM_CLASSES:
        path = root / "category_names_eng.txt"
        raise ValueError(f"{path} must name {NUM_CLASSES} classes, got {len(classes)}")
    noisy = _read_labels(root / "noisy_label_kv.txt")
    clean = _read_labels(root / "clean_label_kv.txt")
    train = _split(root, "noisy_train_key_list.txt", noisy, "noisy_label_kv.txt")
    tests = {"test": "clean_test_key_list.txt"}
    if clean_val:
        tests["clean_val"] = "clean_val_key_list.txt"
    splits = {name: _split(root, keys, clean, "clean_label_kv.txt") for name, keys in tests.items()}
    dataset = Dataset(
        "clothing1m",
        classes,
        train,
        {name: Split(split.inputs, split.given, split.given) for name, split in splits.items()},
        transform=CLOTHING1M_TRANSFORM,
    )
    return with_patches(dataset, features)


def _read_labels(path: Path) -> dict[str, int]:
    labels: dict[str, int] = {}
    names, given = read_labels(path, NUM_CLASSES, LAYOUT)
    for i, (name, label) in enumerate(zip(names, given, strict=True), start=1):
        if labels.setdefault(name, label) != label:
            complaint = f"the image has label {labels[name]} already"
            raise ValueError(at(path, i, f"{name} {label}", complaint))
    return labels


def _split(root: Path, key_list: str, labels: dict[str, int], label_file: str) -> Split:
    """The images of a key list with their labels; the true ones are left open."""
    names = read_names(root / key_list, LAYOUT)
    if not names:
        raise ValueError(f"{root / key_list} is empty")
    for i, name in enumerate(names, start=1):
        if name not in labels:
            complaint = f"the image has no label in {label_file}"
            raise ValueError(at(root / key_list, i, name, complaint))
    given = torch.tensor([labels[name] for name in names])
    return Split(ImageFiles.under(root, names), given)


SOURCES = (
    Source(
        "clothing1m",
        "a million pictures of clothes labelled by the text around them, 14 classes",
        14,
        load,
        lambda data_dir: load(clean_val=True, data_dir=data_dir).parts(),
        counts={"train": 1_000_000, "test": 10_526, "clean_val": 14_313},
        layout=LAYOUT,
        files=(
            File("category_names_eng.txt"),
            File("noisy_label_kv.txt"),
            File("clean_label_kv.txt"),
            File("noisy_train_key_list.txt"),
            File("clean_val_key_list.txt"),
            File("clean_test_key_list.txt"),
        ),
        obtain="ask the authors, see https://github.com/Cysu/noisy_label",
        terms="research use; cite Xiao et al., CVPR 2015",
    ),
)

"""Mini WebVision 1.0, the first 50 classes of its Google images, and ILSVRC12 to test it on."""

import csv
from collections.abc import Sequence
from pathlib import Path

import torch

from .augment import WEBVISION_TRANSFORM
from .dataset import Dataset, Split
from .images import ImageFiles, at, read_labels, read_lines
from .patches import with_patches
from .source import File, PathLike, Source, existing, locate, roots

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
ILSVRC12_LAYOUT = """\
ilsvrc12/
  val/n01440764/ILSVRC2012_val_00000293.JPEG ...   a folder for each synset
or, as on Kaggle,
ilsvrc12/
  LOC_val_solution.csv                             ILSVRC2012_val_00000001,n01751748 85 ...
  ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG ..."""
FLAT = ("ILSVRC", "Data", "CLS-LOC", "val")


def load(
    *,
    tests: Sequence[str] = TESTS,
    features: str | None = None,
    data_dir: PathLike | None = None,
) -> Dataset:
    """Mini WebVision: 65,944 images found by Google, 50 classes, about a fifth mislabelled.

    It is tested on WebVision's own validation images of these classes and on those of ILSVRC12.
    True labels of the training images are not known.

    Args:
        tests: The test sets to load, of "webvision" and "ilsvrc12".
        features: "patches" or "patches:ATOMS" for features in place of images, see `with_patches`.
        data_dir: The folder to search instead of the usual ones.

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
            splits["ilsvrc12"] = load_ilsvrc12(synsets, data_dir=data_dir)
        except FileNotFoundError as error:
            hint = 'tests=("webvision",) does without'
            raise FileNotFoundError(f"{error}\n{hint}") from None
    dataset = Dataset("webvision", classes, train, splits, transform=WEBVISION_TRANSFORM)
    return with_patches(dataset, features)


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


def load_ilsvrc12(
    synsets: Sequence[str] | None = None, *, data_dir: PathLike | None = None
) -> Split:
    """Validation images of some classes of ILSVRC12, 50 of each.

    Args:
        synsets: The classes, such as "n01440764", in the order of their labels; without it the
            first 50 in alphabetical order, which is the order that WebVision numbers them in.
        data_dir: The folder to search instead of the usual ones.

    References:
        Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015.
    """
    folder = existing("ilsvrc12", "val", data_dir=data_dir)
    solution = existing("ilsvrc12", "LOC_val_solution.csv", data_dir=data_dir)
    if solution is not None:
        root = solution.parent.joinpath(*FLAT)
        images = _read_solution(solution)
    elif folder is not None:
        root = folder
        images = _read_folders(folder)
    else:
        places = " or ".join(str(place) for place in roots(data_dir))
        raise FileNotFoundError(f"ilsvrc12 is not in {places}; expected layout:\n{ILSVRC12_LAYOUT}")
    chosen = _first(sorted(images), root) if synsets is None else list(synsets)
    for synset in chosen:
        if not images.get(synset):
            raise FileNotFoundError(f"ilsvrc12: no images of {synset} in {solution or folder}")
    names = [name for synset in chosen for name in sorted(images[synset])]
    counts = torch.tensor([len(images[synset]) for synset in chosen])
    labels = torch.arange(len(chosen)).repeat_interleave(counts)
    return Split(ImageFiles.under(root, names), labels, labels)


def _first(found: list[str], root: Path) -> list[str]:
    if len(found) not in (NUM_CLASSES, 1000):
        raise ValueError(
            f"{root} must hold the 1000 synsets of ILSVRC12, or {NUM_CLASSES} of them, to tell "
            f"which come first; it holds {len(found)}"
        )
    return found[:NUM_CLASSES]


def _read_folders(folder: Path) -> dict[str, list[str]]:
    return {
        child.name: [
            f"{child.name}/{file.name}" for file in child.iterdir() if file.suffix == ".JPEG"
        ]
        for child in folder.iterdir()
        if child.is_dir() and child.name.startswith("n")
    }


def _read_solution(path: Path) -> dict[str, list[str]]:
    """The images of each synset, from lines of an image and its boxes, the synset first in each."""
    images: dict[str, list[str]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if header != ["ImageId", "PredictionString"]:
            complaint = "the header must be ImageId,PredictionString"
            raise ValueError(at(path, 1, ",".join(header), complaint))
        for row in rows:
            if len(row) != 2 or not row[0] or not row[1].startswith("n"):
                complaint = "an image and its synset are expected"
                raise ValueError(at(path, rows.line_num, ",".join(row), complaint))
            images.setdefault(row[1].split()[0], []).append(f"{row[0]}.JPEG")
    return images


SOURCES = (
    Source(
        "webvision",
        "mini WebVision 1.0: images found by Google, 50 classes",
        50,
        load,
        counts={"train": 65_944, "webvision": 2_500, "ilsvrc12": 2_500},
        layout=LAYOUT + "\n" + ILSVRC12_LAYOUT,
        files=(
            File("info/synsets.txt"),
            File("info/train_filelist_google.txt"),
            File("info/val_filelist.txt"),
        ),
        obtain="register and download the Google images, the validation images and the "
        "file lists of WebVision 1.0 at https://data.vision.ee.ethz.ch/cvl/webvision",
        terms="research use; cite Li et al., 2017",
    ),
    Source(
        "ilsvrc12",
        "ImageNet validation images of the 50 classes of mini WebVision",
        50,
        splits=lambda data_dir: {"val": load_ilsvrc12(data_dir=data_dir)},
        counts={"val": 2_500},
        layout=ILSVRC12_LAYOUT,
        obtain="register at https://image-net.org and download ILSVRC2012_img_val.tar, or "
        "take the ImageNet Object Localization Challenge from Kaggle",
        terms="research use; cite Russakovsky et al., 2015",
    ),
)

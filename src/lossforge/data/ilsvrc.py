"""The validation images of ILSVRC12 (ImageNet), as a test set for WebVision."""

import csv
from collections.abc import Sequence
from pathlib import Path

import torch

from .dataset import Split
from .images import ImageFiles
from .lists import at
from .roots import PathLike, existing, roots

NUM_CLASSES = 50
LAYOUT = """\
ilsvrc12/
  val/n01440764/ILSVRC2012_val_00000293.JPEG ...   a folder for each synset
or, as on Kaggle,
ilsvrc12/
  LOC_val_solution.csv                             ILSVRC2012_val_00000001,n01751748 85 ...
  ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG ..."""
FLAT = ("ILSVRC", "Data", "CLS-LOC", "val")


def load(synsets: Sequence[str] | None = None, *, data_dir: PathLike | None = None) -> Split:
    """Validation images of some classes of ILSVRC12, 50 of each.

    Args:
        synsets: The classes, such as "n01440764", in the order of their labels; without it the
            first 50 in alphabetical order, which is the order that WebVision numbers them in.
        data_dir: Where to look instead of the usual folders.

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
        raise FileNotFoundError(f"ilsvrc12 is not in {places}; expected layout:\n{LAYOUT}")
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

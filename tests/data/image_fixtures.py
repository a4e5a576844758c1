"""Real photographs, cut into small JPEG files in the layouts that data sets are distributed in."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

SYNSETS = [f"n{1440764 + 7 * i:08d}" for i in range(1000)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Prepare batches as a worker does; for a few images more threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def photographs() -> list[np.ndarray]:
    return load_sample_images().images


def photograph(number: int, height: int = 90, width: int = 120) -> Image.Image:
    """A piece of one of two photographs; each number gives another piece."""
    source = photographs()[number % 2]
    top = 37 * number % (source.shape[0] - height)
    left = 91 * number % (source.shape[1] - width)
    return Image.fromarray(source[top : top + height, left : left + width])


def save(path: Path, number: int, **size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    photograph(number, **size).save(path, quality=90)
    return path


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def truncate(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def webvision(root: Path) -> Path:
    """Two training images of classes 0, 1 and 49, one of class 50; two for validation."""
    folder = root / "webvision"
    write(folder / "info/synsets.txt", *(f"{name} class {name}, thing" for name in SYNSETS))
    train = [("google/q0001/a.jpg", 0), ("google/q0001/b.jpg", 0), ("google/q0002/c.jpg", 1)]
    train += [("google/q0002/d.jpg", 1), ("google/q0093/e.jpg", 49), ("google/q0093/f.jpg", 49)]
    listed = [*train, ("google/q0095/unused.jpg", 50)]
    write(folder / "info/train_filelist_google.txt", *(f"{name} {i}" for name, i in listed))
    for number, (name, _) in enumerate(train):
        save(folder / name, number)
    write(
        folder / "info/val_filelist.txt", "val000001.jpg 3", "val000002.jpg 999", "val000003.jpg 7"
    )
    for number in (1, 3):
        save(folder / f"val_images_256/val{number:06d}.jpg", number)
    return folder


def ilsvrc12_folders(root: Path, synsets: list[str] = SYNSETS[:50]) -> Path:
    """One validation image in each class folder."""
    for number, synset in enumerate(synsets):
        name = f"ILSVRC2012_val_{number + 1:08d}.JPEG"
        save(root / "ilsvrc12/val" / synset / name, number, height=40, width=50)
    return root / "ilsvrc12"


def ilsvrc12_flat(root: Path) -> Path:
    """Kaggle's layout: images in one folder, synsets in a CSV file."""
    lines = ["ImageId,PredictionString"]
    for number, synset in enumerate(reversed(SYNSETS[:51])):
        name = f"ILSVRC2012_val_{number + 1:08d}"
        lines.append(f"{name},{synset} 1 2 30 40 {synset} 3 4 50 60 ")
        path = root / "ilsvrc12/ILSVRC/Data/CLS-LOC/val" / f"{name}.JPEG"
        save(path, number, height=40, width=50)
    write(root / "ilsvrc12/LOC_val_solution.csv", *lines)
    return root / "ilsvrc12"


def clothing1m(root: Path) -> Path:
    """Four noisy training images, one clean one for validation and two for the test."""
    folder = root / "clothing1m"
    names = [f"images/{i % 10}/0{i % 3}/{i},{i}.jpg" for i in range(7)]
    for number, name in enumerate(names):
        save(folder / name, number)
    write(folder / "category_names_eng.txt", *(f"Garment {i}" for i in range(14)))
    noisy = [f"{name} {label}" for name, label in zip(names[:5], (5, 0, 13, 5, 2), strict=True)]
    clean = [f"{name} {label}" for name, label in zip(names[4:], (1, 12, 3), strict=True)]
    write(folder / "noisy_label_kv.txt", *noisy)
    write(folder / "clean_label_kv.txt", *clean)
    write(folder / "noisy_train_key_list.txt", *names[:4])
    write(folder / "clean_train_key_list.txt")
    write(folder / "clean_val_key_list.txt", names[4])
    write(folder / "clean_test_key_list.txt", *names[5:])
    return folder


def class_folders(root: Path, classes: str = "cat dog", count: int = 3, start: int = 0) -> Path:
    """Images with file endings in several spellings."""
    endings = (".jpg", ".JPEG", ".png")
    for label, name in enumerate(classes.split()):
        for i in range(count):
            save(root / name / f"{i}{endings[i % 3]}", start + label * count + i)
    return root

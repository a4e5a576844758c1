"""A folder of class folders: its images in memory, small, and thumbnails to look at."""

import base64
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..data import Dataset, ImageFiles, Split, folder
from ..data.augment import IMAGENET_MEAN, IMAGENET_STD, TensorTransform
from ..data.source import PathLike
from ..errors import extra
from .subject import Subject

SIZE = 32
THUMBNAIL = 96
_BATCH = 64


def read_folder(
    path: PathLike, *, size: int = SIZE, progress: Callable[[int, int], object] | None = None
) -> Subject:
    """All images of a folder of class folders, or those of its `train` folder.

    Args:
        path: The folder, see `lossforge.data.folder`.
        size: Height and width that the network sees.
        progress: Called with how many images are read, and how many there are.
    """
    root, notes = Path(path), []
    if (root / "train").is_dir():
        root = root / "train"
        notes.append("the images of train alone; the other folders are not looked at")
    try:
        # the division draws on a generator, but both of its parts are put together again
        found = folder(
            root, size=size, test_fraction=0.5, generator=torch.Generator().manual_seed(0)
        )
    except (FileNotFoundError, ValueError) as error:
        complaint = str(error).partition("\n")[0].removesuffix("; expected layout:")
        advice = "put the images of each class into a folder of its own"
        raise ValueError(f"{complaint}; {advice}") from error
    (files, given), (held, labels) = _files(found.train), _files(found.tests["test"])
    names = np.concatenate([files.names, held.names])
    order = np.argsort(names, kind="stable")
    files = replace(files, names=names[order])
    given = torch.cat([given, labels])[torch.from_numpy(order)]
    notes.append(f"resized to {size} x {size} pixels for the network")
    pixels = _decode(files, progress)
    # shifted but not mirrored: letters and digits have a left and a right
    transform = TensorTransform(IMAGENET_MEAN, IMAGENET_STD, padding=size // 8, mirror=False)
    name = root.resolve().name
    dataset = Dataset(name, found.classes, Split(pixels, given), {}, transform=transform)
    return Subject(
        name,
        "images",
        dataset,
        where=lambda row: str(files.path(row)),
        picture=lambda row: _thumbnail(files, row),
        notes=tuple(notes),
    )


def _files(split: Split) -> tuple[ImageFiles, Tensor]:
    assert isinstance(split.inputs, ImageFiles)
    return split.inputs, split.given


def _decode(files: ImageFiles, progress: Callable[[int, int], object] | None) -> Tensor:
    """uint8 pixels (N, 3, size, size)."""
    pixels = torch.empty(len(files), 3, files.size, files.size, dtype=torch.uint8)
    for rows in torch.split(torch.arange(len(files)), _BATCH):
        try:
            pixels[rows] = files[rows]
        except ValueError:
            bad = files.unreadable()
            if not bad:
                raise
            path, reason = bad[0]
            more = f", and {len(bad) - 1} more files are like it" if len(bad) > 1 else ""
            raise ValueError(f"{path}: {reason}{more}; repair or remove it") from None
        if progress is not None:
            progress(int(rows[-1]) + 1, len(files))
    return pixels


def _thumbnail(files: ImageFiles, row: int) -> str:
    """The middle of an image as a data address."""
    larger = replace(files, size=THUMBNAIL, resize=THUMBNAIL)
    pixels = larger[torch.tensor([row])][0].permute(1, 2, 0).numpy()
    stream = io.BytesIO()
    extra("PIL.Image", "bench").fromarray(pixels).save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")

"""Read the data to audit: a named data set, a table, or a folder of images."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..data import (
    Dataset,
    ImageFiles,
    Split,
    check_noise,
    folder,
    load,
    noisy_labels,
    with_patches,
)
from ..data.augment import IMAGENET_MEAN, IMAGENET_STD, TensorTransform
from ..data.own import (
    ARRAYS,
    FEATURES,
    SIZE,
    SUFFIXES,
    content_hash,
    is_name,
    read_own_arrays,
)
from ..data.patches import read_atoms
from ..data.pipeline import ArrayPipeline
from ..data.source import PathLike
from ..noise import NoiseSpec, noise_rate
from ..training import generator
from .subject import Subject, has_images
from .table import read_table

PIXELS = "pixels"
PICTURE, TINY = 224, 64  # the longest side of an image on the page; what is kept without loss
_BATCH = 64


class Progress(NamedTuple):
    """The progress of an audit: the current step, and how much of it is done."""

    text: str
    done: int
    total: int


def read_subject(
    data: str,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    noise: str | None = None,
    size: int = SIZE,
    features: str | None = None,
    seed: int = 0,
    data_dir: PathLike | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Subject:
    """Read the data to audit.

    Args:
        data: The name of a data set, a table (.csv, .tsv, .parquet), a folder of class folders, or
            a .npz file with inputs x and labels y.
            A name takes precedence over a folder; ./name is the folder.
        label: The column of labels, for a table.
        columns: The columns to learn from, for a table.
        noise: Noise to add to a named data set, to try the audit on known noise.
        size: Height and width that the images of a folder are resized to.
        features: Of images: "patches:ATOMS" for an MLP on patch features, see
            `lossforge.data.with_patches`, or "pixels" for a small CNN, which takes much longer;
            "patches:100" by default.
        seed: Of the noise.
        data_dir: Where named data sets are, instead of the usual folders.
        on_progress: Called while images are read.
    """
    path = Path(data)
    table = path.suffix.lower() in SUFFIXES
    for what, value in (("a label column", label), ("feature columns", columns)):
        if value is not None and not table:
            raise ValueError(
                f"{what} can only be named for a table ({', '.join(SUFFIXES)}), got {data!r}"
            )
    _check_features(features)
    report = on_progress or (lambda progress: None)
    if is_name(data):
        found = read_named(data, noise, seed=seed, data_dir=data_dir)
        return _with_features(found, features, report)
    if noise is not None:
        raise ValueError(
            f"noise can only be added to the data sets of `lossforge data list`, got {data!r}"
        )
    if table:
        found = read_table(path, label=label, columns=columns)
        return _with_features(found, features, report)
    if path.suffix.lower() == ARRAYS:
        return _with_features(read_array_file(path), features, report)
    if path.is_dir():
        found = read_folder(
            path, size=size, on_read=lambda n, total: report(Progress("reading images", n, total))
        )
        return _with_features(found, features, report)
    kind = f"is a file of type {path.suffix or 'unknown'}" if path.exists() else "does not exist"
    raise ValueError(
        f"{data!r} {kind}; an audit takes a table ({', '.join(SUFFIXES)}), a folder of class "
        "folders, a .npz file, or a name that `lossforge data list` shows"
    )


def _check_features(features: str | None) -> None:
    if features is None or features == PIXELS:
        return
    try:
        read_atoms(features)
    except ValueError:
        raise ValueError(
            f"features must be 'patches', 'patches:ATOMS' or 'pixels', got {features!r}"
        ) from None


def _with_features(
    found: Subject, features: str | None, report: Callable[[Progress], object]
) -> Subject:
    """Replace images by patch features, unless their pixels are asked for."""
    if not has_images(found.dataset):
        if features is not None:
            raise ValueError(f"features can only be chosen for images, {found.name} has none")
        return found
    if features == PIXELS:
        return found
    features = features or FEATURES
    dataset = with_patches(
        found.dataset,
        features,
        on_progress=lambda n, total: report(Progress("computing patch features", n, total)),
    )
    return replace(found, dataset=dataset, notes=(*found.notes, f"features {features}"))


def read_named(
    name: str, noise: str | None = None, *, seed: int = 0, data_dir: PathLike | None = None
) -> Subject:
    """Read the training part of a data set, with its own labels or with noise added to them.

    Args:
        name: One of `lossforge.data.names()`, case-insensitive.
        noise: As `lossforge train` takes it, such as "symmetric:0.4"; None keeps the labels.
        seed: Of the noise.
        data_dir: Where the data are, instead of the usual folders.
    """
    name = name.lower()
    added = NoiseSpec.parse("given" if noise is None else noise)
    check_noise(added, name)
    dataset = load(name, data_dir=data_dir)
    notes, injected = [], None
    if added.kind != "given":
        chance = generator(seed, "noise")  # the same labels as those of a run
        given = noisy_labels(dataset, added, generator=chance, data_dir=data_dir)
        dataset = dataset.with_noise(given)
        notes.append(f"noise added: {noise}, seed {seed}")
        if dataset.train.true is not None:
            injected = noise_rate(dataset.train.true, given)
    return Subject(
        name,
        "data set",
        dataset.without_truth(),
        where=lambda row: f"{name}, sample {row}",
        notes=tuple(notes),
        injected=injected,
    )


def read_array_file(path: PathLike) -> Subject:
    """Read the inputs and labels of a .npz file; true labels in it are ignored.

    Args:
        path: The file, see `lossforge.data.own.load`.
    """
    inputs, classes, given, _ = read_own_arrays(path)
    if inputs.ndim == 2:
        inputs = ArrayPipeline.fit(inputs).encode(inputs)
    name = Path(path).name
    dataset = Dataset(name, classes, Split(inputs, given), {})
    return Subject(name, "table", dataset, where=lambda row: f"{name}, row {row}")


def read_folder(
    path: PathLike, *, size: int = SIZE, on_read: Callable[[int, int], object] | None = None
) -> Subject:
    """Read all images of a folder of class folders, or those of its `train` folder.

    Args:
        path: The folder, see `lossforge.data.folder`.
        size: Height and width that images are resized to.
        on_read: Called with the number of images read so far and the number of all images.
    """
    files, given, classes = list_images(path, size=size)
    root, notes = files.root, []
    if root != Path(path):
        notes.append("only the images of train; the other folders are ignored")
    notes.append(f"resized to {size} x {size} pixels")
    pixels = _decode(files, on_read)
    # shifted but not mirrored: letters and digits have a left and a right
    transform = TensorTransform(IMAGENET_MEAN, IMAGENET_STD, padding=size // 8, mirror=False)
    name = root.resolve().name
    dataset = Dataset(name, classes, Split(pixels, given), {}, transform=transform)
    return Subject(
        name,
        "images",
        dataset,
        where=lambda row: str(files.path(row)),
        picture=cache(partial(_picture, files)),
        notes=tuple(notes),
        sha256=content_hash(Path(path)),
        path=Path(path),
    )


def list_images(path: PathLike, *, size: int = SIZE) -> tuple[ImageFiles, Tensor, tuple[str, ...]]:
    """List all images of a folder of class folders, or of its `train` folder, in order of names.

    Returns:
        The files, their labels, and the class names; nothing is decoded.
    """
    root = Path(path)
    if (root / "train").is_dir():
        root = root / "train"
    try:
        # the split uses a generator, but both parts are joined again below
        found = folder(
            root, size=size, test_fraction=0.5, generator=torch.Generator().manual_seed(0)
        )
    except (FileNotFoundError, ValueError) as error:
        message = str(error).partition("\n")[0].removesuffix("; expected layout:")
        advice = "put the images of each class into a folder of its own"
        raise ValueError(f"{message}; {advice}") from error
    (files, given), (held, labels) = _files(found.train), _files(found.tests["test"])
    names = np.concatenate([files.names, held.names])
    order = np.argsort(names, kind="stable")
    given = torch.cat([given, labels])[torch.from_numpy(order)]
    return replace(files, names=names[order]), given, found.classes


def _files(split: Split) -> tuple[ImageFiles, Tensor]:
    assert isinstance(split.inputs, ImageFiles)
    return split.inputs, split.given


def _decode(files: ImageFiles, on_read: Callable[[int, int], object] | None) -> Tensor:
    """Read the pixels (N, 3, size, size), uint8."""
    pixels = torch.empty(len(files), 3, files.size, files.size, dtype=torch.uint8)
    for rows in torch.split(torch.arange(len(files)), _BATCH):
        try:
            pixels[rows] = files[rows]
        except ValueError:
            bad = files.unreadable()
            if not bad:
                raise
            path, reason = bad[0]
            more = f", and {len(bad) - 1} more files are unreadable" if len(bad) > 1 else ""
            raise ValueError(f"{path}: {reason}{more}; repair or remove it") from None
        if on_read is not None:
            on_read(int(rows[-1]) + 1, len(files))
    return pixels


def _picture(files: ImageFiles, row: int) -> str:
    """Return an image as a data URL, whole and small."""
    image = files.reduced(row, PICTURE)
    kind = "PNG" if max(image.size) <= TINY else "JPEG"
    stream = io.BytesIO()
    image.save(stream, kind, quality=80)
    content = base64.b64encode(stream.getvalue()).decode("ascii")
    return f"data:image/{kind.lower()};base64,{content}"

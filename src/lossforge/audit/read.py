"""Read the data to audit: a named data set, a table, or a folder of images."""

import base64
import inspect
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

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
from ..data import find as find_source
from ..data.augment import IMAGENET_MEAN, IMAGENET_STD, TensorTransform
from ..data.dataset import read as as_it_is
from ..data.embeddings import SENTENCES, TIMM, embed_images, is_rows, model_of, read_rows
from ..data.own import ARRAYS, FEATURES, SIZE, SUFFIXES, is_name, read_own_arrays
from ..data.patches import read_atoms
from ..data.pipeline import ArrayPipeline
from ..data.source import PathLike, content_hash
from ..noise import NoiseSpec, noise_rate
from ..training import generator
from .probs import Probs, with_probs
from .progress import Progress, paced
from .subject import Subject, has_images
from .table import read_table

PIXELS = "pixels"
PICTURE, TINY = 224, 64  # the longest side of an image on the page; what is kept without loss
_BATCH = 64


def read_subject(
    data: str,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    noise: str | None = None,
    size: int = SIZE,
    features: str | None = None,
    pred_probs: Probs | None = None,
    classes_file: PathLike | None = None,
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
        features: A .npy file with a row for each sample, in the order of the data. Of texts,
            "sentence-transformers:MODEL", a folder or a name, in place of TF-IDF. Of images,
            "timm:MODEL", likewise; "patches:ATOMS" for an MLP on patch features, see
            `lossforge.data.with_patches`, by default "patches:100"; or "pixels" for a small CNN,
            which takes much longer.
        pred_probs: Probabilities out of sample (N, K), or a file of them, see
            `lossforge.audit.probs.with_probs`; no network is then trained, and no feature needed.
        classes_file: A text file with the classes in the order of the columns of `pred_probs`, one
            on each line; by default they are in the order of `Subject.dataset.classes`.
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
    if noise is not None and not is_name(data):
        raise ValueError(
            f"noise can only be added to the data sets of `lossforge data list`, got {data!r}"
        )
    if pred_probs is None and classes_file is not None:
        raise ValueError("classes_file is for the columns of pred_probs, which are not given")
    if pred_probs is not None and features is not None:
        raise ValueError(
            "with pred_probs no network is trained, which features are for; give one of the two"
        )
    _check_features(features)
    sentences = features if model_of(features, SENTENCES) is not None else None
    if sentences is not None and not table and not is_name(data):
        raise ValueError(f"{features} can only be chosen for texts, {data} has none")
    report = on_progress or (lambda progress: None)
    bare = pred_probs is not None or is_rows(features)
    if is_name(data):
        found = read_named(data, noise, features=sentences, seed=seed, data_dir=data_dir)
    elif table:
        found = read_table(path, label=label, columns=columns, features=sentences, bare=bare)
    elif path.suffix.lower() == ARRAYS:
        found = read_array_file(path)
    elif path.is_dir():
        on_read = None
        if not bare and model_of(features, TIMM) is None:
            on_read = paced(report, "reading images")
        found = read_folder(path, size=size, on_read=on_read, decode=on_read is not None)
    else:
        kind = f"is a file of type {path.suffix or 'unknown'}"
        raise ValueError(
            f"{data!r} {kind if path.exists() else 'does not exist'}; an audit takes a table "
            f"({', '.join(SUFFIXES)}), a folder of class folders, a .npz file, or a name that "
            "`lossforge data list` shows"
        )
    if pred_probs is not None:
        return with_probs(found, pred_probs, classes_file)
    return _with_features(found, features, report)


def _check_features(features: str | None) -> None:
    if features is None or features == PIXELS or is_rows(features):
        return
    if any(model_of(features, kind) is not None for kind in (SENTENCES, TIMM)):
        return
    try:
        read_atoms(features)
    except ValueError:
        raise ValueError(
            f"features must be a .npy file, '{SENTENCES}:MODEL', '{TIMM}:MODEL', 'patches', "
            f"'patches:ATOMS' or 'pixels', got {features!r}"
        ) from None


def _with_features(
    found: Subject, features: str | None, report: Callable[[Progress], object]
) -> Subject:
    """Replace the inputs by the features that are asked for; images by those of patches."""
    if features is not None and is_rows(features):
        what = "images" if found.kind == "images" else "rows"
        rows = read_rows(features, len(found.given), what)
        return _with_rows(found, ArrayPipeline.fit(rows).encode(rows), Path(features).name)
    if model_of(features, SENTENCES) is not None:
        return found  # the reader of texts has used it
    if not has_images(found.dataset):
        if features is not None:
            raise ValueError(f"{features} can only be chosen for images, {found.name} has none")
        return found
    if features == PIXELS:
        return found
    if (model := model_of(features, TIMM)) is not None:
        rows = embed_images(
            model, found.dataset.train.inputs, on_progress=paced(report, "computing features")
        )
        return _with_rows(found, ArrayPipeline.fit(rows).encode(rows), str(features))
    features = features or FEATURES
    dataset = with_patches(
        found.dataset, features, on_progress=paced(report, "computing patch features")
    )
    return replace(found, dataset=dataset, notes=(*found.notes, f"features {features}"))


def _with_rows(found: Subject, rows: Tensor, features: str) -> Subject:
    """Replace the inputs of a subject by rows of features."""
    train = replace(found.dataset.train, inputs=rows)
    dataset = replace(found.dataset, train=train, transform=as_it_is)
    return replace(found, dataset=dataset, notes=(*found.notes, f"features {features}"))


def read_named(
    name: str,
    noise: str | None = None,
    *,
    features: str | None = None,
    seed: int = 0,
    data_dir: PathLike | None = None,
) -> Subject:
    """Read the training part of a data set, with its own labels or with noise added to them.

    Args:
        name: One of `lossforge.data.names()`, case-insensitive.
        noise: As `lossforge train` takes it, such as "symmetric:0.4"; None keeps the labels.
        features: "sentence-transformers:MODEL" for texts, in place of TF-IDF.
        seed: Of the noise.
        data_dir: Where the data are, instead of the usual folders.
    """
    name = name.lower()
    added = NoiseSpec.parse("given" if noise is None else noise)
    check_noise(added, name)
    options, notes, injected = {}, [], None
    if (model := model_of(features, SENTENCES)) is not None:
        if not _has_texts(name):
            raise ValueError(f"{features} can only be chosen for texts, {name} has none")
        options["features"] = f"embed:{model}"
        notes.append(f"features {features}")
    dataset = load(name, data_dir=data_dir, **options)
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


def _has_texts(name: str) -> bool:
    """Check whether the features of a data set are those of texts by default."""
    loader = find_source(name).load
    found = {} if loader is None else inspect.signature(loader).parameters
    return "features" in found and found["features"].default == "tfidf"


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
    return Subject(
        name,
        "table",
        dataset,
        where=lambda row: f"{name}, row {row}",
        sha256=content_hash(Path(path)),
    )


def read_folder(
    path: PathLike,
    *,
    size: int = SIZE,
    on_read: Callable[[int, int], object] | None = None,
    decode: bool = True,
) -> Subject:
    """Read all images of a folder of class folders, or those of its `train` folder.

    Args:
        path: The folder, see `lossforge.data.folder`.
        size: Height and width that images are resized to.
        on_read: Called with the number of images read so far and the number of all images.
        decode: Whether to read the pixels; otherwise the inputs are the files.
    """
    files, given, classes = list_images(path, size=size)
    root, notes = files.root, []
    if root != Path(path):
        notes.append("only the images of train; the other folders are ignored")
    name = root.resolve().name
    if decode:
        notes.append(f"resized to {size} x {size} pixels")
        # shifted but not mirrored: letters and digits have a left and a right
        transform = TensorTransform(IMAGENET_MEAN, IMAGENET_STD, padding=size // 8, mirror=False)
        split = Split(_decode(files, on_read), given)
        dataset = Dataset(name, classes, split, {}, transform=transform)
    else:
        dataset = Dataset(name, classes, Split(files, given), {})
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

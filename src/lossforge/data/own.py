"""A user's own data in every command: a table, a folder of images, or arrays."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from ..errors import SpecError
from ..text import folder_name
from .dataset import Dataset, Split, stratify, subset
from .embeddings import (
    SENTENCES,
    TIMM,
    Sentences,
    check_hash,
    described,
    is_rows,
    model_of,
    read_rows,
)
from .folders import load as load_folder
from .images import ImageFiles
from .own_table import LABEL_NAMES, check_weights, read_own_table
from .own_table import WEIGHT as WEIGHT
from .patches import read_atoms
from .pipeline import (
    INPUTS,
    ArrayPipeline,
    ImagePipeline,
    NetworkPipeline,
    Pipeline,
    TablePipeline,
    array_names,
    as_inputs,
    pick,
    read_arrays,
)
from .registry import names as data_names
from .source import PathLike
from .source import content_hash as content_hash
from .tables import column_names, in_order

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
ARRAYS = ".npz"
SIZE = 32
FEATURES = "patches:100"  # more atoms are worse for a few thousand images
TEST_FRACTION = 0.2
NO_WEIGHT = "none"
ROLES = ("label", "columns", "true", "weight")  # what the columns of a table can be
TRUE_NAMES = ("true", "y_true", "true_labels")


def is_name(data: str) -> bool:
    """Check whether this is the name of a data set rather than a path."""
    return data.lower() in data_names() and Path(data).name == data


def is_path(text: str) -> bool:
    """Check whether this is the path of a folder, or of a file with an ending of own data."""
    if Path(text).suffix.lower() in (*SUFFIXES, ARRAYS):
        return True
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):  # no path at all
        return False


@dataclass(frozen=True)
class OwnData:
    """A user's own data as a run describes them.

    Args:
        name: The file's name, or that of the folder with a slash behind it.
        place: The absolute path.
        options: What `load` takes, and the hash of the content.
        notes: What was guessed about the columns of a table, left out or missing.
    """

    name: str
    place: str
    options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The name without its ending, as a folder can be named after it."""
        return folder_name(self.name[:-1] if self.name.endswith("/") else Path(self.name).stem)


def describe(
    path: PathLike, *, weight: str | None = None, features: str | None = None, **options: Any
) -> OwnData:
    """Describe a table, folder or file of arrays; options that are None are left out.

    A table is read once for its notes, and so that its faults are found before a run begins.

    Args:
        path: The data.
        weight: As for `load`; None is the column that `lossforge clean` writes, where there is one,
            and "none" no column.
        features: As for `load`; a file or folder is described by its absolute path and its hash.
        options: Other options of `load`.
    """
    place = Path(path)
    if not place.exists():
        raise SpecError(
            f"{str(path)!r} is neither a data set that `lossforge data list` shows nor a file or "
            f"folder ({', '.join((*SUFFIXES, ARRAYS))})"
        )
    if not place.is_dir() and place.suffix.lower() not in (*SUFFIXES, ARRAYS):
        known = ", ".join((*SUFFIXES, ARRAYS))
        raise SpecError(f"own data must be a folder or a file of type {known}, got {str(path)!r}")
    if weight is None and WEIGHT in _names(place):
        weight = WEIGHT
    given = {name: value for name, value in options.items() if value is not None}
    if weight is not None and weight != NO_WEIGHT:
        given["weight"] = weight
    notes: tuple[str, ...] = ()
    if place.suffix.lower() in SUFFIXES and place.is_file():
        roles = {name: given[name] for name in ROLES if name in given}
        notes = read_own_table(place, **roles, bare=is_rows(features)).notes
    if features is not None:
        given |= described(features)
    place = place.resolve()
    name = f"{place.name}/" if place.is_dir() else place.name
    return OwnData(name, str(place), {**given, "hash": content_hash(place)}, notes)


def _names(place: Path) -> list[str]:
    """Return the names of columns or arrays; none of what cannot be read, as `load` will say."""
    with suppress(OSError, ValueError, ImportError, csv.Error):
        if place.suffix.lower() == ARRAYS:
            return array_names(place)
        if place.is_file():
            return column_names(place)
    return []


def load(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    true: str | None = None,
    weight: str | None = None,
    size: int = SIZE,
    features: str | None = None,
    features_hash: str | None = None,
    test_fraction: float = TEST_FRACTION,
    hash: str | None = None,
) -> Dataset:
    """Load a user's own data, a part of each class set aside for testing.

    Given labels are those of the file. Features are fitted to the training part.

    Args:
        path: A table (.csv, .tsv, .parquet), a folder of class folders with images, with test
            folders or without, or a .npz file with inputs x and labels y.
        label: The column, or array, of labels; if None, guessed from its name or its values.
        columns: The columns of a table to learn from; if None, all that look useful.
        true: The column, or array, of true labels, which testing then uses.
        weight: The column, or array, of weights of the samples in training.
        size: Height and width that images are resized to.
        features: A .npy file with one row for each sample, see `lossforge.data.embeddings`; of
            texts "sentence-transformers:MODEL", otherwise weights of words; of images "timm:MODEL"
            or "patches:ATOMS", by default "patches:100".
        features_hash: What `content_hash` must return for the file or folder that features name.
        test_fraction: How much of each class is set aside, unless there are test folders.
        hash: What `content_hash` must return.
    """
    place = Path(path)
    if hash is not None and (found := content_hash(place)) != hash:
        raise SpecError(f"{place} has changed: its SHA-256 must be {hash}, got {found}")
    check_hash(features, features_hash)
    if place.is_dir():
        named = {"label": label, "columns": columns, "true": true, "weight": weight}
        for what, value in named.items():
            if value is not None:
                raise SpecError(f"a folder has its labels as folders, got {what}={value!r}")
        return _load_folder(place, size, features, features_hash, test_fraction)
    if place.suffix.lower() == ARRAYS:
        if columns is not None:
            raise SpecError(f"only a table has columns, got columns={columns!r}")
        return _load_arrays(place, label, true, weight, features, features_hash, test_fraction)
    roles = {"label": label, "columns": columns, "true": true, "weight": weight}
    return _load_table(place, roles, features, features_hash, test_fraction)


def _load_table(
    path: Path,
    roles: dict[str, Any],
    features: str | None,
    features_hash: str | None,
    test_fraction: float,
) -> Dataset:
    found = read_own_table(path, **roles, bare=is_rows(features))
    rows = stratify(found.given, test_fraction)
    pipeline: Pipeline
    if features is not None and is_rows(features):
        inputs = read_rows(features, len(found.given))
        pipeline = ArrayPipeline.fit(inputs[rows[0]])
        encoded = pipeline.encode(inputs)
    else:
        sentences = sentences_of(features, features_hash)
        part = found.table.take(rows[0])
        pipeline = TablePipeline.fit(part, found.texts, found.others, sentences, found.table)
        encoded = pipeline.encode(found.table)
    whole = Split(encoded, found.given, found.true, found.weights)
    return _divided(path.name, found.classes, whole, rows, pipeline)


def sentences_of(features: str | None, hash: str | None = None) -> Sentences | None:
    """Return what encodes the texts of a table; None for weights of words."""
    if features is None:
        return None
    model = model_of(features, SENTENCES)
    if model is None:
        raise SpecError(
            f"features of a table must be a .npy file or '{SENTENCES}:MODEL', got {features!r}"
        )
    return Sentences(model, hash)


def _divided(
    name: str, classes: tuple[str, ...], whole: Split, rows: Sequence[Tensor], pipeline: Pipeline
) -> Dataset:
    train, test = (subset(whole, part) for part in rows)
    return Dataset(name, classes, train, {"test": test}, pipeline=pipeline)


def _load_folder(
    path: Path, size: int, features: str | None, features_hash: str | None, test_fraction: float
) -> Dataset:
    chance = Generator().manual_seed(0)
    found = load_folder(path, size=size, test_fraction=test_fraction, generator=chance)
    name = f"{path.resolve().name}/"
    if features is not None and is_rows(features):
        return _with_rows(found, name, features, path)
    pipeline = image_pipeline(found.train.inputs, features, size, features_hash)

    def encoded(split: Split) -> Split:
        return Split(pipeline.encode(split.inputs), split.given, split.true)

    tests = {name: encoded(split) for name, split in found.tests.items()}
    return Dataset(name, found.classes, encoded(found.train), tests, pipeline=pipeline)


def image_pipeline(
    inputs: Any, features: str | None, size: int, hash: str | None = None
) -> ImagePipeline | NetworkPipeline:
    """Fit features of images, by default patches."""
    model = model_of(features, TIMM)
    if model is not None:
        return NetworkPipeline.fit(inputs, model, hash)
    return ImagePipeline.fit(inputs, read_atoms(features or FEATURES), size)


def _with_rows(found: Dataset, name: str, features: str, path: Path) -> Dataset:
    """Return a folder's images as rows of a file, which are in the order of the images' paths."""
    if (path / "train").is_dir():
        raise SpecError(
            f"features in a file are for a folder without test folders, {path} has some; use "
            f"'{TIMM}:MODEL', or .npz files"
        )
    parts = [found.train, found.tests["test"]]
    files = [part.inputs for part in parts]
    assert all(isinstance(one, ImageFiles) for one in files)
    names = np.concatenate([one.names for one in files])  # type: ignore[union-attr]
    place = torch.from_numpy(np.argsort(np.argsort(names, kind="stable"), kind="stable"))
    rows = read_rows(features, len(names), "images")[place]
    train, test = torch.split(rows, [len(part) for part in parts])
    pipeline = ArrayPipeline.fit(train)
    splits = [
        Split(pipeline.encode(one), part.given, part.true)
        for one, part in zip((train, test), parts, strict=True)
    ]
    return Dataset(name, found.classes, splits[0], {"test": splits[1]}, pipeline=pipeline)


def _load_arrays(
    path: Path,
    label: str | None,
    true: str | None,
    weight: str | None,
    features: str | None,
    features_hash: str | None,
    test_fraction: float,
) -> Dataset:
    inputs, classes, given, truth = read_own_arrays(path, label=label, true=true)
    weights = None if weight is None else _array_weights(path, weight, len(given))
    rows = stratify(given, test_fraction)
    if features is not None and is_rows(features):
        inputs = read_rows(features, len(given))
    elif features is not None and inputs.ndim == 2:
        raise SpecError(f"features can only be chosen for images, {path} has rows: {features!r}")
    pipeline: Pipeline
    if inputs.ndim == 2:
        pipeline = ArrayPipeline.fit(inputs[rows[0]])
    else:
        pipeline = image_pipeline(inputs[rows[0]], features, inputs.shape[-1], features_hash)
    whole = Split(pipeline.encode(inputs), given, truth, weights)
    return _divided(path.name, classes, whole, rows, pipeline)


def _array_weights(path: Path, name: str, count: int) -> Tensor:
    found = pick(read_arrays(path), [name], path, "weights")
    if found.dtype.kind not in "fiub" or found.shape != (count,):
        raise ValueError(
            f"{path}: weights must be {count} numbers, got {found.dtype} of shape {found.shape}"
        )
    return check_weights(torch.from_numpy(found.astype(np.float64)), str(path), name)


def read_own_arrays(
    path: PathLike, *, label: str | None = None, true: str | None = None
) -> tuple[Tensor, tuple[str, ...], Tensor, Tensor | None]:
    """Read inputs, class names, given labels and true ones (or None) of a .npz file."""
    arrays = read_arrays(path)
    inputs = as_inputs(pick(arrays, INPUTS, path, "inputs"), path)
    texts = [_label_texts(arrays, [label] if label else LABEL_NAMES, path, len(inputs))]
    if true is not None or any(name in arrays for name in TRUE_NAMES):
        texts.append(_label_texts(arrays, [true] if true else TRUE_NAMES, path, len(inputs)))
    classes = in_order(name for part in texts for name in part)
    if len(classes) < 2:
        raise ValueError(f"{path}: labels must have two classes or more, got only {classes[0]!r}")
    index = {name: position for position, name in enumerate(classes)}
    given, *truth = (torch.tensor([index[name] for name in part]) for part in texts)
    return inputs, classes, given, truth[0] if truth else None


def _label_texts(
    arrays: dict[str, Any], names: Sequence[str], path: PathLike, count: int
) -> list[str]:
    found = pick(arrays, names, path, "labels")
    if found.dtype.kind not in "iubUS" or found.shape != (count,):
        raise ValueError(
            f"{path}: labels must be {count} whole numbers or texts, got {found.dtype} of shape "
            f"{found.shape}"
        )
    return [one.decode() if isinstance(one, bytes) else str(one) for one in found.tolist()]

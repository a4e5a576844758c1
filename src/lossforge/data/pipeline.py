"""From a user's samples to the inputs of a network, as fitted to training samples.

A pipeline is plain values and tensors, so that a model can be kept without pickling code.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from .dataset import Inputs
from .embeddings import TIMM, Sentences, check_hash, embed_images, is_rows, read_rows
from .features import Words, moments, scale
from .folders import image_files
from .own_table import gaps
from .patches import Dictionary, Images, code_all, learn_and_code, one_thread
from .source import PathLike
from .tables import Columns, Encoder, is_blank, read_columns

Place = Callable[[int], str]
Plain = dict[str, Any]
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class TablePipeline:
    """Texts as weights of words or as embeddings, numbers standardised, categories one-hot.

    Args:
        texts: The columns whose texts are joined.
        words: Their features; None without texts.
        encoders: The other columns.
    """

    kind: ClassVar[str] = "table"

    texts: tuple[str, ...]
    words: Words | Sentences | None
    encoders: tuple[Encoder, ...]

    @classmethod
    def fit(
        cls,
        table: Columns,
        texts: Sequence[str],
        others: Sequence[str],
        sentences: Sentences | None = None,
        whole: Columns | None = None,
    ) -> "TablePipeline":
        """Fit the columns of texts and the other columns to a table; leave out empty ones.

        Args:
            table: The rows.
            texts: The columns of texts.
            others: The columns of numbers and categories.
            sentences: What encodes the texts; None learns weights of words.
            whole: The table they are of, see `Encoder.fit`.
        """
        words: Words | Sentences | None = sentences
        if sentences is not None and not texts:
            raise ValueError(f"{table.path} must have a column of texts for embeddings, got none")
        filled = tuple(name for name in texts if not all(map(is_blank, table[name])))
        if not filled:
            words = None
        elif words is None:
            listed = ", ".join(repr(name) for name in filled)
            words = Words.fit(_joined(table, filled), name=f"{table.path}: {listed}")
        fitted = [Encoder.fit(name, table, whole) for name in others]
        encoders = tuple(one for one in fitted if one.categories != ())
        if not filled and not encoders:
            raise ValueError(f"{table.path}: no column has a value in the training rows")
        return cls(filled, words, encoders)

    def encode(self, table: Columns) -> Tensor:
        """Return one row of features for each row of a table."""
        blocks = [encoder(table) for encoder in self.encoders]
        if self.words is not None:
            blocks.insert(0, scale(self.words(_joined(table, self.texts))))
        return torch.cat(blocks, 1)

    def read(self, path: PathLike) -> tuple[Tensor, Place]:
        """Read a table with the same columns: its features, and the place of each row.

        Warns of cells without a value.
        """
        table = read_columns(path)
        rows = self.encode(table)
        kinds = {one.name: one.categories is None for one in self.encoders}
        for note in gaps(table, self.texts, kinds):
            warnings.warn(note, stacklevel=2)
        return rows, table.where

    def plain(self) -> tuple[Plain, Tensors]:
        """Return all it consists of, as JSON holds it and as tensors."""
        plain = {"texts": list(self.texts), "encoders": [asdict(one) for one in self.encoders]}
        if self.words is None:
            return plain, {}
        if isinstance(self.words, Sentences):
            return {**plain, "sentences": asdict(self.words)}, {}
        plain["words"] = list(self.words.vocabulary)
        return plain, {"idf": self.words.idf, "components": self.words.components}

    @classmethod
    def from_plain(cls, plain: Plain, tensors: Tensors) -> "TablePipeline":
        """Return what `plain` describes."""
        words: Words | Sentences | None = None
        if "sentences" in plain:
            words = Sentences(**plain["sentences"])
        elif "words" in plain:
            words = Words(tuple(plain["words"]), tensors["idf"], tensors["components"])
        encoders = []
        for one in plain["encoders"]:
            values = one["categories"]
            encoders.append(
                Encoder(**{**one, "categories": None if values is None else tuple(values)})
            )
        return cls(tuple(plain["texts"]), words, tuple(encoders))


def _joined(table: Columns, names: Sequence[str]) -> list[str]:
    columns = [table.texts(name, complete=False) for name in names]
    return [" ".join(words) for words in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class ImagePipeline:
    """Images as patch features, see `lossforge.data.patches`.

    Args:
        dictionary: The atoms.
        mean: (F,) of the features of training images.
        deviation: (F,) of the same.
        size: Height and width that images on disk are resized to.
    """

    kind: ClassVar[str] = "images"

    dictionary: Dictionary
    mean: Tensor
    deviation: Tensor
    size: int

    @classmethod
    def fit(cls, inputs: Inputs, atoms: int, size: int) -> "ImagePipeline":
        """Learn a dictionary from training images, and the scale of their features."""
        dictionary, rows = learn_and_code([Images(inputs)], atoms)
        with one_thread():
            mean, deviation = moments(rows.double())
        return cls(dictionary, mean, deviation, size)

    def encode(self, inputs: Inputs) -> Tensor:
        """Return one row of features for each image."""
        rows = code_all(self.dictionary, [Images(inputs)]).double()
        return ((rows - self.mean) / self.deviation).to(torch.float32)

    def read(self, path: PathLike) -> tuple[Tensor, Place]:
        """Read an image, all images below a folder, or an array of them."""
        inputs, place = read_images(path, self.size)
        return self.encode(inputs), place

    def plain(self) -> tuple[Plain, Tensors]:
        """Return all it consists of, as JSON holds it and as tensors."""
        plain = {"side": self.dictionary.side, "size": self.size}
        tensors = {"project": self.dictionary.project, "shift": self.dictionary.shift}
        return plain, {**tensors, "mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_plain(cls, plain: Plain, tensors: Tensors) -> "ImagePipeline":
        """Return what `plain` describes."""
        dictionary = Dictionary(plain["side"], tensors["project"], tensors["shift"])
        return cls(dictionary, tensors["mean"], tensors["deviation"], plain["size"])


@dataclass(frozen=True, eq=False)
class ArrayPipeline:
    """Measurements in an array, standardised.

    Args:
        mean: (F,) of the training rows.
        deviation: (F,) of the same.
    """

    kind: ClassVar[str] = "array"

    mean: Tensor
    deviation: Tensor

    @classmethod
    def fit(cls, rows: Tensor) -> "ArrayPipeline":
        """Learn mean and deviation of each column."""
        return cls(*moments(rows.double()))

    def encode(self, rows: Tensor) -> Tensor:
        """Return standardised rows."""
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(
                f"the array must have {len(self.mean)} columns, got shape {tuple(rows.shape)}"
            )
        return ((rows.double() - self.mean) / self.deviation).to(torch.float32)

    def read(self, path: PathLike) -> tuple[Tensor, Place]:
        """Read the array of inputs in a .npz file, or a .npy file of features."""
        if is_rows(str(path)):
            return self.encode(read_rows(path)), _row_of(path)
        rows, place = read_inputs(path)
        return self.encode(rows), place

    def plain(self) -> tuple[Plain, Tensors]:
        """Return all it consists of, as JSON holds it and as tensors."""
        return {}, {"mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_plain(cls, plain: Plain, tensors: Tensors) -> "ArrayPipeline":
        """Return what `plain` describes."""
        return cls(tensors["mean"], tensors["deviation"])


@dataclass(frozen=True, eq=False)
class NetworkPipeline:
    """Images as features of a pretrained network, standardised.

    Args:
        model: A folder of a timm model, or its name.
        hash: What `content_hash` must return for the folder; None for a name.
        mean: (F,) of the features of training images.
        deviation: (F,) of the same.
    """

    kind: ClassVar[str] = "timm"

    model: str
    hash: str | None
    mean: Tensor
    deviation: Tensor

    @classmethod
    def fit(cls, inputs: Inputs, model: str, hash: str | None = None) -> "NetworkPipeline":
        """Learn the scale of the features of training images."""
        return cls(model, hash, *moments(embed_images(model, inputs).double()))

    def encode(self, inputs: Inputs) -> Tensor:
        """Return one row of features for each image."""
        check_hash(f"{TIMM}:{self.model}", self.hash)
        rows = embed_images(self.model, inputs).double()
        return ((rows - self.mean) / self.deviation).to(torch.float32)

    def read(self, path: PathLike) -> tuple[Tensor, Place]:
        """Read an image, all images below a folder, or an array of them."""
        inputs, place = read_images(path, SHORT)
        return self.encode(inputs), place

    def plain(self) -> tuple[Plain, Tensors]:
        """Return all it consists of, as JSON holds it and as tensors."""
        tensors = {"mean": self.mean, "deviation": self.deviation}
        return {"model": self.model, "hash": self.hash}, tensors

    @classmethod
    def from_plain(cls, plain: Plain, tensors: Tensors) -> "NetworkPipeline":
        """Return what `plain` describes."""
        return cls(plain["model"], plain["hash"], tensors["mean"], tensors["deviation"])


Pipeline = TablePipeline | ImagePipeline | ArrayPipeline | NetworkPipeline
PIPELINES: dict[str, type[Pipeline]] = {
    one.kind: one for one in (TablePipeline, ImagePipeline, ArrayPipeline, NetworkPipeline)
}
"""All pipelines by kind."""

CHANNELS = (1, 3, 4)  # of images as people keep them
SHORT = 224  # the network's own size replaces it
INPUTS = ("x", "X", "inputs", "features", "images")


@contextmanager
def _opened(path: PathLike) -> Iterator[Any]:
    """Open a .npz file; pickled objects in it are refused."""
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"{place}: no such file")
    try:
        with place.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
            yield found
    # a single array, which numpy reads too, is no context
    except (ValueError, OSError, EOFError, AttributeError, TypeError, BadZipFile) as error:
        raise ValueError(f"{place} must be a .npz file of plain arrays: {error}") from error


def array_names(path: PathLike) -> list[str]:
    """Return the names of the arrays of a .npz file."""
    with _opened(path) as found:
        return list(found.files)


def read_arrays(path: PathLike) -> dict[str, Any]:
    """Read the arrays of a .npz file; pickled objects are refused."""
    with _opened(path) as found:
        return {name: found[name] for name in found.files}


def pick(arrays: Mapping[str, Any], names: Sequence[str], path: PathLike, what: str) -> Any:
    """Return the first array that has one of some names."""
    for name in names:
        if name in arrays:
            return arrays[name]
    known = ", ".join(arrays) or "none"
    raise ValueError(f"{path} must have {what} under {' or '.join(names)}, it has {known}")


def read_inputs(path: PathLike) -> tuple[Tensor, Place]:
    """Read the inputs of a .npz file: rows (N, F), or images (N, C, H, W) or (N, H, W)."""
    return as_inputs(pick(read_arrays(path), INPUTS, path, "inputs"), path), _row_of(path)


def read_images(path: PathLike, size: int) -> tuple[Inputs, Place]:
    """Read an image, all images below a folder, or an array of them, which keeps its size."""
    if Path(path).suffix.lower() == ".npz":
        return read_inputs(path)
    files = image_files(Path(path), size)
    return files, lambda row: str(files.path(row))


def as_inputs(found: Any, path: PathLike) -> Tensor:
    """Check an array of inputs."""
    if found.dtype.kind not in "fiub" or found.ndim not in (2, 3, 4) or not len(found):
        raise ValueError(
            f"{path}: inputs must be numbers (N, F), or images (N, C, H, W) or (N, H, W), got "
            f"{found.dtype} of shape {found.shape}"
        )
    if found.ndim == 4 and found.shape[1] not in CHANNELS and found.shape[3] in CHANNELS:
        raise ValueError(
            f"{path}: images must be (N, C, H, W), got {found.shape}, which seems to be (N, H, W, "
            "C); write x.transpose(0, 3, 1, 2)"
        )
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{path}: inputs must have no missing or infinite value")
    if found.ndim == 2:
        return torch.from_numpy(found.astype(np.float64))
    images = torch.from_numpy(_pixels(found, path))
    return images[:, None] if found.ndim == 3 else images


def _pixels(found: Any, path: PathLike) -> Any:
    """Return integers from 0 to 255 as bytes, and floats from 0 to 1 in float32."""
    low, high = found.min(), found.max()
    if found.dtype.kind in "iu" and low >= 0 and high <= 255:
        return found.astype(np.uint8, copy=False)
    if found.dtype.kind in "fb" and low >= 0 and high <= 1:
        return found.astype(np.float32, copy=False)
    raise ValueError(
        f"{path}: images must be integers from 0 to 255 or floats from 0 to 1, got "
        f"{found.dtype} from {low} to {high}"
    )


def _row_of(path: PathLike) -> Place:
    name = Path(path).name
    return lambda row: f"{name}, row {row}"

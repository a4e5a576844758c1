"""Features from elsewhere: a file of them, or a pretrained network by its name or path.

============================== ===============================================================
"embeddings.npy"               one row for each sample, in the order of the data
"sentence-transformers:MODEL"  embeddings of texts; MODEL is a folder or a name on its hub
"timm:MODEL"                   what a network for images has before its last layer; likewise
============================== ===============================================================

Networks are only evaluated. What they return is kept in the user's cache by a hash of the samples
and of the network, see `lossforge.data.kept`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import interrupts
from ..errors import SpecError, extra
from .dataset import Inputs
from .images import ImageFiles
from .kept import Lines, kept_rows, tensors_hash
from .source import PathLike, content_hash

ROWS = ".npy"
SENTENCES, TIMM = "sentence-transformers", "timm"
EXTRAS = {SENTENCES: "embed", TIMM: "timm"}
VERSION = 1  # part of the name of kept features; changes with their values
TEXTS, IMAGES = 512, 64  # encoded between two reports of progress

OnProgress = Callable[[int, int], object]


def is_rows(features: str | None) -> bool:
    """Check whether features are those of a file."""
    return features is not None and Path(features).suffix.lower() == ROWS


def model_of(features: str | None, kind: str) -> str | None:
    """Return MODEL of "KIND:MODEL", an existing folder as an absolute path; None of other features.

    Args:
        features: As the user wrote it.
        kind: `SENTENCES` or `TIMM`.
    """
    found, colon, model = (features or "").partition(":")
    if found != kind or not colon:
        return None
    if not model:
        raise ValueError(f"features must be '{kind}:MODEL', a folder or a name, got {features!r}")
    return _located(model, kind)


def described(features: str) -> dict[str, str]:
    """Return features as a run names them: an absolute path, with the hash of its content."""
    place = Path(features)
    if is_rows(features):
        if not place.is_file():
            raise FileNotFoundError(f"{features}: no such file")
        return {"features": str(place.resolve()), "features_hash": content_hash(place)}
    for kind in EXTRAS:
        model = model_of(features, kind)
        if model is not None:
            hashed = {"features_hash": content_hash(Path(model))} if os.path.isdir(model) else {}
            return {"features": f"{kind}:{model}", **hashed}
    return {"features": features}


def check_hash(features: str | None, expected: str | None) -> None:
    """Raise unless the file or folder that features name has the content of `described`."""
    if expected is None or features is None:
        return
    found = described(features).get("features_hash")
    if found != expected:
        raise SpecError(f"{features} has changed: its SHA-256 must be {expected}, got {found}")


def read_rows(path: PathLike, count: int | None = None, samples: str = "rows") -> Tensor:
    """Read features from a .npy file: (N, F), float64.

    Args:
        path: The file.
        count: The number of samples, each of which must have a row; None takes any.
        samples: What an error calls the samples.
    """
    found = read_array(path)
    expected = "(rows, features)" if count is None else f"({count:,} {samples}, features)"
    if found.ndim != 2 or found.dtype.kind not in "fiub" or not found.size:
        raise ValueError(
            f"{path}: features must be numbers of shape {expected}, got {found.dtype} of shape "
            f"{found.shape}"
        )
    if count is not None and len(found) != count:
        raise ValueError(
            f"{path}: features must have a row for each of the {count:,} {samples}, in the same "
            f"order, got {len(found):,} rows"
        )
    bad = ~np.isfinite(found).all(1)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{path}: features must be finite, row {row} (counted from 0) is not")
    return torch.from_numpy(found.astype(np.float64))


def read_array(path: PathLike) -> NDArray[Any]:
    """Read a .npy file; pickled objects are refused."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} must be a .npy file of plain numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{path} must hold one array, as numpy.save writes it")
    return found


@dataclass(frozen=True)
class Sentences:
    """Texts as embeddings of a pretrained network.

    Args:
        model: A folder of a sentence-transformers model, or its name on the Hugging Face hub.
        hash: What `content_hash` must return for the folder.
    """

    model: str
    hash: str | None = None

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Return one row of features for each text, before scaling."""
        check_hash(f"{SENTENCES}:{self.model}", self.hash)
        return embed_texts(self.model, texts)


def embed_texts(
    model: str, texts: Sequence[str], *, on_progress: OnProgress | None = None
) -> Tensor:
    """Return the sentence embeddings of texts (N, D), float32.

    Args:
        model: A folder of a sentence-transformers model, or its name on the Hugging Face hub.
        texts: The texts.
        on_progress: Called with the number of texts that are encoded, and of all.
    """
    report = on_progress or Lines("embeddings", "texts")
    encoder = _Loaded(model, SENTENCES, _sentence_encoder)

    def compute() -> Tensor:
        parts, done = [], 0
        network = encoder.network()
        report(0, len(texts))
        for start in range(0, len(texts), TEXTS):
            interrupts.check()
            part = list(texts[start : start + TEXTS])
            parts.append(torch.from_numpy(network.encode(part, show_progress_bar=False)))
            done += len(part)
            report(done, len(texts))
        return torch.cat(parts).to(torch.float32)

    raw = [text.encode("utf-8", "surrogatepass") for text in texts]
    content = [encoder.identity(), np.array([len(one) for one in raw]), _bytes(b"".join(raw))]
    return kept_rows(f"sentences-{VERSION}", content, compute)


def embed_images(model: str, images: Inputs, *, on_progress: OnProgress | None = None) -> Tensor:
    """Return what a timm network has before its last layer, for each image (N, D), float32.

    Images are resized as the network's own configuration says, with bilinear interpolation; the
    middle is taken.

    Args:
        model: A folder of a timm model, or its name.
        images: Files, or pixels (N, C, H, W) of one or three channels, uint8 or in [0, 1].
        on_progress: Called with the number of images that are encoded, and of all.
    """
    if isinstance(images, Tensor) and (images.ndim != 4 or images.shape[1] not in (1, 3)):
        raise ValueError(
            "inputs must be images (N, 1 or 3, height, width) for a network of timm, got shape "
            f"{tuple(images.shape)}"
        )
    report = on_progress or Lines("embeddings")
    encoder = _Loaded(model, TIMM, _image_encoder)
    chunks = torch.split(torch.arange(len(images)), IMAGES)

    @torch.no_grad()
    def compute() -> Tensor:
        network, parts = encoder.network(), []
        config = extra("timm.data", EXTRAS[TIMM]).resolve_model_data_config(network)
        report(0, len(images))
        for rows in chunks:
            interrupts.check()
            parts.append(network(_prepared(images, rows, config)).flatten(1).float())
            report(int(rows[-1]) + 1, len(images))
        return torch.cat(parts)

    return kept_rows(f"timm-{VERSION}", _image_content(encoder, images, chunks), compute)


def _image_content(
    encoder: "_Loaded", images: Inputs, chunks: Sequence[Tensor]
) -> Iterator[NDArray[Any]]:
    yield encoder.identity()
    if isinstance(images, ImageFiles):
        for row in range(len(images)):
            yield _bytes(images.path(row).read_bytes())
    else:
        for rows in chunks:
            yield images[rows].numpy()


def _prepared(images: Inputs, rows: Tensor, config: dict[str, Any]) -> Tensor:
    """Return a batch of images as a network of timm takes it."""
    size = config["input_size"][-1]
    before = int(size / config["crop_pct"])  # timm's own rounding
    if isinstance(images, ImageFiles):
        pixels = replace(images, size=size, resize=before)[rows]
    else:
        pixels = images[rows]
    whole = pixels.to(torch.float32) / (255 if pixels.dtype == torch.uint8 else 1)
    if whole.shape[1] == 1:
        whole = whole.expand(-1, 3, -1, -1)
    if tuple(whole.shape[-2:]) != (size, size):
        whole = F.interpolate(whole, (size, size), mode="bilinear", antialias=True)
    mean, deviation = (
        torch.tensor(config[name], dtype=torch.float32).view(1, 3, 1, 1) for name in ("mean", "std")
    )
    return (whole - mean) / deviation


class _Loaded:
    """A pretrained network that is loaded when it is needed, and its identity.

    Args:
        model: A folder or a name.
        kind: `SENTENCES` or `TIMM`.
        load: Loads it.
    """

    def __init__(self, model: str, kind: str, load: Callable[[str], Any]) -> None:
        self._place, self._kind, self._load = _located(model, kind), kind, load
        self._found: Any = None

    def network(self) -> Any:
        if self._found is None:
            # Building a network draws weights before it reads them; the random state is kept.
            try:
                with torch.random.fork_rng(devices=[]):
                    self._found = self._load(self._place)
            except (OSError, RuntimeError, ValueError) as error:  # of many lines, some of them
                reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
                raise ValueError(
                    f"the {self._kind} model {self._place!r} cannot be loaded: {reason}; give a "
                    "folder that holds one, or a name that its library can download"
                ) from error
        return self._found

    def identity(self) -> NDArray[Any]:
        """Return bytes that differ between networks: of a folder its content, else its weights."""
        package = extra(self._kind.replace("-", "_"), EXTRAS[self._kind])
        text = f"{self._kind} {package.__version__} "
        if os.path.isdir(self._place):
            return _bytes((text + content_hash(Path(self._place))).encode())
        return _bytes(f"{text} {self._place} {tensors_hash(self.network().state_dict())}".encode())


def _located(model: str, kind: str) -> str:
    """Return a folder as an absolute path, and a name as it is."""
    path = os.path.expanduser(model)
    if os.path.isdir(path):
        return os.path.abspath(path)
    if path.startswith((".", os.sep)):
        raise FileNotFoundError(f"{path}: no folder of a {kind} model")
    return model


def _sentence_encoder(place: str) -> Any:
    return extra("sentence_transformers", EXTRAS[SENTENCES]).SentenceTransformer(place)


def _image_encoder(place: str) -> nn.Module:
    name = f"local-dir:{place}" if os.path.isdir(place) else place
    made = extra("timm", EXTRAS[TIMM]).create_model(name, pretrained=True, num_classes=0)
    network: nn.Module = made.eval().float()
    return network


def _bytes(content: bytes) -> NDArray[Any]:
    return np.frombuffer(content, dtype=np.uint8)

"""Finished folds and trials of an audit, kept so that an interrupted one continues."""

import hashlib
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .. import __version__
from ..benchmark.claim import claimed
from ..data import Dataset, ImageFiles
from ..files import write_atomically
from ..training.folds import Prediction

UNFINISHED = "unfinished"  # the folder of the parts, in that of the audit
DIGEST = 32  # bytes before the content of a file
# parts and claims, and the drafts of both that a crash leaves
_OURS = re.compile(
    r"[0-9a-f]{16}\.npz|\.[0-9a-f]{16}\.npz\.[0-9a-f]{32}\.part|claim\.\d+|\.claim\.[0-9a-f]{32}"
)


@contextmanager
def unfinished(folder: Path | None) -> Iterator[Path | None]:
    """Claim the place where an audit keeps its parts, and remove it when the audit is complete.

    Args:
        folder: The folder of the audit; None keeps nothing.
    """
    if folder is None:
        yield None
        return
    place = folder / UNFINISHED
    place.mkdir(parents=True, exist_ok=True)
    with claimed(place / "claim") as ours:
        if not ours:
            raise ValueError(f"another process is already writing an audit to {folder}")
        yield place
        _remove(place)


def _remove(place: Path) -> None:
    """Remove our files, and the folder if nothing else is in it."""
    for path in place.iterdir():
        if _OURS.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
    with suppress(OSError):
        place.rmdir()


def check_place(folder: Path) -> None:
    """Raise ValueError if an audit's folder has something of the user's where parts would be kept.

    Args:
        folder: The folder of the audit, which need not exist.
    """
    place = folder / UNFINISHED
    if place.exists() and not place.is_dir():
        raise ValueError(f"{str(place)!r} must be a folder or absent, it is a file")
    names = sorted(path.name for path in place.iterdir()) if place.exists() else []
    for name in names:
        if not _OURS.fullmatch(name):
            raise ValueError(f"{str(place)!r} must hold parts of an audit alone, it holds {name!r}")


class Kept:
    """Predictions of held-out folds, in files that are named by all that determines them.

    A changed table or option gives other names, so that nothing of another audit is used; what it
    does not change is used again.

    Args:
        place: Where to keep them; None keeps nothing.
        dataset: The samples and labels.
    """

    def __init__(self, place: Path | None, dataset: Dataset) -> None:
        self._place = place
        self._data = None if place is None else _hash(dataset)

    def prediction(self, fit: Callable[[], Prediction], **what: object) -> Prediction:
        """Return the kept prediction, or make and keep it.

        Args:
            fit: Makes it.
            what: All that determines it besides the data.
        """
        if self._place is None:
            return fit()
        text = json.dumps([__version__, self._data, what], sort_keys=True, default=repr)
        path = self._place / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"
        found = _read(path)
        if found is None:
            found = fit()
            _write(path, found)
        return found


def _write(path: Path, found: Prediction) -> None:
    file = io.BytesIO()
    np.savez(file, logits=found.logits.numpy(), epoch=np.array(found.epoch))
    content = file.getvalue()
    write_atomically(path, hashlib.sha256(content).digest() + content)


def _read(path: Path) -> Prediction | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        warnings.warn(f"{path} is damaged and ignored", stacklevel=2)
        return None
    with np.load(io.BytesIO(content[DIGEST:]), allow_pickle=False) as arrays:
        return Prediction(torch.from_numpy(arrays["logits"]), int(arrays["epoch"]))


def _hash(dataset: Dataset) -> str:
    """Hash all that a network sees of the training split."""
    inputs, content = dataset.train.inputs, hashlib.sha256()
    # functions are shown with their address, which differs between processes
    about = re.sub(" at 0x[0-9a-f]+", "", repr(dataset.transform))
    if isinstance(inputs, Tensor):
        about += f" {inputs.dtype} {tuple(inputs.shape)}"
        content.update(inputs.contiguous().numpy().tobytes())
    elif isinstance(inputs, ImageFiles):
        about += f" {inputs.root.resolve()} {inputs.size} {inputs.resize}"
        content.update(inputs.names.tobytes())
    content.update(dataset.train.given.numpy().tobytes())
    content.update(f"{about} {dataset.name} {dataset.num_classes}".encode(errors="surrogateescape"))
    return content.hexdigest()

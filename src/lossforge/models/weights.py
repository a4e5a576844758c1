"""Weights from files and addresses: read without running code, loaded all or not at all."""

import hashlib
import os
import pickle
import re
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse

import torch
from torch import Tensor

from ..errors import extra
from .network import Network

# torchvision's ResNet50_Weights (torchvision/models/resnet.py); a name ends in the first digits of
# the file's SHA-256, which is what is checked.
KNOWN = {
    "imagenet1k_v1": "https://download.pytorch.org/models/resnet50-0676ba61.pth",
    "imagenet1k_v2": "https://download.pytorch.org/models/resnet50-11ad3fa6.pth",
}
_HASH = re.compile(r"-([0-9a-f]{8,64})\.[^.]+$")  # torch.hub's convention: eight digits or more
_HEAD = "fc."
_SHOWN = 5
PathLike = str | os.PathLike[str]


def load_weights(
    model: Network,
    source: PathLike | Mapping[str, Tensor],
    *,
    head: Literal["load", "new"] = "load",
    cache: PathLike | None = None,
) -> None:
    """Replace a network's weights; if anything does not fit, raise and change nothing.

    Nothing but tensors is read from a file: a pickle that holds more is refused. Keys may carry
    the prefixes of DistributedDataParallel ("module.") and torch.compile ("_orig_mod.").

    Args:
        model: The network to load into.
        source: A file (.safetensors, or what torch.save wrote), an https:// or file:// address, a
            name ("imagenet1k_v1", "imagenet1k_v2": torchvision's ResNet-50), or a state dict.
        head: "load" loads the classifier too, which must then have as many classes; "new" leaves
            the model's own, freshly drawn one, for weights of other classes.
        cache: Folder for downloads; torch.hub's, which torchvision shares, if None. Where a
            file's name ends in its hash, as torchvision's do, the file is checked against it.
    """
    if head not in ("load", "new"):
        raise ValueError(f"head must be 'load' or 'new', got {head!r}")
    state = _strip(_tensors(source, cache))
    wanted = model.state_dict()
    if head == "new":
        state = {key: value for key, value in state.items() if not key.startswith(_HEAD)}
        wanted = {key: value for key, value in wanted.items() if not key.startswith(_HEAD)}
    _check_fit(state, wanted)
    # Converted before the first is replaced: a conversion that torch lacks must not stop half-way.
    state = {key: value.to(wanted[key]) for key, value in state.items()}
    model.load_state_dict(state, strict=False)


def _tensors(
    source: PathLike | Mapping[str, Tensor], cache: PathLike | None
) -> Mapping[str, Tensor]:
    """The state dict that a source stands for."""
    if isinstance(source, str):
        source = KNOWN.get(source.strip().lower(), source)
        if source.startswith(("https://", "file://")):
            source = _fetch(source, cache)
        elif "://" in source:
            raise ValueError(f"source must be an https:// or file:// address, got {source!r}")
    if not isinstance(source, str | os.PathLike | Mapping):
        raise TypeError(f"source must be a file, an address or a state dict, got {source!r}")
    state = source if isinstance(source, Mapping) else _read(Path(source).expanduser())
    if not isinstance(state, Mapping):
        raise ValueError(f"weights must be a state dict, got a {type(state).__name__}")
    wrong = [
        key if isinstance(key, str) else repr(key)
        for key, value in state.items()
        if not (isinstance(key, str) and isinstance(value, Tensor))
    ]
    if wrong:
        raise ValueError(
            f"weights must be a state dict, a tensor for every name; not so {_some(wrong)}. "
            "If the state dict is one entry of the file, pass that entry as source."
        )
    return state


def _read(path: Path) -> object:
    if not path.is_file():
        raise FileNotFoundError(
            f"no weights at {path}: expected a file, or one of {', '.join(KNOWN)}"
        )
    if path.suffix == ".safetensors":
        failure = extra("safetensors", "bench").SafetensorError
        try:
            state: object = extra("safetensors.torch", "bench").load_file(path)
        except failure as error:
            raise ValueError(f"{path} is not a readable safetensors file: {error}") from error
        return state
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # torch's text goes on to recommend weights_only=False, which runs what the file says
        reason = str(error).rpartition("WeightsUnpickler error: ")[2].strip().partition("\n")[0]
        raise ValueError(
            f"{path} was refused: it must hold tensors in plain containers and nothing else, "
            f"since unpickling anything else can run code ({reason})"
        ) from None
    except OSError:
        raise
    except Exception as error:  # of any kind: a text is read as the commands of a pickle
        reason = str(error) if isinstance(error, RuntimeError) else repr(error)
        raise ValueError(f"{path} is not a readable file of torch.save: {reason}") from error


def _fetch(url: str, cache: PathLike | None) -> Path:
    """The downloaded file, checked against the hash in its name if there is one."""
    name = Path(urlparse(url).path).name
    folder = Path(torch.hub.get_dir(), "checkpoints") if cache is None else Path(cache).expanduser()
    found = _HASH.search(name)
    digits = found.group(1) if found else None
    if digits is None:
        # Without a hash the name is no identity: model.pth of two sites must not be confused.
        folder /= hashlib.sha256(url.encode()).hexdigest()[:16]
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(path), digits)
        except RuntimeError as error:
            raise ValueError(f"{url} is not the file that its name says: {error}") from error
        except (OSError, HTTPException) as error:
            raise OSError(f"{url} could not be downloaded to {folder}: {error}") from error
    elif digits is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if not digest.startswith(digits):
            raise ValueError(
                f"{path} must have a SHA-256 that begins with {digits}, got {digest}; "
                "delete or move it to download it again"
            )
    return path


def _strip(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of the network itself, without the names of what it was wrapped in."""
    plain = dict(state)
    for _ in range(2):
        for prefix in ("module.", "_orig_mod."):
            if plain and all(key.startswith(prefix) for key in plain):
                plain = {key.removeprefix(prefix): value for key, value in plain.items()}
    return plain


def _check_fit(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise unless the state dict has the keys, and tensors of the kind, that the network has."""
    # Batch norms count batches only since torch 0.4; older files are fine without.
    missing = [
        key for key in wanted if key not in state and not key.endswith(".num_batches_tracked")
    ]
    unexpected = [key for key in state if key not in wanted]
    shared = [key for key in state if key in wanted]
    misshapen = {
        key: f"{key} is {tuple(state[key].shape)}, must be {tuple(wanted[key].shape)}"
        for key in shared
        if state[key].shape != wanted[key].shape
    }
    kinds = {key: (_kind(state[key]), _kind(wanted[key])) for key in shared}
    unlike = [f"{key} is {a}, must be {b}" for key, (a, b) in kinds.items() if a != b]
    problems = [
        f"{kind}: {_some(found)}"
        for kind, found in (
            ("missing", missing),
            ("unexpected", unexpected),
            ("of another shape", misshapen.values()),
            ("of another kind", unlike),
        )
        if found
    ]
    if misshapen and all(key.startswith(_HEAD) for key in misshapen):
        problems.append("the head is for other classes; head='new' keeps the model's own")
    if problems:
        raise ValueError(f"the weights do not fit the model; {'; '.join(problems)}")


def _kind(tensor: Tensor) -> str:
    """What must agree for a copy to keep the values; precision and device may differ."""
    real = "floating" if tensor.is_floating_point() else "whole numbers"
    numbers = "complex" if tensor.is_complex() else real
    layout = str(tensor.layout).removeprefix("torch.")
    return f"{numbers}, {layout}" + (", without values (meta)" if tensor.is_meta else "")


def _some(items: Iterable[str]) -> str:
    """The items, or the first few of many and how many more."""
    listed = list(items)
    more = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

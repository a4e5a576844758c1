"""What came out of a run, and the circumstances it came out of."""

import hashlib
import platform
import socket
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import __version__
from ..data import Dataset
from ..noise import confusion_counts, noise_rate
from ..training.distributed import world
from .spec import RunSpec

DRAWN_CLASSES = 100  # of more classes a matrix is neither kept nor drawn


def record(
    spec: RunSpec,
    dataset: Dataset,
    model: nn.Module,
    metrics: list[dict[str, Any]],
    failed: str | None,
) -> dict[str, Any]:
    """What came out: the same, bit for bit, whenever the run is done on one kind of CPU."""
    train, rate, counts = dataset.train, None, None
    if train.true is not None:
        rate = noise_rate(train.true, train.given)
        if dataset.num_classes <= DRAWN_CLASSES:
            counts = confusion_counts(train.true, train.given, dataset.num_classes).tolist()
    return {
        "id": spec.id,
        "spec": spec.model_dump(),
        "classes": dataset.num_classes,
        "noise_rate": rate,
        "transition": counts,
        "metrics": metrics,
        "parameters": _digest(model),
        "failed": failed,
    }


def describe(spec: RunSpec, device: str, started: float, ticks: Sequence[float]) -> dict[str, Any]:
    """The circumstances: time, versions, machine, and the command that does it again.

    Args:
        spec: The run.
        device: Where it was trained.
        started: When the process that finished it took it up.
        ticks: The ends of that process's epochs, after its first start.
    """
    commit, clean = _commit()
    return {
        "seconds": time.time() - started,
        "epoch_seconds": [after - before for before, after in pairwise(ticks)],
        "versions": {
            "lossforge": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "commit": commit,
        "clean_tree": clean,
        "host": socket.gethostname(),
        "device": _device_name(device),
        "processes": world()[1],
        "command": spec.command(),
    }


def _digest(model: nn.Module) -> str:
    """A hash of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _device_name(device: str) -> str:
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> tuple[str | None, bool | None]:
    """The commit of the package's working tree, if it lies in one, and whether it is clean."""
    try:
        found = [
            subprocess.run(
                ["git", *words],
                cwd=Path(__file__).parent,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.SubprocessError):
        return None, None
    return found[0], not found[1]

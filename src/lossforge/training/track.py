"""Writers of metrics during a run: callables for `train(on_epoch=...)`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import extra
from ..files import write_atomically
from .state import State


@dataclass(frozen=True)
class MetricsFile:
    """Keeps a file with one line of JSON for each finished epoch.

    The file is replaced as a whole, so it always agrees with the state, without partial lines or
    repeated epochs, wherever a run was interrupted. A failure, such as a full disk, names the file
    and keeps its old content.

    Args:
        path: The file, such as `metrics.jsonl`.
    """

    path: Path

    def __call__(self, state: State) -> None:
        lines = "".join(json.dumps(row) + "\n" for row in state.metrics)
        write_atomically(self.path, lines.encode(), durable=False)


class SupportsLog(Protocol):
    """The interface of a tracker, such as a wandb run."""

    def log(self, data: dict[str, Any], /, *, step: int) -> object: ...


@dataclass(frozen=True)
class Tracker:
    """Hands each epoch's metrics to a tracker with the method ``log(dict, step=epoch)``.

    Args:
        run: The tracker.
    """

    run: SupportsLog

    def __call__(self, state: State) -> None:
        self.run.log(flat(state.metrics[-1]), step=state.epoch)


class TensorBoard:
    """Writes each epoch's metrics as TensorBoard events.

    Args:
        folder: Folder of the event files. It may hold those of an interrupted run; repeated epochs
            replace theirs.
    """

    def __init__(self, folder: Path) -> None:
        extra("tensorboard", "track")
        self.folder = folder
        self._writer: Any = None

    def __call__(self, state: State) -> None:
        if self._writer is None:
            tensorboard = extra("torch.utils.tensorboard", "track")
            self._writer = tensorboard.SummaryWriter(str(self.folder), purge_step=state.epoch)
        for name, value in flat(state.metrics[-1]).items():
            self._writer.add_scalar(name, value, state.epoch)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()


def flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Flatten metrics to one level, "tests/test/top1"; leave out unknown ones."""
    result: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}/")
        elif value is not None:
            result[prefix + name] = value
    return result

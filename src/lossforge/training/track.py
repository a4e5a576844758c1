"""Where the metrics go while a run is under way: callables for `train(on_epoch=...)`."""

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
    """Keeps a file with one line of JSON for each epoch done.

    The file is replaced as a whole, so it always has what the state has, no half line and no epoch
    twice, wherever a run was interrupted and continued. A failure, such as a full disk, names the
    file and leaves what was there.

    Args:
        path: The file, such as `metrics.jsonl`.
    """

    path: Path

    def __call__(self, state: State) -> None:
        lines = "".join(json.dumps(row) + "\n" for row in state.metrics)
        write_atomically(self.path, lines.encode(), durable=False)


class SupportsLog(Protocol):
    """What a tracker must do, such as a wandb run."""

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
        folder: Where the event files go. Those of a run that was interrupted may be there:
            epochs done again replace what they hold.
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
        """Finish the event file."""
        if self._writer is not None:
            self._writer.close()


def flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Metrics in one level, "tests/test/top1", without those that are unknown."""
    result: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}/")
        elif value is not None:
            result[prefix + name] = value
    return result

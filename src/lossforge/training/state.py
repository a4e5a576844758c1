"""Checkpoints: a run between two epochs."""

import copy
import io
import zipfile
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn, optim


@dataclass(frozen=True, eq=False)
class State:
    """Everything needed to continue a run after an epoch to the same bits.

    It holds no random state: see `lossforge.training.seeds`.

    Args:
        model: The model's state dict.
        optimizer: The optimizer's state dict.
        metrics: One dict for each finished epoch.
    """

    model: dict[str, Any]
    optimizer: dict[str, Any]
    metrics: list[dict[str, Any]]

    @classmethod
    def take(
        cls, model: nn.Module, optimizer: optim.Optimizer, metrics: list[dict[str, Any]]
    ) -> "State":
        """Copy the present state, so that further training does not change it."""
        weights, moments = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        return cls(weights, moments, list(metrics))  # rows are never changed

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.metrics)

    def restore(self, model: nn.Module, optimizer: optim.Optimizer) -> None:
        """Load this state into a model and its optimizer."""
        model.load_state_dict(self.model)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer))

    def check(self, model: nn.Module, optimizer: optim.Optimizer) -> None:
        """Raise ValueError unless this state fits a model and its optimizer, which stay the same.

        It does if copies of the two, once restored, have exactly this state.
        """
        copied, steps = copy.deepcopy((model, optimizer))
        try:
            self.restore(copied, steps)
            found = State.take(copied, steps, self.metrics)
            shapes = [
                (value.shape, parameter.shape)
                for parameter, values in steps.state.items()
                for value in values.values()
                if isinstance(value, Tensor) and value.ndim
            ]
            fits = all(one == other for one, other in shapes)
            epochs = [row["epoch"] for row in self.metrics]
        except Exception as error:  # load_state_dict raises anything on content of another shape
            raise ValueError(f"it does not fit the model: {error}") from error
        fits &= _same(found.model, self.model) and _same(found.optimizer, self.optimizer)
        if not fits or epochs != list(range(1, 1 + self.epoch)):
            raise ValueError("it does not fit the model")

    def to_bytes(self) -> bytes:
        """Serialise the state."""
        file = io.BytesIO()
        content = {"model": self.model, "optimizer": self.optimizer, "metrics": self.metrics}
        torch.save(content, file)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "State":
        """Read what `to_bytes` wrote; raise a ValueError if it is cut or damaged.

        No code in the content is executed.
        """
        try:
            # torch.load ignores the checksums that torch.save writes
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"{damaged} fails its checksum")
            return cls(**torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
        except Exception as error:  # torch.load raises anything on damaged content
            raise ValueError(f"content must be a whole training state: {error}") from error


def _same(one: Any, other: Any) -> bool:
    """Whether two state dicts are equal, bit for bit and finite."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)  # NaN is not equal
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)

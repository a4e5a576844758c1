"""Checkpoints: a run between two epochs."""

import copy
import io
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn, optim


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
        except (
            ValueError,
            TypeError,
            RuntimeError,
            EOFError,
            pickle.UnpicklingError,
            zipfile.BadZipFile,
        ) as error:
            raise ValueError(f"content must be a whole training state: {error}") from error

"""A run between two epochs."""

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
    """All that a run needs to go on after an epoch as if it had never stopped.

    No random state is among it: see `lossforge.training.seeds`.

    Args:
        model: The model's state dict.
        optimizer: The optimizer's state dict.
        metrics: What was measured, one dict for each epoch done.
    """

    model: dict[str, Any]
    optimizer: dict[str, Any]
    metrics: list[dict[str, Any]]

    @classmethod
    def take(
        cls, model: nn.Module, optimizer: optim.Optimizer, metrics: list[dict[str, Any]]
    ) -> "State":
        """A copy, which further training leaves alone."""
        weights, moments = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        return cls(weights, moments, list(metrics))  # what was measured never changes

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return len(self.metrics)

    def restore(self, model: nn.Module, optimizer: optim.Optimizer) -> None:
        """Bring a model and its optimizer to this state."""
        model.load_state_dict(self.model)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer))

    def to_bytes(self) -> bytes:
        """The state as a file's content."""
        file = io.BytesIO()
        content = {"model": self.model, "optimizer": self.optimizer, "metrics": self.metrics}
        torch.save(content, file)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "State":
        """The state that `to_bytes` wrote; ValueError if it is cut or damaged.

        Loading executes nothing that the content brings along.
        """
        try:
            # torch.load does not look at the checksums that torch.save writes
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"{damaged} fails its checksum")
            return cls(**torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
        except (
            *(ValueError, TypeError, RuntimeError, EOFError),
            *(pickle.UnpicklingError, zipfile.BadZipFile),
        ) as error:
            raise ValueError(f"content must be a whole training state: {error}") from error

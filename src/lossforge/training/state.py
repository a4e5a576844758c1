"""Checkpoints: a run between two epochs."""

import copy
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn, optim

Pair = tuple[nn.Module, optim.Optimizer]


@dataclass(frozen=True, eq=False)
class State:
    """Everything needed to continue a run after an epoch to the same bits.

    It holds no random state: see `lossforge.training.seeds`.

    Args:
        model: The model's state dict.
        optimizer: The optimizer's state dict.
        metrics: One dict for each finished epoch.
        peers: The state dicts of the further networks of a training method, as `model` and
            `optimizer` in a dict.
        memory: What the method keeps: tensors by name.
    """

    model: dict[str, Any]
    optimizer: dict[str, Any]
    metrics: list[dict[str, Any]]
    peers: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def take(
        cls,
        networks: Sequence[Pair],
        metrics: list[dict[str, Any]],
        memory: Mapping[str, Tensor],
    ) -> "State":
        """Copy the present state, so that further training does not change it.

        Args:
            networks: Models with their optimizers, the first of which is tested.
            metrics: One dict for each finished epoch.
            memory: What the method keeps.
        """
        (model, optimizer), *peers = copy.deepcopy(
            [(model.state_dict(), optimizer.state_dict()) for model, optimizer in networks]
        )
        return cls(
            model,
            optimizer,
            list(metrics),  # rows are never changed
            [{"model": weights, "optimizer": moments} for weights, moments in peers],
            {name: value.clone() for name, value in memory.items()},
        )

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.metrics)

    def restore(self, networks: Sequence[Pair]) -> None:
        """Load this state into models and their optimizers."""
        states = [{"model": self.model, "optimizer": self.optimizer}, *self.peers]
        for (model, optimizer), state in zip(networks, states, strict=True):
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))

    def check(self, networks: Sequence[Pair]) -> None:
        """Raise ValueError unless this state fits models and their optimizers, which stay the same.

        It does if copies of them, once restored, have exactly this state.
        """
        copied = copy.deepcopy(list(networks))
        try:
            self.restore(copied)
            found = State.take(copied, self.metrics, self.memory)
            shapes = [
                (value.shape, parameter.shape)
                for _, steps in copied
                for parameter, values in steps.state.items()
                for value in values.values()
                if isinstance(value, Tensor) and value.ndim
            ]
            fits = all(one == other for one, other in shapes)
            fits &= all(isinstance(value, Tensor) for value in self.memory.values())
            epochs = [row["epoch"] for row in self.metrics]
        except Exception as error:  # load_state_dict raises anything on content of another shape
            raise ValueError(f"it does not fit the model: {error}") from error
        fits &= all(_same(getattr(found, name), getattr(self, name)) for name in _TENSORS)
        if not fits or epochs != list(range(1, 1 + self.epoch)):
            raise ValueError("it does not fit the model")

    def to_bytes(self) -> bytes:
        """Serialise the state."""
        file = io.BytesIO()
        content = {"model": self.model, "optimizer": self.optimizer, "metrics": self.metrics}
        more = {"peers": self.peers, "memory": self.memory}
        torch.save(content | {name: value for name, value in more.items() if value}, file)
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


_TENSORS = ("model", "optimizer", "peers", "memory")


def _same(one: Any, other: Any) -> bool:
    """Whether two state dicts are equal, bit for bit and finite."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)  # NaN is not equal
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)

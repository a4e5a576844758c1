"""The contract of a training method: what it is given, what it returns, what is saved of it.

A method is a frozen set of options. What changes during a run is held by its networks and by
`Epoch.memory`, which the loop saves after every epoch; what is random is drawn from
`Epoch.generator`. So a killed run continues to the same bits, whatever the method. A method never
sees true labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

from torch import Generator, Tensor

from .network import Network
from .sample_loss import SampleLoss
from .samples import Samples


class Batch(NamedTuple):
    """A batch of training samples.

    Args:
        rows: Positions among the training samples (n,), on the CPU.
        inputs: Their inputs, augmented, on the device.
        target: Their given labels (n,), on the device.
        kept: Total weight of the labels that the loss does not ignore, over all processes.
        weight: How much each sample counts (n,), on the device; None is 1 for all.
    """

    rows: Tensor
    inputs: Tensor
    target: Tensor
    kept: float
    weight: Tensor | None = None


class Objective(NamedTuple):
    """What a network descends along: the sum of values over their total weight.

    With reduction "sum" of the loss, the sum alone. A weight of 0 makes no step.

    Args:
        values: One for each sample that counts.
        weight: What a mean divides by, over all processes.
    """

    values: Tensor
    weight: float


class Step(NamedTuple):
    """What a method makes of a batch.

    Args:
        logits: Of the first network for all samples of the batch (n, K).
        objectives: One for each network.
    """

    logits: Tensor
    objectives: Sequence[Objective]


@dataclass(frozen=True, eq=False)
class Epoch:
    """What a method is given for an epoch.

    Args:
        number: Counted from 0.
        networks: `Method.networks` of them; the first is the one that is tested and kept.
        loss: The loss of this epoch, one value a sample.
        samples: The training samples, without true labels.
        memory: Tensors by name, saved after every epoch; the method may add and change any.
        generator: For everything that the method draws, on the CPU.
    """

    number: int
    networks: Sequence[Network]
    loss: SampleLoss
    samples: Samples
    memory: dict[str, Tensor]
    generator: Generator


@dataclass(frozen=True, kw_only=True)
class Method:
    """How the loss of a batch becomes a step; this one is the plain loop.

    A method of your own is a frozen dataclass, `kw_only`, whose fields are its options: override
    `values` if only the values of the loss change, `step` for other inputs or several networks, and
    `begin` for what is done once an epoch.

    Attributes:
        name: Its name in texts.
        networks: Number of networks that it trains.
        distributed: Whether it works in several processes, which share every batch.
    """

    name: ClassVar[str] = "plain"
    networks: ClassVar[int] = 1
    distributed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in fields(self):  # 1 and 1.0 are the same option
            value = getattr(self, field.name)
            if field.type is float and isinstance(value, int) and not isinstance(value, bool):
                object.__setattr__(self, field.name, float(value))

    def __str__(self) -> str:
        options = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self)]
        return f"{self.name}({', '.join(options)})" if options else self.name

    @property
    def weighs(self) -> bool:
        """Whether samples may have weights: those of one network do that leave `step` as it is."""
        return type(self).step is Method.step

    def begin(self, epoch: Epoch) -> None:
        """Prepare an epoch; called before its first batch."""

    def step(self, epoch: Epoch, batch: Batch) -> Step:
        """Return the objective of every network on a batch."""
        logits = epoch.networks[0](batch.inputs)
        values = self.values(epoch, batch, logits)
        if batch.weight is not None:
            values = values * batch.weight.to(values.dtype)
        return Step(logits, (Objective(values, batch.kept),))

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        """Return the values of the samples of a batch (n,), for methods of one network."""
        return epoch.loss(logits, batch.target)

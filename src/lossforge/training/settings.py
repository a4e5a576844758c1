"""Training settings: optimizer, schedule, precision."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn, optim

from ..errors import check_integer, check_number

_FORMS = '"constant", "cosine", "exponential:0.97" or "steps:0.1@80,140"'


@dataclass(frozen=True)
class Settings:
    """Everything about training but model, loss and data.

    Args:
        epochs: Passes over the training samples; 0 leaves the model as it is.
        batch_size: Samples of a step, over all processes together.
        optimizer: "sgd" or "adam".
        lr: The learning rate at the start.
        momentum: Of SGD; for Adam, the decay of its mean gradient (its first beta).
        nesterov: Whether SGD's momentum looks ahead.
        weight_decay: Factor of the parameters in the gradient.
        l1_decay: Factor of the sum of all parameters' absolute values in the objective.
        schedule: "constant"; "cosine" down to 0; "exponential:g", times g each epoch; or
            "steps:g@a,b", times g after a and again after b epochs.
        clip: The largest norm of the gradient, L1 decay included; None does not clip.
        precision: "float32" leaves the model's own precision; "bf16" is autocast, which
            on a CPU is tried in a child process first.
        compile: Whether `torch.compile` is applied to the model.
        probe: Training samples on which the fit to wrong labels is measured, at most; 0 for none.
        fused: Whether the optimizer takes its steps by torch's fused kernel, in one pass over the
            parameters: faster for wide layers on a CPU; results differ by rounding.
    """

    epochs: int = 100
    batch_size: int = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.01
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    l1_decay: float = 0.0
    schedule: str = "cosine"
    clip: float | None = None
    precision: Literal["float32", "bf16"] = "float32"
    compile: bool = False
    probe: int = 2000
    fused: bool = False

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, 0)
        check_integer("batch_size", self.batch_size, 1)
        check_integer("probe", self.probe, 0)
        check_number("lr", self.lr, "positive", lambda v: v > 0)
        check_number("momentum", self.momentum, "in [0, 1)", lambda v: 0 <= v < 1)
        check_number("weight_decay", self.weight_decay, "0 or more", lambda v: v >= 0)
        check_number("l1_decay", self.l1_decay, "0 or more", lambda v: v >= 0)
        if self.clip is not None:
            check_number("clip", self.clip, "positive", lambda v: v > 0)
        for name, known in (("optimizer", ("sgd", "adam")), ("precision", ("float32", "bf16"))):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        for name in ("nesterov", "compile", "fused"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise ValueError(
                f"nesterov must go with sgd and a positive momentum, got {self.optimizer} "
                f"and {self.momentum}"
            )
        _factor(self.schedule, self.epochs)

    def learning_rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0; a pure function, so not saved."""
        return self.lr * _factor(self.schedule, self.epochs)(epoch)

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
        """Make a new optimizer of the parameters."""
        fused = self.fused or None  # None leaves torch its choice of operations
        if self.optimizer == "adam":
            betas = (self.momentum, 0.999)
            decay = self.weight_decay
            return optim.Adam(parameters, self.lr, betas, weight_decay=decay, fused=fused)
        return optim.SGD(
            parameters,
            self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            fused=fused,
        )

    def autocast(self, device: torch.device) -> torch.autocast:
        """Make the context in which the model is called."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16")


def _factor(schedule: object, epochs: int) -> Callable[[int], float]:
    """Return the factor of the learning rate as a function of the finished epochs."""
    if not isinstance(schedule, str):
        raise TypeError(f"schedule must be {_FORMS}, got {schedule!r}")
    kind, colon, rest = schedule.partition(":")
    if schedule == "constant":
        return lambda epoch: 1.0
    if schedule == "cosine":
        return lambda epoch: (1 + math.cos(math.pi * epoch / epochs)) / 2
    try:
        if kind == "exponential" and colon:
            rate = _rate(rest)
            return lambda epoch: rate**epoch
        if kind == "steps" and "@" in rest:
            text, _, places = rest.partition("@")
            rate, steps = _rate(text), [int(place) for place in places.split(",")]
            if steps == sorted(set(steps)) and steps[0] > 0:
                return lambda epoch: rate ** sum(step <= epoch for step in steps)
    except ValueError:
        pass
    raise ValueError(f"schedule must be {_FORMS}, got {schedule!r}")


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate <= 1:
        raise ValueError
    return rate

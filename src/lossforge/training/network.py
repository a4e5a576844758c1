"""A network that is trained: a model, as it is called, and the optimizer of its parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn, optim

from . import distributed
from .settings import Settings


@dataclass(frozen=True, eq=False)
class Network:
    """A model with its optimizer.

    Args:
        model: The model.
        net: The model as it is called: distributed, compiled.
        optimizer: The optimizer of its parameters.
        settings: How to train.
        device: Where the model is.
    """

    model: nn.Module
    net: Callable[..., Any]
    optimizer: optim.Optimizer
    settings: Settings
    device: torch.device

    @classmethod
    def make(cls, model: nn.Module, settings: Settings, device: torch.device) -> "Network":
        """Move a model to a device, channels last, and give it a new optimizer."""
        model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = settings.make_optimizer(model.parameters())
        return cls(model, model, optimizer, settings, device)

    def wrapped(self) -> "Network":
        """Return the network as it is trained in this process: distributed, compiled."""
        net = distributed.wrap(self.model)
        if self.settings.compile:
            net = torch.compile(net)  # type: ignore[assignment]
        return Network(self.model, net, self.optimizer, self.settings, self.device)

    def __call__(self, inputs: Tensor) -> Tensor:
        """(N, K) logits, in the precision of the settings."""
        with self.settings.autocast(self.device):
            logits: Tensor = self.net(inputs)
        return logits

    def begin(self, epoch: int) -> None:
        """Set the model to training, and the learning rate to that of an epoch."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate(epoch)

    def descend(self, value: Tensor) -> None:
        """Take one step along the gradient of a value, with decay and clipping."""
        self.optimizer.zero_grad()
        torch.autograd.backward(value)
        self._decay_and_clip()
        self.optimizer.step()

    def _decay_and_clip(self) -> None:
        if not self.settings.l1_decay and self.settings.clip is None:
            return
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        if self.settings.l1_decay:
            for p in parameters:
                sign = p.detach().sign().mul_(self.settings.l1_decay)
                p.grad = sign if p.grad is None else p.grad.add_(sign)
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(parameters, self.settings.clip)

"""The base class of all networks: features, a linear head, and initial weights."""

import math
from collections.abc import Callable, Sequence

from torch import Generator, Tensor, nn

from ..errors import check_integer

Rule = Callable[[Tensor, Generator | None], Tensor]
"""Fills the weight of a convolution (4 axes) or of a linear layer (2 axes)."""


def protocol(weight: Tensor, generator: Generator | None) -> Tensor:
    """Kaiming-uniform convolutions and Xavier-uniform linear layers.

    The released code of APL (HanxunH/Active-Passive-Losses, models.py) starts its CIFAR networks
    this way, and ALF, ANL and eps-softmax repeat it.
    """
    if weight.ndim == 4:
        return nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)
    return nn.init.xavier_uniform_(weight, generator=generator)


def imagenet(weight: Tensor, generator: Generator | None) -> Tensor:
    """Kaiming-normal convolutions by fan-out; linear layers as torch starts them.

    This is torchvision's ResNet, from which the protocol takes its 224x224 network.
    """
    if weight.ndim == 4:
        return nn.init.kaiming_normal_(
            weight, mode="fan_out", nonlinearity="relu", generator=generator
        )
    return nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)


class Network(nn.Module):
    """A classifier in two parts: `features`, then the linear head `fc`.

    Constructed directly, a network draws its weights from torch's global random state, as torch's
    own layers do; `make` draws them from a generator and leaves the global state alone.

    Attributes:
        fc: The head. It has this name in every network, and in torchvision's ResNets.
        rule: How weights are drawn.
    """

    fc: nn.Linear
    rule: Rule = staticmethod(protocol)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the penultimate activations (N, D), the inputs of the head."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits (N, C)."""
        logits: Tensor = self.fc(self.features(inputs))
        return logits

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw all weights anew.

        Biases are uniform within one over the root of the fan-in, which is torch's own start and
        the protocol's, since its code does not touch them. Batch norms start as the identity.

        Args:
            generator: The source of all that is drawn; torch's global one if None.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                self.rule(layer.weight, generator)
                if layer.bias is not None:
                    bound = layer.weight[0].numel() ** -0.5
                    nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
            elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.reset_parameters()


def check_image(inputs: Sequence[int], least: int) -> tuple[int, int, int]:
    """Check the shape of one image: (channels, height, width), both sides `least` or more.

    A shape with the channels last has a side of 1 or 3 and is refused too.
    """
    for size in inputs:
        check_integer("inputs", size, 1)
    if len(inputs) != 3 or min(inputs[1:]) < least:
        raise ValueError(
            f"inputs must be (channels, height, width) with at least {least}x{least} pixels, "
            f"got {tuple(inputs)}"
        )
    channels, height, width = inputs
    return channels, height, width

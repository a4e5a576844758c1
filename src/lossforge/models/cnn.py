"""The 8-layer CNN with which the noisy-label protocol trains on CIFAR-10."""

from collections.abc import Sequence

from torch import Tensor, nn

from ..errors import check_integer
from .network import Network, check_image


class CNN8(Network):
    """Six 3x3 convolutions of 64, 64, 128, 128, 196, 196 channels and two linear layers.

    Every convolution has a bias, a batch norm and a ReLU; each pair ends in a 2x2 max-pool; the
    first linear layer, of 256, has a batch norm and a ReLU as well. All this, and the initial
    weights, are those of APL's released code (HanxunH/Active-Passive-Losses, models.py, where it
    is the ToyModel), which ALF (hitcszx/ALFs), ANL (Virusdoll/Active-Negative-Loss) and
    eps-softmax (cswjl/eps-softmax) repeat layer by layer.

    The features are the 256 activations of the first linear layer, after batch norm and ReLU.

    Args:
        num_classes: Logits, at least 2.
        inputs: Shape of one image, (channels, height, width), at least 8x8 pixels when shrunk.
        width: Channels of the first convolution; all other layers are in proportion (1, 2, 49/16
            and, for the first linear layer, 4), so 64 is the published network and 16 one that a
            laptop trains about ten times faster.
        shrink: The network first averages blocks of this many pixels a side; 2 leaves a quarter of
            the work.

    References:
        Ma et al., Normalized Loss Functions for Deep Learning with Noisy Labels, ICML 2020.
        https://arxiv.org/abs/2006.13554
    """

    def __init__(
        self,
        num_classes: int,
        *,
        inputs: Sequence[int] = (3, 32, 32),
        width: int = 64,
        shrink: int = 1,
    ) -> None:
        super().__init__()
        check_integer("num_classes", num_classes, 2)
        check_integer("width", width, 1)
        check_integer("shrink", shrink, 1)
        channels, *sides = check_image(inputs, 8 * shrink)
        height, breadth = (side // shrink for side in sides)
        last = round(width * 49 / 16)
        self.shrink = nn.AvgPool2d(shrink) if shrink > 1 else nn.Identity()
        self.convolutions = nn.Sequential(
            _pair(channels, width), _pair(width, 2 * width), _pair(2 * width, last)
        )
        self.hidden = nn.Sequential(
            nn.Linear(last * (height // 8) * (breadth // 8), 4 * width),
            nn.BatchNorm1d(4 * width),
            nn.ReLU(inplace=True),
        )
        self.fc = nn.Linear(4 * width, num_classes)
        self.reset_parameters()

    def features(self, inputs: Tensor) -> Tensor:
        """Activations of the first linear layer (N, 4 width)."""
        activations: Tensor = self.hidden(self.convolutions(self.shrink(inputs)).flatten(1))
        return activations


def _pair(before: int, after: int) -> nn.Sequential:
    """Two convolutions, each with batch norm and ReLU, and a max-pool that halves the sides.

    The last ReLU comes after the max-pool: value and gradient are the same to the bit, as the
    largest value is cut at 0 either way, and it is a quarter of the work.
    """
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1),
        nn.BatchNorm2d(after),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
    )

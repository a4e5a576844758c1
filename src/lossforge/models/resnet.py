"""Residual networks: ResNet-34 for small images and ResNet-50 for photographs.

Parameters have the names they have in torchvision, whose weights therefore load.

References:
    He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1.
    https://arxiv.org/abs/1512.03385
"""

from collections.abc import Sequence

from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..errors import check_integer
from .network import Network, check_image, imagenet, protocol


def _conv(before: int, after: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    """A residual block: a branch of convolutions, added to its input.

    Attributes:
        expansion: Channels that leave the block, over those inside it.
        downsample: Brings the input to the branch's shape; None where it has that shape.
    """

    expansion: int
    downsample: nn.Sequential | None

    def __init__(self, before: int, inside: int, stride: int) -> None:
        super().__init__()
        after = inside * self.expansion
        self._build(before, inside, stride)
        # Registered last, as torchvision does: optimisers number the parameters in this order.
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(_conv(before, after, 1, stride), nn.BatchNorm2d(after))

    def _build(self, before: int, inside: int, stride: int) -> None:
        raise NotImplementedError

    def branch(self, inputs: Tensor) -> Tensor:
        """What is added to the input."""
        raise NotImplementedError

    def last_norm(self) -> nn.BatchNorm2d:
        """The batch norm that ends the branch."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        shortcut = inputs if self.downsample is None else self.downsample(inputs)
        return F.relu(self.branch(inputs) + shortcut, inplace=True)


class Basic(Block):
    """Two 3x3 convolutions."""

    expansion = 1

    def _build(self, before: int, inside: int, stride: int) -> None:
        self.conv1, self.bn1 = _conv(before, inside, 3, stride), nn.BatchNorm2d(inside)
        self.conv2, self.bn2 = _conv(inside, inside, 3), nn.BatchNorm2d(inside)

    def branch(self, inputs: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(inputs)), inplace=True)
        result: Tensor = self.bn2(self.conv2(out))
        return result

    def last_norm(self) -> nn.BatchNorm2d:
        return self.bn2


class Bottleneck(Block):
    """A 3x3 convolution between two 1x1 ones; the stride is on the 3x3 ("v1.5"), as torchvision's.

    The paper has it on the first 1x1.
    """

    expansion = 4

    def _build(self, before: int, inside: int, stride: int) -> None:
        after = inside * self.expansion
        self.conv1, self.bn1 = _conv(before, inside, 1), nn.BatchNorm2d(inside)
        self.conv2, self.bn2 = _conv(inside, inside, 3, stride), nn.BatchNorm2d(inside)
        self.conv3, self.bn3 = _conv(inside, after, 1), nn.BatchNorm2d(after)

    def branch(self, inputs: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(inputs)), inplace=True)
        out = F.relu(self.bn2(self.conv2(out)), inplace=True)
        result: Tensor = self.bn3(self.conv3(out))
        return result

    def last_norm(self) -> nn.BatchNorm2d:
        return self.bn3


class ResNet(Network):
    """A stem, four stages of residual blocks, the mean over the image, and the head.

    The features are those means: 512 numbers for basic blocks, 2,048 for bottlenecks.

    Args:
        block: The kind of block, `Basic` or `Bottleneck`.
        depths: Blocks in each of the four stages.
        num_classes: Logits, at least 2.
        inputs: Shape of one image, (channels, height, width).
        small: For images of about 32x32: the stem is a 3x3 convolution of stride 1, and weights
            start as the protocol's CIFAR networks do. Otherwise it is the paper's 7x7 of stride
            2 and a max-pool, and weights start as torchvision's.
        zero_init_residual: Start every block as the identity, by a zero in its last batch norm.
    """

    def __init__(
        self,
        block: type[Block],
        depths: Sequence[int],
        num_classes: int,
        *,
        inputs: Sequence[int],
        small: bool,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        check_integer("num_classes", num_classes, 2)
        channels, _, _ = check_image(inputs, 8 if small else 32)
        self.rule = protocol if small else imagenet
        self.zero_init_residual = zero_init_residual
        self.conv1 = _conv(channels, 64, 3) if small else _conv(channels, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, padding=1)
        widths = [64 * block.expansion * 2**stage for stage in range(4)]
        self.layer1 = _stage(block, 64, 64, depths[0], stride=1)
        self.layer2 = _stage(block, widths[0], 128, depths[1], stride=2)
        self.layer3 = _stage(block, widths[1], 256, depths[2], stride=2)
        self.layer4 = _stage(block, widths[2], 512, depths[3], stride=2)
        self.fc = nn.Linear(widths[3], num_classes)
        self.reset_parameters()

    def features(self, inputs: Tensor) -> Tensor:
        """Means over the last stage's map (N, 512 or 2048)."""
        out = self.maxpool(F.relu(self.bn1(self.conv1(inputs)), inplace=True))
        out = self.layer4(self.layer3(self.layer2(self.layer1(out))))
        means: Tensor = out.mean((2, 3))
        return means

    def reset_parameters(self, generator: Generator | None = None) -> None:
        super().reset_parameters(generator)
        if self.zero_init_residual:
            for block in self.modules():
                if isinstance(block, Block):
                    nn.init.zeros_(block.last_norm().weight)


def _stage(block: type[Block], before: int, inside: int, depth: int, stride: int) -> nn.Sequential:
    after = inside * block.expansion
    rest = (block(after, inside, 1) for _ in range(depth - 1))
    return nn.Sequential(block(before, inside, stride), *rest)


def resnet34(
    num_classes: int, *, inputs: Sequence[int] = (3, 32, 32), zero_init_residual: bool = False
) -> ResNet:
    """ResNet-34 for small images, the protocol's network for CIFAR-100.

    It is the ResNet34 of the released code of APL, ALF, ANL and eps-softmax, but for the names of
    its parameters, which follow torchvision.
    """
    return ResNet(
        Basic,
        (3, 4, 6, 3),
        num_classes,
        inputs=inputs,
        small=True,
        zero_init_residual=zero_init_residual,
    )


def resnet50(
    num_classes: int, *, inputs: Sequence[int] = (3, 224, 224), zero_init_residual: bool = False
) -> ResNet:
    """torchvision's ResNet-50, the protocol's network for WebVision and Clothing1M.

    JAL's released code (cswjl/joint-asymmetric-loss, main_real_world.py) trains it from scratch
    with `zero_init_residual=True` on WebVision, and from torchvision's default ImageNet weights
    (`load_weights(network, "imagenet1k_v2", head="new")`) on Clothing1M.
    """
    return ResNet(
        Bottleneck,
        (3, 4, 6, 3),
        num_classes,
        inputs=inputs,
        small=False,
        zero_init_residual=zero_init_residual,
    )

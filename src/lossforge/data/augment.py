"""Preparing batches of images, with the augmentation of the published protocols.

A transform is called with inputs, positions and a generator, and returns a float32 batch; without
a generator it prepares the batch for evaluation. The recipes at the end are those of the papers.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Generator, Tensor

from .colour import jitter, normalise
from .dataset import Inputs, read
from .geometry import (
    centre_boxes,
    crop_resize,
    flip,
    pad_crop,
    pad_crop_flip,
    random_crop_boxes,
    random_resized_boxes,
    rotate,
)
from .images import ImageFiles

__all__ = [
    "CIFAR10_TRANSFORM",
    "CIFAR100_TRANSFORM",
    "CLOTHING1M_TRANSFORM",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "WEBVISION_TRANSFORM",
    "FileTransform",
    "TensorTransform",
    "centre_boxes",
    "crop_resize",
    "flip",
    "jitter",
    "normalise",
    "pad_crop",
    "pad_crop_flip",
    "random_crop_boxes",
    "random_resized_boxes",
    "rotate",
]

Channels = tuple[float, ...]


class RandomBoxes(Protocol):
    """Draws where to crop images of the given sizes."""

    def __call__(self, sizes: Tensor, /, *, generator: Generator) -> Tensor: ...


@dataclass(frozen=True)
class TensorTransform:
    """Images in memory: shift, mirror, turn, normalise.

    Args:
        mean: Of each channel, on the scale of [0, 1].
        std: As `mean`.
        padding: Images are shifted by up to this many pixels.
        mirror: Whether half of the images are mirrored left to right.
        degrees: Images are turned by up to this angle.
    """

    mean: Channels
    std: Channels
    padding: int = 4
    mirror: bool = True
    degrees: float = 0.0

    def __call__(self, inputs: Inputs, index: Tensor, generator: Generator | None) -> Tensor:
        if not isinstance(inputs, Tensor):
            raise TypeError(f"inputs must be a tensor, got {type(inputs).__name__}")
        images = read(inputs, index)
        if generator is not None:
            move = pad_crop_flip if self.mirror else pad_crop
            images = move(images, self.padding, generator=generator)
            if self.degrees:
                images = rotate(images, self.degrees, generator=generator)
        return normalise(images, self.mean, self.std)


@dataclass(frozen=True)
class FileTransform:
    """Images on disk: crop at random, resize, mirror, change the colours, normalise.

    For evaluation the short side is resized to `resize` and the middle `size` x `size` kept.

    Args:
        mean: Of each channel, on the scale of [0, 1].
        std: As `mean`.
        boxes: Draws where to crop for training.
        colours: Strengths of brightness, contrast, saturation and hue in `jitter`; all 0 for none.
        size: Height and width of the result.
        resize: Length of the short side before the central crop of evaluation.
    """

    mean: Channels
    std: Channels
    boxes: RandomBoxes = random_resized_boxes
    colours: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    size: int = 224
    resize: int = 256

    def __call__(self, inputs: Inputs, index: Tensor, generator: Generator | None) -> Tensor:
        if not isinstance(inputs, ImageFiles):
            raise TypeError(f"inputs must be ImageFiles, got {type(inputs).__name__}")
        sizes = inputs.sizes(index)
        if generator is None:
            boxes = centre_boxes(sizes, self.resize, self.size)
            return normalise(inputs.crop(index, boxes, self.size), self.mean, self.std)
        boxes = self.boxes(sizes, generator=generator)
        images = flip(inputs.crop(index, boxes, self.size), generator=generator)
        if any(self.colours):
            # in floats, so that no rounding comes between the four changes
            images = jitter(images.float() / 255, *self.colours, generator=generator)
        return normalise(images, self.mean, self.std)


# Means, deviations and augmentation of both as in the code of Active Negative Loss
# (Ye et al., NeurIPS 2023) and Active Passive Loss (Ma et al., ICML 2020), dataset.py.
CIFAR10_TRANSFORM = TensorTransform(
    mean=(0.49139968, 0.48215827, 0.44653124), std=(0.24703233, 0.24348505, 0.26158768)
)
CIFAR100_TRANSFORM = TensorTransform(
    mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762), degrees=20
)

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

# As in the code of Active Negative Loss. (DivideMix crops 227 pixels of images resized to 256.)
WEBVISION_TRANSFORM = FileTransform(IMAGENET_MEAN, IMAGENET_STD, colours=(0.4, 0.4, 0.4, 0.2))

# As in the code of DivideMix (Li et al., ICLR 2020), dataloader_clothing1M.py.
CLOTHING1M_TRANSFORM = FileTransform(
    mean=(0.6959, 0.6537, 0.6371), std=(0.3113, 0.3192, 0.3214), boxes=random_crop_boxes
)

"""Where to crop: boxes for whole batches, from the images' sizes alone.

Sizes are (N, 2), height and width; boxes are (N, 4) in float64, left, top, right, bottom in the
pixels of the original image. Drawing boxes first lets images in memory and images on disk share
the draws, and resize only what is kept.
"""

import math

import torch
from torch import Generator, Tensor

from .geometry import uniform

ATTEMPTS = 10


def random_resized_boxes(
    sizes: Tensor,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    *,
    generator: Generator,
) -> Tensor:
    """Boxes of random area and shape, at a random place.

    Ten draws of area and shape are made for each image and the first that fits is taken; where
    none does, the largest central box whose shape is allowed.

    Args:
        sizes: (N, 2), height and width.
        scale: Bounds of the box's share of the image's area.
        ratio: Bounds of its width over its height, drawn evenly on a logarithmic scale.
        generator: Random source.
    """
    for name, (low, high) in (("scale", scale), ("ratio", ratio)):
        if not 0 < low <= high:
            raise ValueError(f"{name} must be 0 < low <= high, got {(low, high)}")
    n = len(sizes)
    device = generator.device
    height, width = sizes.to(device, torch.float64)[:, :, None].unbind(1)
    area = height * width * uniform(*scale, (n, ATTEMPTS), generator)
    shape = uniform(math.log(ratio[0]), math.log(ratio[1]), (n, ATTEMPTS), generator).exp()
    wide, high_ = (area * shape).sqrt().round(), (area / shape).sqrt().round()
    fits = (wide >= 1) & (wide <= width) & (high_ >= 1) & (high_ <= height)
    first = fits.int().argmax(1, keepdim=True)
    wide, high_ = wide.gather(1, first), high_.gather(1, first)
    place = uniform(0, 1, (2, n, 1), generator)
    left = (place[0] * (width - wide + 1)).floor()
    top = (place[1] * (height - high_ + 1)).floor()
    drawn = torch.cat([left, top, left + wide, top + high_], 1)
    central = _largest_central(height, width, ratio)
    return torch.where(fits.any(1, keepdim=True), drawn, central).to(sizes.device)


def centre_boxes(sizes: Tensor, resize: int = 256, crop: int = 224) -> Tensor:
    """The middle `crop` x `crop` of an image whose short side was resized to `resize`."""
    room, unit = _resized(sizes, resize, crop)
    return _in_original((room / 2).round(), unit, crop)


def random_crop_boxes(
    sizes: Tensor, resize: int = 256, crop: int = 224, *, generator: Generator
) -> Tensor:
    """A random `crop` x `crop` of an image whose short side was resized to `resize`."""
    room, unit = _resized(sizes, resize, crop)
    draws = uniform(0, 1, (len(sizes), 2), generator).to(sizes.device)
    return _in_original((draws * (room + 1)).floor(), unit, crop)


def _largest_central(height: Tensor, width: Tensor, ratio: tuple[float, float]) -> Tensor:
    wide = torch.minimum(width, (height * ratio[1]).round())
    high = torch.minimum(height, (width / ratio[0]).round())
    left, top = ((width - wide) / 2).round(), ((height - high) / 2).round()
    return torch.cat([left, top, left + wide, top + high], 1)


def _resized(sizes: Tensor, resize: int, crop: int) -> tuple[Tensor, Tensor]:
    """Pixels left over after the crop, and original pixels per resized one, both (N, 2)."""
    if not 0 < crop <= resize:
        raise ValueError(f"crop must be in 1..resize={resize}, got {crop}")
    original = sizes.to(torch.float64)
    short = original.min(1, keepdim=True).values
    # the long side is cut to whole pixels, so the two axes may be scaled a little differently
    resized = (original * resize / short).floor()
    return resized - crop, original / resized


def _in_original(offset: Tensor, unit: Tensor, crop: int) -> Tensor:
    """Boxes of `crop` pixels at (row, column) offsets, back in the original's pixels."""
    return torch.cat([offset * unit, (offset + crop) * unit], 1)[:, [1, 0, 3, 2]]

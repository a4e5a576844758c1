"""Changing colours of whole batches of images, (N, 3, H, W): uint8, or floats in [0, 1].

The published protocol of WebVision jitters colours as torchvision does, which is no dependency.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from .geometry import uniform

LUMINANCE = (0.2989, 0.587, 0.114)  # ITU-R BT.601, in the digits torchvision uses


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Scale to [0, 1] if uint8, then subtract the mean of each channel and divide by its std.

    Args:
        images: (N, C, H, W).
        mean: One for each channel, on the scale of [0, 1].
        std: As `mean`.

    Returns:
        float32, or the dtype of the images if they are floats.
    """
    channels = images.shape[1]
    if len(mean) != channels or len(std) != channels:
        raise ValueError(
            f"mean and std must have {channels} values, one for each channel, "
            f"got {len(mean)} and {len(std)}"
        )
    floats = images.is_floating_point()
    dtype = images.dtype if floats else torch.float32
    unit = 1 if floats else 255
    scale = torch.tensor([1 / (unit * s) for s in std], device=images.device, dtype=dtype)
    shift = torch.tensor(
        [-m / s for m, s in zip(mean, std, strict=True)], device=images.device, dtype=dtype
    )
    return (images.to(dtype) * scale[:, None, None]).add_(shift[:, None, None])


def jitter(
    images: Tensor,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    hue: float = 0.0,
    *,
    generator: Generator,
) -> Tensor:
    """Change brightness, contrast, saturation and hue at random, in a random order, per image.

    Factors are drawn from [max(0, 1 - s), 1 + s], where s is the strength, and the hue's shift
    from [-hue, hue] turns of the colour circle, as torchvision's ColorJitter does.
    """
    if images.shape[1] != 3:
        raise ValueError(f"images must have 3 channels, got {images.shape[1]}")
    strengths = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
    for name, strength in strengths.items():
        if not strength >= 0:
            raise ValueError(f"{name} must be at least 0, got {strength}")
    if not 0 <= hue <= 0.5:
        raise ValueError(f"hue must be in [0, 0.5], got {hue}")
    n = (len(images),)
    bounds = [(max(0.0, 1 - s), 1 + s) for s in strengths.values()] + [(-hue, hue)]
    factors = torch.stack([uniform(low, high, n, generator) for low, high in bounds])
    order = uniform(0, 1, (*n, len(OPERATIONS)), generator).argsort(1).to(images.device)
    result = images.clone() if images.is_floating_point() else images.float() / 255
    factors = factors.to(result.device, result.dtype)
    for step in range(len(OPERATIONS)):
        for number, operation in enumerate(OPERATIONS):
            which = (order[:, step] == number).nonzero()[:, 0]
            if len(which) and bounds[number][0] != bounds[number][1]:
                changed = operation(result.index_select(0, which), factors[number, which])
                result.index_copy_(0, which, changed)
    if images.is_floating_point():
        return result
    return result.mul_(255).round_().to(images.dtype)


def brighten(images: Tensor, factor: Tensor) -> Tensor:
    """Blend each image with black."""
    return _blend(images, torch.zeros_like(images[:, :1, :1, :1]), factor)


def sharpen_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend each image with its mean grey."""
    return _blend(images, _grey(images).mean((2, 3), keepdim=True), factor)


def saturate(images: Tensor, factor: Tensor) -> Tensor:
    """Blend each image with itself in grey."""
    return _blend(images, _grey(images), factor)


def shift_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Turn each image's colours around the circle of hues; 1/3 takes red to green."""
    red, green, blue = images.unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    # the place on a circle of length 6; grey has none, and its chroma of 0 hides what comes out
    slope = chroma.where(chroma > 0, 1).reciprocal_()
    hue = torch.where(value == green, (blue - red) * slope + 2, (red - green) * slope + 4)
    hue = torch.where(value == red, (green - blue) * slope, hue) + 6 * turns[:, None, None]
    channels = []
    for start in (5, 3, 1):
        place = hue + start
        place -= 6 * (place / 6).floor_()  # several times faster than place % 6
        channels.append(value - chroma * torch.minimum(place, 4 - place).clamp_(0, 1))
    return torch.stack(channels, 1)


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    brighten,
    sharpen_contrast,
    saturate,
    shift_hue,
)


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """The point at `factor` on the way from `other` to the images, and beyond."""
    return torch.lerp(other.expand_as(images), images, factor[:, None, None, None]).clamp_(0, 1)


def _grey(images: Tensor) -> Tensor:
    weights = torch.tensor(LUMINANCE, device=images.device, dtype=images.dtype)
    return (images * weights[:, None, None]).sum(1, keepdim=True)

"""Moving pixels: crop, mirror, turn and resize whole batches of images, (N, C, H, W).

Each function takes uint8 or floating images and returns the same kind. Random ones draw on their
generator's device, so a CPU generator gives the same batch whatever the images' device.

Boxes to crop are drawn from the images' sizes alone, so that images in memory and images on disk
share the draws, and only what is kept is resized. Sizes are (N, 2), height and width; boxes are
(N, 4) in float64, left, top, right, bottom in the pixels of the original image.
"""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

ATTEMPTS = 10


def uniform(low: float, high: float, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Independent draws between two bounds, in float64."""
    draws = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return low + (high - low) * draws


def pad_crop(images: Tensor, padding: int, *, generator: Generator) -> Tensor:
    """Shift each image by up to `padding` pixels either way, filling with zeros.

    The same as padding with zeros and cropping the old size at a random place.
    """
    rows, columns = _random_shift(images, padding, generator)
    return _take(F.pad(images, (padding,) * 4), rows, columns)


def flip(images: Tensor, *, generator: Generator) -> Tensor:
    """Mirror each image left to right with probability one half."""
    rows, columns = _positions(images)
    return _take(images, rows, _random_mirror(columns, images, generator))


def pad_crop_flip(images: Tensor, padding: int, *, generator: Generator) -> Tensor:
    """Do both in one pass over the pixels."""
    rows, columns = _random_shift(images, padding, generator)
    columns = _random_mirror(columns, images, generator)
    return _take(F.pad(images, (padding,) * 4), rows, columns)


def rotate(images: Tensor, degrees: float, *, generator: Generator) -> Tensor:
    """Turn each image by an angle drawn from [-degrees, degrees]; see `turn`."""
    if not 0 <= degrees <= 180:
        raise ValueError(f"degrees must be in [0, 180], got {degrees}")
    return turn(images, uniform(-degrees, degrees, (len(images),), generator))


def turn(images: Tensor, angles: Tensor) -> Tensor:
    """Turn each image counter-clockwise about its centre: nearest pixel, zeros from outside.

    Args:
        images: (N, C, H, W).
        angles: (N,), in degrees.
    """
    height, width = images.shape[-2:]
    radians = angles.to(images.device, torch.float64).deg2rad()[:, None, None]
    rows, columns = _positions(images)
    # an output pixel's centre, seen from the image's centre, turned back to where it came from
    down, right = rows + (0.5 - height / 2), columns + (0.5 - width / 2)
    # positions in a frame of one zero pixel, which stands for all that lies outside
    source_row = radians.sin() * right + (radians.cos() * down + (height / 2 + 1))
    source_column = radians.cos() * right + (width / 2 + 1 - radians.sin() * down)
    source_row = source_row.clamp_(0, height + 1).floor_()
    source_column = source_column.clamp_(0, width + 1).floor_()
    return _take(F.pad(images, (1,) * 4), source_row, source_column)


def crop_resize(images: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Cut a box out of each image and resize it to `size` x `size`, antialiased.

    A pixel is the mean of the source under a triangle as wide as the scale asks for: the bilinear
    filter of Pillow's `resize(box=...)`, as a product with one matrix of weights for each axis.

    Args:
        images: (N, C, H, W).
        boxes: (N, 4), left, top, right, bottom in pixels, fractions allowed.
        size: Height and width of the result.
    """
    boxes = boxes.to(images.device)
    pixels = images if images.is_floating_point() else images.float()
    left, top, right, bottom = boxes.unbind(1)
    across = _triangle_weights(left, right, size, images.shape[-1]).to(pixels.dtype)
    down = _triangle_weights(top, bottom, size, images.shape[-2]).to(pixels.dtype)
    resized = down[:, None] @ (pixels @ across.mT[:, None])
    if images.is_floating_point():
        return resized
    return resized.round_().clamp_(0, 255).to(images.dtype)


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


def _triangle_weights(start: Tensor, end: Tensor, size: int, length: int) -> Tensor:
    """(N, size, length): how much each source pixel counts in each result pixel."""
    start, end = start[:, None, None].double(), end[:, None, None].double()
    scale = (end - start) / size
    place = torch.arange(size, device=start.device, dtype=torch.float64)[:, None] + 0.5
    source = torch.arange(length, device=start.device, dtype=torch.float64) + 0.5
    distance = (source - (start + place * scale)).abs() / scale.clamp(min=1)
    weights = (1 - distance).clamp(min=0)
    return weights / weights.sum(2, keepdim=True)


def _positions(images: Tensor) -> tuple[Tensor, Tensor]:
    """Row and column numbers, (1, H, 1) and (1, 1, W)."""
    height, width = images.shape[-2:]
    rows = torch.arange(height, device=images.device)[None, :, None]
    return rows, torch.arange(width, device=images.device)[None, None, :]


def _random_shift(images: Tensor, padding: int, generator: Generator) -> tuple[Tensor, Tensor]:
    if padding < 0:
        raise ValueError(f"padding must be at least 0, got {padding}")
    shape = (2, len(images), 1, 1)
    shift = torch.randint(2 * padding + 1, shape, generator=generator, device=generator.device)
    down, right = shift.to(images.device)
    rows, columns = _positions(images)
    return rows + down, columns + right


def _random_mirror(columns: Tensor, images: Tensor, generator: Generator) -> Tensor:
    mirrored = uniform(0, 1, (len(images), 1, 1), generator) < 0.5
    return torch.where(mirrored.to(images.device), columns.flip(2), columns)


def _take(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Pixel [n, :, y, x] of the result is that of the source at rows and columns [n, y, x].

    Args:
        images: (N, C, H, W).
        rows: Whole numbers, broadcastable with `columns` to (N, height, width).
        columns: As `rows`.
    """
    place = rows * images.shape[-1] + columns
    flat = place.long().flatten(1)[:, None].expand(len(images), images.shape[1], -1)
    return images.flatten(2).gather(2, flat).view(*images.shape[:2], *place.shape[1:])

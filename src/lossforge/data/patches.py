r"""Images as features: their patches, coded by a dictionary that is learnt without labels.

Let x be a patch of p x p pixels in [0, 1], all channels in one vector.

1. Contrast: :math:`\hat x = (x - \bar x) / \sqrt{\operatorname{var} x + 10/255^2}`.
2. Whitening: :math:`w = (C + I/10)^{-1/2} (\hat x - m)`, with the mean m and the covariance C of
   60,000 patches drawn at random from the training images.
3. Dictionary: K atoms of length 1 by spherical k-means on the same patches. Atoms start at random;
   ten times, every patch is assigned to the atom with the largest :math:`|d_k \cdot w|`, and
   :math:`d_k` becomes :math:`d_k + \sum (d_k \cdot w)\, w` over its patches, scaled to length 1.
4. Code: for every s-th patch of an image in both directions, :math:`z_k = d_k \cdot w` gives
   :math:`\max(0, z_k - 1/2)` and :math:`\max(0, -z_k - 1/2)`. Their means over the four quarters of
   the image are 8 K features.
5. Scale: features have mean 0 and variance 1 over the training images.

p is 6, or half the shorter side of images below 12 pixels; s is a third of p, rounded down, and at
least 1. An odd row of patches in the middle belongs to both halves.

Each sum is computed by one thread in a fixed order, and threads only share out the images, so that
the features do not depend on the number of threads to the last bit.

References:
    Coates and Ng, The Importance of Encoding Versus Training with Sparse Coding and Vector
    Quantization, ICML 2011. https://andrewng.org/publications/the-importance-of-encoding-versus-training-with-sparse-coding-and-vector-quantization
    Coates and Ng, Learning Feature Representations with K-means, in Neural Networks: Tricks of the
    Trade, 2012. https://doi.org/10.1007/978-3-642-35289-8_30
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from .. import interrupts
from ..errors import check_integer
from .dataset import Dataset, Inputs, read
from .features import standardise
from .kept import Lines, kept_rows

ATOMS = 400
SIDE, LEAST_SIDE = 6, 4  # of a patch at most, of an image at least
SAMPLED, ROUNDS = 60_000, 10
CONTRAST, WHITENING, THRESHOLD = 10 / 255**2, 0.1, 0.5
SEED = 0
VERSION = 1  # part of the name of kept features; changes with their values

READ = 250  # images or sampled patches in memory at a time
CODED = 32 * 14 * 14  # patches coded at a time: 32 images of CIFAR
SCALED = 64  # columns scaled at a time

DTYPES = (torch.uint8, torch.float32, torch.float64)

Shape = tuple[int, int, int]
OnProgress = Callable[[int, int], object]


def with_patches(
    dataset: Dataset,
    features: str | None,
    *,
    shape: Shape | None = None,
    on_progress: OnProgress | None = None,
) -> Dataset:
    """Replace the images of a data set by features that are learnt from its training images.

    Args:
        dataset: The images, see `patch_features`; labels are not read.
        features: "patches" or "patches:ATOMS"; None keeps the images.
        shape: See `patch_features`.
        on_progress: See `patch_features`.
    """
    if features is None:
        return dataset
    parts = dataset.parts()
    rows = patch_features(
        *(part.inputs for part in parts.values()),
        atoms=read_atoms(features),
        shape=shape,
        on_progress=on_progress,
    )
    splits = {
        name: replace(part, inputs=one)
        for (name, part), one in zip(parts.items(), rows, strict=True)
    }
    return replace(
        dataset,
        train=splits.pop("train"),
        validation=splits.pop("validation") if dataset.validation is not None else None,
        tests=splits,
        transform=read,
    )


def read_atoms(features: str) -> int:
    """Read the number of atoms from "patches" or "patches:ATOMS".

    >>> read_atoms("patches"), read_atoms("patches:100")
    (400, 100)
    """
    kind, colon, number = features.partition(":")
    if kind != "patches" or (colon and not (number.isdecimal() and int(number) > 0)):
        raise ValueError(
            f"features of images must be 'patches' or 'patches:ATOMS', got {features!r}"
        )
    return int(number) if colon else ATOMS


def patch_features(
    train: Inputs,
    *others: Inputs,
    atoms: int = ATOMS,
    shape: Shape | None = None,
    on_progress: OnProgress | None = None,
) -> list[Tensor]:
    """Make 8 * atoms float32 features for each image, learnt from the first images alone.

    The same images give the same bits. Features are kept in the user's cache, see `kept_rows`.

    Args:
        train: Images (N, C, H, W), bytes or floats in [0, 1], in memory or stored.
        others: More images of the same shape, such as a test part.
        atoms: Size of the dictionary.
        shape: (C, H, W) of images that are given as rows.
        on_progress: Called with the numbers of finished images and of all images; by default
            lines are written to stderr from the third second on.
    """
    check_integer("atoms", atoms, 1)
    parts = [Images(inputs, shape) for inputs in (train, *others)]
    check_images(parts)
    lengths = [len(part) for part in parts]

    def compute() -> Tensor:
        _, rows = learn_and_code(parts, atoms, on_progress)
        with one_thread():
            for columns in torch.split(rows, SCALED, dim=1):
                tables = standardise(*torch.split(columns.to(torch.float64), lengths))
                columns.copy_(torch.cat(tables))
        return rows

    pixels = (part.checked(index).numpy() for part in parts for index in part.chunks(READ))
    # the same images may be divided otherwise, and only the first part is learnt from
    content = chain([np.array(lengths)], pixels)
    rows = kept_rows(f"patches-{atoms}-{VERSION}", content, compute)
    return list(torch.split(rows, lengths))


@dataclass(frozen=True, eq=False)
class Images:
    """Images in memory or stored, as pixels.

    Args:
        inputs: Images (N, C, H, W), or rows if a shape is given.
        shape: (C, H, W).
    """

    inputs: Inputs
    shape: Shape | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def raw(self, index: Tensor) -> Tensor:
        """Read the images at some positions."""
        images = read(self.inputs, index).detach()
        if self.shape is None:
            return images
        values = math.prod(images.shape[1:])
        if values != math.prod(self.shape):
            raise ValueError(f"rows must hold images of shape {self.shape}, got {values} values")
        return images.reshape(len(images), *self.shape)

    def checked(self, index: Tensor) -> Tensor:
        """Read the images at some positions and check their values."""
        images = self.raw(index)
        if images.dtype == torch.uint8 or not len(images):
            return images
        low, high = images.aminmax()
        if not (low >= 0 and high <= 1):  # nan is neither
            raise ValueError(
                f"images must be uint8 or floats in [0, 1], got values from {low} to {high}"
            )
        return images

    def pixels(self, index: Tensor) -> Tensor:
        """Read the images at some positions as float32 in [0, 1]."""
        images = self.raw(index)
        pixels = images.to(torch.float32)
        return pixels / 255 if images.dtype == torch.uint8 else pixels

    def chunks(self, size: int) -> Sequence[Tensor]:
        """Divide all positions into parts of at most `size`."""
        return torch.split(torch.arange(len(self)), size)

    @property
    def size(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return tuple(self._first.shape[1:])

    @property
    def dtype(self) -> torch.dtype:
        return self._first.dtype

    @property
    def _first(self) -> Tensor:
        return self.raw(torch.tensor([0]))


def check_images(parts: Sequence[Images]) -> None:
    """Raise unless all parts hold images of one shape, large enough for patches."""
    for part in parts:
        if isinstance(part.inputs, np.ndarray):
            raise TypeError("images must be a tensor or stored images, got an array of NumPy")
    if not len(parts[0]):
        raise ValueError("patch features must be learnt from one image or more, got none")
    for part in filter(len, parts):
        if part.dtype not in DTYPES:
            raise TypeError(f"images must be uint8, float32 or float64, got {part.dtype}")
    size = parts[0].size
    if len(size) != 3 or min(size[1:]) < LEAST_SIDE:
        raise ValueError(
            f"inputs must be images (channels, height, width) of {LEAST_SIDE} x {LEAST_SIDE} "
            f"pixels or more for patch features, got {size}"
        )
    for part in parts[1:]:
        if len(part) and part.size != size:
            raise ValueError(f"images must all have the shape {size}, got {part.size}")


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Atoms, for patches that are not whitened yet: d_k . w = project_k . x^ - shift_k.

    Args:
        side: Height and width p of a patch.
        project: (K, d), the product of atoms and whitening.
        shift: (K,), the same of the mean patch.
    """

    side: int
    project: Tensor
    shift: Tensor

    @property
    def stride(self) -> int:
        return max(1, self.side // 3)

    def grid(self, size: Sequence[int]) -> tuple[int, int]:
        """Count the rows and columns of patches in an image (C, H, W)."""
        down, across = ((length - self.side) // self.stride + 1 for length in size[1:])
        return down, across

    def code(self, pixels: Tensor) -> Tensor:
        """Code images (n, C, H, W) as rows (n, 8 K), before scaling."""
        patches = contrast(F.unfold(pixels, self.side, stride=self.stride), dim=1)
        z = self.project @ patches - self.shift[:, None]
        z = z.reshape(len(pixels), len(self.shift), *self.grid(pixels.shape[1:]))
        codes = [F.relu(signed - THRESHOLD) for signed in (z, -z)]
        return torch.cat([F.adaptive_avg_pool2d(code, 2) for code in codes], dim=1).flatten(1)


def contrast(patches: Tensor, dim: int) -> Tensor:
    """Subtract the mean of each patch and divide by its deviation."""
    patches = patches - patches.mean(dim, keepdim=True)
    return patches * (patches.square().mean(dim, keepdim=True) + CONTRAST).rsqrt()


def learn(
    images: Images,
    atoms: int,
    *,
    generator: Generator,
    on_step: Callable[[], object] = lambda: None,
) -> Dictionary:
    """Learn a dictionary from images, in float64.

    Args:
        images: The training images.
        atoms: Size of the dictionary.
        generator: Draws the patches and the first atoms.
        on_step: Called now and then.
    """
    side = min(SIDE, min(images.size[1:]) // 2)
    patches = contrast(_sample(images, side, generator, on_step).to(torch.float64), 1)
    mean = patches.mean(0)
    patches -= mean
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    # symmetric, so that whitened patches still look like patches
    whiten = vectors * (values + WHITENING).rsqrt() @ vectors.T
    project = _k_means(patches @ whiten, atoms, generator, on_step) @ whiten
    return Dictionary(side, project.to(torch.float32), (project @ mean).to(torch.float32))


def _sample(
    images: Images, side: int, generator: Generator, on_step: Callable[[], object]
) -> Tensor:
    """Draw patches (n, C p p) at random from random images, with replacement."""

    def draw(below: int) -> Tensor:
        return torch.randint(below, (SAMPLED,), generator=generator)

    _, height, width = images.size
    which = draw(len(images)).sort().values
    top, left = draw(height - side + 1), draw(width - side + 1)
    found = []
    for part in torch.split(torch.arange(SAMPLED), READ):
        needed, place = torch.unique_consecutive(which[part], return_inverse=True)
        windows = images.pixels(needed).unfold(2, side, 1).unfold(3, side, 1)
        found.append(windows[place, :, top[part], left[part]].flatten(1))
        on_step()
    return torch.cat(found)


def _k_means(
    points: Tensor, atoms: int, generator: Generator, on_step: Callable[[], object]
) -> Tensor:
    """Find unit vectors (K, d) such that each point is near a multiple of one of them.

    An atom without points stays as it is.
    """
    found = torch.randn(atoms, points.shape[1], dtype=points.dtype, generator=generator)
    found = F.normalize(found)
    for _ in range(ROUNDS):
        moved = found.clone()
        for some in torch.split(points, 4000):
            z = some @ found.T
            nearest = z.abs().argmax(1)
            moved.index_add_(0, nearest, some * z.gather(1, nearest[:, None]))
            on_step()
        found = F.normalize(moved)
    return found


def learn_and_code(
    parts: Sequence[Images], atoms: int, on_progress: OnProgress | None = None
) -> tuple[Dictionary, Tensor]:
    """Learn from the first images, and code all of them as rows (N, 8 K), before scaling.

    Args:
        parts: The training images and others.
        atoms: Size of the dictionary.
        on_progress: See `patch_features`.
    """
    report = on_progress or Lines("patch features")
    total = sum(map(len, parts))

    def step() -> None:
        report(0, total)
        interrupts.check()

    with one_thread():
        dictionary = learn(parts[0], atoms, generator=Generator().manual_seed(SEED), on_step=step)
    return dictionary, code_all(dictionary, parts, report)


def code_all(
    dictionary: Dictionary, parts: Sequence[Images], on_progress: OnProgress | None = None
) -> Tensor:
    """Code images as rows (N, 8 K), before scaling; see `learn_and_code`."""
    report = on_progress or Lines("patch features")
    lengths = [len(part) for part in parts]
    total, done = sum(lengths), 0
    rows = torch.empty(total, 8 * len(dictionary.shift), dtype=torch.float32)
    with one_thread() as threads:
        for count in _code(parts, dictionary, torch.split(rows, lengths), threads):
            done += count
            report(done, total)
            interrupts.check()
    return rows


def _code(
    parts: Sequence[Images], dictionary: Dictionary, rows: Sequence[Tensor], threads: int
) -> Iterator[int]:
    """Code all images into rows; yield the number of images of each finished chunk."""
    down, across = dictionary.grid(parts[0].size)
    at_once = max(1, CODED // (down * across))

    def code(part: Images, index: Tensor, out: Tensor) -> int:
        out.copy_(dictionary.code(part.pixels(index)))
        return len(index)

    pool = ThreadPoolExecutor(threads)
    try:
        for part, own in zip(parts, rows, strict=True):
            yield from pool.map(
                partial(code, part), part.chunks(at_once), torch.split(own, at_once)
            )
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[int]:
    """Let every operation of torch use one thread; yield how many it used before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)

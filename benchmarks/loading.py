"""Images per second of training batches of CIFAR's kind, and seconds to load CIFAR-10, one thread.

Two pipelines prepare the same images in the same batches of 128: ours works on whole batches, the
other image by image with Pillow, as common data loaders do (padding, crop, mirror, perhaps
rotation; to a tensor; normalised; stacked). They take turns, and a figure is the median over
rounds of the ratio in the same round, so that a slow moment of the machine falls on both.

Images are CIFAR-10's if --data-dir or LOSSFORGE_DATA has them, else pieces of two photographs that
come with scikit-learn.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_images
from torch import Generator, Tensor

import lossforge.data
from lossforge.data.augment import CIFAR10_TRANSFORM, CIFAR100_TRANSFORM, TensorTransform

BATCH = 128
IMAGES = 5120  # in one turn
FEWEST_TIMES, MOST_SECONDS = 5.0, 3.0  # what is promised: the ratio, and the loading of CIFAR-10


def photographs() -> Tensor:
    """Pieces of 32 x 32 pixels of two photographs, as bytes."""
    sources = [torch.tensor(image).permute(2, 0, 1) for image in load_sample_images().images]
    pieces = [image.unfold(1, 32, 9).unfold(2, 32, 9).permute(1, 2, 0, 3, 4) for image in sources]
    return torch.cat([piece.reshape(-1, 3, 32, 32) for piece in pieces])


def one_by_one(images: list[Image.Image], recipe: TensorTransform, draw: random.Random) -> Tensor:
    """A batch of a pipeline that handles one Pillow image after the other."""
    mean = torch.tensor(recipe.mean).view(3, 1, 1)
    std = torch.tensor(recipe.std).view(3, 1, 1)
    batch = []
    for image in images:
        padded = ImageOps.expand(image, recipe.padding)
        left, top = draw.randint(0, 2 * recipe.padding), draw.randint(0, 2 * recipe.padding)
        image = padded.crop((left, top, left + 32, top + 32))
        if draw.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if recipe.degrees:
            image = image.rotate(draw.uniform(-recipe.degrees, recipe.degrees))
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
        batch.append(pixels.float().div_(255).sub_(mean).div_(std))
    return torch.stack(batch)


def check_same_evaluation(images: Tensor, recipe: TensorTransform) -> None:
    """Refuse to compare pipelines that do not prepare the same thing."""
    plain = TensorTransform(recipe.mean, recipe.std, padding=0, mirror=False)
    ours = plain(images, torch.arange(8), None)
    still = TensorTransform(recipe.mean, recipe.std, padding=0)
    theirs = one_by_one(pillow_images(images[:8]), still, NeverFlip())
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


class NeverFlip(random.Random):
    """Draws that leave an image as it is."""

    def random(self) -> float:
        return 0.99


def pillow_images(images: Tensor) -> list[Image.Image]:
    return [Image.fromarray(array) for array in images.permute(0, 2, 3, 1).contiguous().numpy()]


def seconds(prepare: Callable[[Tensor], Tensor], order: Tensor) -> float:
    """Time one turn."""
    start = time.perf_counter()
    for index in order.split(BATCH):
        prepare(index)
    return time.perf_counter() - start


def compare(name: str, recipe: TensorTransform, images: Tensor, rounds: int) -> float:
    """Print images per second of both pipelines; return the ratio."""
    check_same_evaluation(images, recipe)
    singles = pillow_images(images)
    generator, draw = Generator().manual_seed(0), random.Random(0)

    def ours(index: Tensor) -> Tensor:
        return recipe(images, index, generator)

    def theirs(index: Tensor) -> Tensor:
        return one_by_one([singles[i] for i in index.tolist()], recipe, draw)

    speeds = []
    for turn in range(rounds + 1):
        say(f"{name}: round {turn} of {rounds}" if turn else f"{name}: warming up")
        order = torch.randint(len(images), (IMAGES,), generator=generator)
        speeds.append((IMAGES / seconds(ours, order), IMAGES / seconds(theirs, order)))
    batched, single = (statistics.median(column) for column in zip(*speeds[1:], strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in speeds[1:])
    print(f"{name:<30}{batched:>12,.0f}{single:>12,.0f}{ratio:>8.1f}")
    return ratio


def load_cifar10(data_dir: Path | None) -> tuple[Tensor, float] | None:
    """The training images and the seconds it took to load the data set, if it is there."""
    start = time.perf_counter()
    try:
        data = lossforge.data.load("cifar10", data_dir=data_dir)
    except FileNotFoundError as error:
        if data_dir is not None:
            raise SystemExit(f"error: {error}") from None
        return None
    taken = time.perf_counter() - start
    assert isinstance(data.train.inputs, Tensor)
    return data.train.inputs, taken


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def rounds(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return int(text)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="folder that holds CIFAR-10")
    parser.add_argument(
        "--repeats", type=rounds, default=15, help="rounds per recipe (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds: a look, not a result")
    return parser.parse_args()


def measure(data_dir: Path | None, rounds: int) -> bool:
    """Print the figures; return whether every promise is kept."""
    loaded = load_cifar10(data_dir)
    images = photographs() if loaded is None else loaded[0]
    source = "photographs" if loaded is None else "CIFAR-10"
    print(f"{source}, batches of {BATCH}, one thread, torch {torch.__version__}.\n")
    print(f"{'images/s':<30}{'batched':>12}{'one by one':>12}{'ratio':>8}")
    recipes = {
        "crop, mirror": CIFAR10_TRANSFORM,
        "crop, mirror, rotation": CIFAR100_TRANSFORM,
    }
    ratios = {name: compare(name, recipe, images, rounds) for name, recipe in recipes.items()}
    promises = {
        f"{name}: {ratio:.1f} times, at least {FEWEST_TIMES:g}": ratio >= FEWEST_TIMES
        for name, ratio in ratios.items()
    }
    if loaded is not None:
        promise = f"CIFAR-10 loaded in {loaded[1]:.2f} s, under {MOST_SECONDS:g}"
        promises[promise] = loaded[1] < MOST_SECONDS
    print()
    for promise, met in promises.items():
        print(f"{'met   ' if met else 'MISSED'}  {promise}")
    return all(promises.values())


def main() -> int:
    """Measure; 0 if every promise is kept, 1 if one is missed, 130 if stopped by Ctrl-C."""
    try:
        args = arguments()
        torch.set_num_threads(1)
        return 0 if measure(args.data_dir, 3 if args.quick else args.repeats) else 1
    except KeyboardInterrupt:
        say("stopped")
        return 130


if __name__ == "__main__":
    sys.exit(main())

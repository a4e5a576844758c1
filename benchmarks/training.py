"""Images per second of training on CIFAR-10's kind of images, and the share of the loss in a step.

Two loops train the same network from the same weights by the paper's protocol. Ours is that of
lossforge.training: batches prepared as a whole, channels last. The other is a plain one: a
DataLoader that handles one Pillow image after the other with torchvision's operations (see
OneByOne; torchvision itself is not needed), contiguous layout, the loss from softmax and one-hot
labels. They take turns, and a figure is the median over rounds of the ratio in the same round, so
that a slow moment of the machine falls on both.

The share of the loss: forward and backward of BEF on logits of a batch over a step of ours.

Images are CIFAR-10's if --data-dir or LOSSFORGE_DATA has them, else pieces of two photographs that
come with scikit-learn.
"""

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from loading import check_same_evaluation, load_cifar10, photographs, pillow_images, rounds, say
from PIL import Image, ImageOps
from torch import Generator, Tensor, nn
from torch.utils.data import DataLoader, Dataset
from twins import twin

import lossforge
from lossforge import models
from lossforge.data.augment import CIFAR10_TRANSFORM
from lossforge.training import Epoch, Method, Network, Samples, Settings
from lossforge.training.fit import Fit
from lossforge.training.sample_loss import SampleLoss

BATCH, CLASSES, SIDE = 128, 10, 32
LOSS = "BEF"
SETTINGS = Settings(batch_size=BATCH, lr=0.01, momentum=0.9, weight_decay=1e-4, clip=5.0)
MOST_SHARE = 0.02  # promised: of the loss in a step of cnn8
FEWEST_TIMES = {"cnn8": 1.1, "cnn8-narrow": 1.5}  # promised: the ratio
STEPS = {"cnn8": 1, "cnn8-narrow": 4}  # of one turn
Turn = Callable[[Tensor], object]  # trains on the images at these positions


class OneByOne(Dataset[tuple[Tensor, int]]):
    """Images that are augmented one at a time, by the operations of torchvision.

    Those of its CIFAR10 and of RandomCrop(32, padding=4), RandomHorizontalFlip(), ToTensor() and
    Normalize(mean, std), without the layers of calls and checks of types around them.
    """

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.arrays = images.permute(0, 2, 3, 1).contiguous().numpy()
        self.labels = labels.tolist()

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        image = Image.fromarray(self.arrays[position])
        image = ImageOps.expand(image, CIFAR10_TRANSFORM.padding, fill=(0, 0, 0))
        most = image.size[0] - SIDE + 1
        top = int(torch.randint(0, most, size=(1,)).item())
        left = int(torch.randint(0, most, size=(1,)).item())
        image = image.crop((left, top, left + SIDE, top + SIDE))
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return normalised(to_tensor(image)), self.labels[position]


def to_tensor(image: Image.Image) -> Tensor:
    """What ToTensor does."""
    pixels = torch.from_numpy(np.array(image, np.uint8, copy=True))
    return pixels.permute((2, 0, 1)).contiguous().to(dtype=torch.get_default_dtype()).div(255)


def normalised(image: Tensor) -> Tensor:
    """What Normalize does: not in place, with its constants and their check for every image."""
    image = image.clone()
    mean = torch.as_tensor(CIFAR10_TRANSFORM.mean, dtype=image.dtype, device=image.device)
    std = torch.as_tensor(CIFAR10_TRANSFORM.std, dtype=image.dtype, device=image.device)
    if (std == 0).any():
        raise ValueError("std must not be 0")
    return image.sub_(mean.view(-1, 1, 1)).div_(std.view(-1, 1, 1))


def reference(model: nn.Module, images: Tensor, labels: Tensor) -> Turn:
    """The plain loop."""
    dataset = OneByOne(images, labels)
    optimizer = SETTINGS.make_optimizer(model.parameters())
    criterion = twin(lossforge.parse(LOSS))

    def turn(order: Tensor) -> tuple[float, float]:
        model.train()
        total, hits = 0.0, 0
        for inputs, target in DataLoader(dataset, BATCH, sampler=order.tolist()):
            logits = model(inputs)
            loss = criterion(logits, target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), SETTINGS.clip)
            optimizer.step()
            total += loss.item() * len(target)
            hits += int((logits.argmax(1) == target).sum())
        return total / len(order), 100 * hits / len(order)

    return turn


def ours(model: nn.Module, images: Tensor, labels: Tensor) -> Turn:
    """The loop of lossforge.training."""
    cpu = torch.device("cpu")
    network = Network.make(model, SETTINGS, cpu)
    samples = Samples(partial(CIFAR10_TRANSFORM, images), labels)
    objective = SampleLoss(lossforge.parse(LOSS), cpu)
    generator = Generator().manual_seed(0)
    epoch = Epoch(0, [network], objective, samples, {}, generator)
    fit = Fit(Method(), SETTINGS, cpu)
    return lambda order: fit.epoch(epoch, order, generator)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(name: str, images: Tensor, labels: Tensor, repeats: int) -> tuple[float, float]:
    """Print images per second of both loops; return the ratio and the share of our loss."""
    model = models.make(name, CLASSES, inputs=(3, SIDE, SIDE))
    plain = reference(copy.deepcopy(model), images, labels)
    fast = ours(model, images, labels)
    generator = Generator().manual_seed(0)
    loss = loss_step()
    steps = STEPS[name]
    speeds, shares = [], []
    for number in range(repeats + 1):
        say(f"{name}: {f'round {number} of {repeats}' if number else 'warming up'}")
        order = torch.randint(len(images), (steps * BATCH,), generator=generator)
        times = [seconds(partial(turn, order)) for turn in (fast, plain)]
        alone = statistics.median(seconds(loss) for _ in range(20))
        speeds.append([len(order) / taken for taken in times])
        shares.append(alone * steps / times[0])
    quick, slow = (statistics.median(column) for column in zip(*speeds[1:], strict=True))
    ratios = sorted(ours / theirs for ours, theirs in speeds[1:])
    ratio, share = statistics.median(ratios), statistics.median(shares[1:])
    say(f"{name}: ratios from {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"{name:<16}{quick:>12,.1f}{slow:>12,.1f}{ratio:>8.2f}{100 * share:>11.2f} %")
    return ratio, share


def loss_step() -> Callable[[], None]:
    """Forward and backward of our loss alone, on the logits of a batch."""
    generator = Generator().manual_seed(0)
    logits = torch.randn(BATCH, CLASSES, generator=generator).requires_grad_()
    target = torch.randint(CLASSES, (BATCH,), generator=generator)
    loss = lossforge.parse(LOSS)

    def step() -> None:
        logits.grad = None
        loss(logits, target).backward()

    return step


def measure(data_dir: Path | None, repeats: int) -> bool:
    """Print the figures; return whether every promise is kept."""
    loaded = load_cifar10(data_dir)
    images = photographs() if loaded is None else loaded[0]
    labels = torch.randint(CLASSES, (len(images),), generator=Generator().manual_seed(0))
    check_same_evaluation(images, CIFAR10_TRANSFORM)
    theirs = torch.stack([normalised(to_tensor(image)) for image in pillow_images(images[:8])])
    torch.testing.assert_close(CIFAR10_TRANSFORM(images, torch.arange(8), None), theirs)
    source = "photographs" if loaded is None else "CIFAR-10"
    threads = f"threads: {torch.get_num_threads()}, torch {torch.__version__}"
    print(f"{source}, {LOSS}, batches of {BATCH}, {threads}.\n")
    print(f"{'images/s':<16}{'ours':>12}{'plain':>12}{'ratio':>8}{'loss share':>13}")
    promises = {}
    for name, least in FEWEST_TIMES.items():
        ratio, share = compare(name, images, labels, repeats)
        promises[f"{name}: {ratio:.2f} times, at least {least:g}"] = ratio >= least
        if name == "cnn8":
            text = f"{name}: loss {100 * share:.2f} % of a step, under {MOST_SHARE:.0%}"
            promises[text] = share < MOST_SHARE
    print()
    for promise, met in promises.items():
        print(f"{'met   ' if met else 'MISSED'}  {promise}")
    return all(promises.values())


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="folder that holds CIFAR-10")
    parser.add_argument("--threads", type=rounds, default=1, help="of the CPU (default: 1)")
    parser.add_argument(
        "--repeats", type=rounds, default=25, help="rounds per network (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="7 rounds: a look, not a result")
    return parser.parse_args()


def main() -> int:
    """Measure; 0 if every promise is kept, 1 if one is missed, 130 if stopped by Ctrl-C."""
    try:
        args = arguments()
        torch.set_num_threads(args.threads)
        return 0 if measure(args.data_dir, 7 if args.quick else args.repeats) else 1
    except KeyboardInterrupt:
        say("stopped")
        return 130


if __name__ == "__main__":
    sys.exit(main())

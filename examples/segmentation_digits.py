"""Segmentation: label every pixel of scenes of digits, whole digits of which have a wrong label.

    python examples/segmentation_digits.py [--epochs 30] [--loss CE,BEF]

Needs `pip install "lossforge[bench]"`. A scene is four of scikit-learn's digits in a square, a
pixel's label its digit's; 40 % of the digits in training scenes are labelled as another, and faint
pixels, which belong to no digit for certain, are ignored (label 255, as in Pascal VOC). Any loss
does this by itself: `loss(logits (N, C, H, W), masks (N, H, W))`. Prints the share of right pixels
in scenes of test digits; takes about two minutes on one core.
"""

import argparse

import torch
from torch import Tensor, nn

import lossforge
from lossforge import data, noise

IGNORED, CLASSES, BATCH = 255, 10, 16


def scenes(inputs: Tensor, labels: Tensor, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (N, 1, 16, 16) of four random digits, and their masks (N, 16, 16)."""
    digits = inputs.unflatten(1, (8, 8))
    masks = torch.where(digits > 0.4, labels[:, None, None], IGNORED)
    order = torch.randperm(len(inputs), generator=generator)
    groups = order[: len(order) // 4 * 4].view(-1, 2, 2)

    def tiles(parts: Tensor) -> Tensor:
        return parts[groups].transpose(2, 3).reshape(-1, 16, 16)

    return tiles(digits)[:, None], tiles(masks)


def train(name: str, epochs: int) -> float:
    """The share of right pixels after training with a loss.

    Args:
        name: Name of the loss in the catalogue.
        epochs: Numbers of passes over the training digits, each in new scenes.
    """
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(CLASSES, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(1, 32, 5, padding=2), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.Conv2d(64, 64, 5, padding=2), nn.BatchNorm2d(64), nn.ReLU()),
        nn.Conv2d(64, CLASSES, 1),
    )
    loss = lossforge.make(name, ignore_index=IGNORED)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(epochs):
        images, masks = scenes(digits.train.inputs, given, generator=generator)
        for image, mask in zip(images.split(BATCH), masks.split(BATCH), strict=True):
            optimizer.zero_grad()
            loss(network(image), mask).backward()
            optimizer.step()
    test = digits.tests["test"]
    images, masks = scenes(test.inputs, test.true, generator=generator)
    network.eval()
    with torch.no_grad():
        hits = network(images).argmax(1) == masks
    return float(hits[masks != IGNORED].float().mean())


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--loss", default="CE,BEF")
    options = parser.parse_args()
    for name in options.loss.split(","):
        found = train(name, options.epochs)
        print(f"{name:10}{100 * found:6.1f} % of the pixels of digits", flush=True)


if __name__ == "__main__":
    main()

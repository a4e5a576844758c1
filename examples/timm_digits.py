"""timm: a small ResNet with Mixup on digits, 40 % of whose labels are wrong.

    python examples/timm_digits.py [--epochs 15] [--loss CE,BEF]

Needs `pip install "lossforge[bench,timm]"`. Nothing is downloaded: the network starts from random
weights, the images are scikit-learn's. Prints the test accuracy with each loss.
"""

import argparse

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.optim import create_optimizer_v2
from timm.task import ClassificationTask
from torch import Tensor

import lossforge
from lossforge import data, noise
from lossforge.integrations.timm import MixupLoss

BATCH = 64


def images(inputs: Tensor) -> Tensor:
    """Rows of 64 numbers as images that a ResNet does not shrink to nothing."""
    return torch.nn.functional.interpolate(inputs.unflatten(1, (1, 8, 8)), scale_factor=4)


def train(name: str, epochs: int) -> float:
    """Test accuracy after training with a loss.

    Args:
        name: Name of the loss in the catalogue.
        epochs: Passes over the training data.
    """
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(10, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    test = digits.tests["test"]
    torch.manual_seed(0)
    np.random.seed(0)  # Mixup draws from it
    model = timm.create_model("test_resnet.r160_in1k", in_chans=1, num_classes=10)
    task = ClassificationTask(model, MixupLoss(lossforge.make(name)))
    mixup = Mixup(mixup_alpha=0.2, label_smoothing=0.0, num_classes=10)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.01)
    inputs = images(digits.train.inputs)
    for _ in range(epochs):
        task.train()
        order = torch.randperm(len(inputs), generator=generator)
        for batch in order[: len(order) // BATCH * BATCH].view(-1, BATCH):
            optimizer.zero_grad()
            task(*mixup(inputs[batch], given[batch]))["loss"].backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = model(images(test.inputs)).argmax(1) == test.true
    return float(hits.float().mean())


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--loss", default="CE,BEF")
    options = parser.parse_args()
    for name in options.loss.split(","):
        found = train(name, options.epochs)
        print(f"{name:10}{100 * found:6.1f} % of the test digits", flush=True)


if __name__ == "__main__":
    main()

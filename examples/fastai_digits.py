"""fastai: a learner on digits, 40 % of whose labels are wrong.

    python examples/fastai_digits.py [--epochs 50] [--loss CE,BEF]

Needs `pip install "lossforge[bench,fastai]"`. Prints the test accuracy with each loss.

The network, Adam's learning rate, batches and epochs are those of the `digits` benchmark:
long enough for cross entropy to learn wrong labels. Stopped early, it does nearly as well.
"""

import argparse

import torch
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.torch_core import set_seed
from torch import nn
from torch.utils.data import TensorDataset

import lossforge
from lossforge import data, noise
from lossforge.integrations.fastai import LossFunc


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
    set_seed(0)
    loaders = DataLoaders(
        DataLoader(TensorDataset(digits.train.inputs, given), bs=256, shuffle=True),
        DataLoader(TensorDataset(test.inputs, test.true), bs=359),
        device="cuda" if torch.cuda.is_available() else "cpu",
    )
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    learner = Learner(loaders, model, loss_func=LossFunc(lossforge.make(name)), lr=4e-3)
    with learner.no_logging():
        learner.fit(epochs)
        probs, labels = learner.get_preds()  # probabilities, thanks to LossFunc
    return float((probs.argmax(1) == labels).float().mean())


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--loss", default="CE,BEF")
    options = parser.parse_args()
    for name in options.loss.split(","):
        found = train(name, options.epochs)
        print(f"{name:10}{100 * found:6.1f} % of the test digits", flush=True)


if __name__ == "__main__":
    main()

"""scikit-learn through skorch: a search for the loss's parameters on digits with wrong labels.

    python examples/skorch_digits.py [--epochs 50] [--betas=-1,-8]

Needs `pip install "lossforge[bench,skorch]"`. 40 % of the training labels are wrong. Prints the
test accuracy with cross entropy, with BEF, and with the BEF that a grid search chose by
cross-validation on the wrong labels.

The network, Adam's learning rate, batches and epochs are those of the `digits` benchmark:
long enough for cross entropy to learn wrong labels. Stopped early, it does nearly as well.
"""

import argparse

import torch
from sklearn.model_selection import GridSearchCV
from torch import Tensor, nn

import lossforge
from lossforge import data, noise
from lossforge.integrations.skorch import classifier


class Network(nn.Module):
    """A perceptron that returns logits."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, 10) logits of (N, 64) pixels."""
        logits: Tensor = self.layers(inputs)
        return logits


def main() -> None:
    """Train with each loss, then search, and print accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--betas", default="-1,-8")
    options = parser.parse_args()
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(10, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    train, labels = digits.train.inputs.numpy(), given.numpy()
    test, true = digits.tests["test"].inputs.numpy(), digits.tests["test"].true.numpy()
    settings = {
        "max_epochs": options.epochs,
        "lr": 4e-3,
        "optimizer": torch.optim.Adam,
        "batch_size": 256,
        "iterator_train__shuffle": True,
        "train_split": None,
        "verbose": 0,
    }
    for loss in (lossforge.CE, lossforge.BEF):
        torch.manual_seed(0)
        net = classifier(Network, loss, **settings).fit(train, labels)
        found = net.score(test, true)
        print(f"{loss.__name__:10}{100 * found:6.1f} % of the test digits", flush=True)
    torch.manual_seed(0)
    grid = {"criterion__beta": [float(beta) for beta in options.betas.split(",")]}
    search = GridSearchCV(classifier(Network, lossforge.BEF, **settings), grid, cv=2)
    search.fit(train, labels)
    beta, found = search.best_params_["criterion__beta"], search.score(test, true)
    print(f"BEF, beta={beta:g} by search: {100 * found:.1f} % of the test digits")


if __name__ == "__main__":
    main()

"""A multilayer perceptron, for features and small images."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from ..errors import check_integer
from .network import Network


class MLP(Network):
    """Linear layers with ReLU between them; images are flattened first.

    The features are the last hidden layer's activations, after its ReLU; without a hidden layer
    they are the inputs, and the network is a logistic regression.

    Args:
        in_features: Numbers in one sample.
        num_classes: Logits, at least 2.
        hidden: Widths of the hidden layers.
    """

    def __init__(
        self, in_features: int, num_classes: int, hidden: Sequence[int] = (256, 256)
    ) -> None:
        super().__init__()
        check_integer("in_features", in_features, 1)
        check_integer("num_classes", num_classes, 2)
        for width in hidden:
            check_integer("hidden", width, 1)
        widths = (in_features, *hidden)
        self.layers = nn.Sequential()
        for before, after in pairwise(widths):
            self.layers.append(nn.Linear(before, after))
            self.layers.append(nn.ReLU())
        self.fc = nn.Linear(widths[-1], num_classes)
        self.reset_parameters()

    def features(self, inputs: Tensor) -> Tensor:
        """Activations of the last hidden layer (N, hidden[-1])."""
        activations: Tensor = self.layers(inputs.flatten(1))
        return activations

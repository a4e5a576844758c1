"""The networks of the noisy-label protocol, by name and with reproducible initial weights.

>>> import torch
>>> network = make("cnn8", 10, inputs=(3, 32, 32), generator=torch.Generator().manual_seed(0))
>>> images = torch.zeros(2, 3, 32, 32)
>>> network(images).shape, network.features(images).shape
(torch.Size([2, 10]), torch.Size([2, 256]))
"""

from .cnn import CNN8
from .make import make, names
from .mlp import MLP
from .network import Network
from .resnet import ResNet, resnet34, resnet50
from .weights import load_weights

__all__ = [
    "CNN8",
    "MLP",
    "Network",
    "ResNet",
    "load_weights",
    "make",
    "names",
    "resnet34",
    "resnet50",
]

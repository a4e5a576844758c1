"""Noise-robust multiclass losses from univariate functions, as drop-ins for cross entropy.

>>> import torch, lossforge
>>> criterion = lossforge.BEF()  # was torch.nn.CrossEntropyLoss()
>>> criterion(torch.zeros(4, 10), torch.tensor([3, 1, 4, 1])).shape
torch.Size([])
"""

from . import base, catalog, constructions, errors, loss
from .catalog import BEF, BQF, CE, parse
from .constructions import BinaryReduction, TargetSeparation
from .loss import Loss

__version__ = "0.1.0"

__all__ = [
    "BEF",
    "BQF",
    "CE",
    "BinaryReduction",
    "Loss",
    "TargetSeparation",
    "base",
    "catalog",
    "constructions",
    "errors",
    "loss",
    "parse",
]

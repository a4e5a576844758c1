"""Noise-robust multiclass losses from univariate functions, as drop-ins for cross entropy.

>>> import torch, lossforge
>>> criterion = lossforge.BEF()  # was torch.nn.CrossEntropyLoss()
>>> criterion(torch.zeros(4, 10), torch.tensor([3, 1, 4, 1])).shape
torch.Size([])
"""

from . import base, catalog, constructions, errors, loss
from .catalog import (
    AEL,
    AGCE,
    AMSE,
    AUL,
    BEF,
    BQF,
    CE,
    FL,
    GCE,
    GJS,
    JS,
    LDR,
    MAE,
    MSE,
    NCE,
    NFL,
    NGCE,
    NL,
    NNCE,
    NNFL,
    RCE,
    TGCE,
    VCE,
    VEL,
    VMSE,
    ANorm,
    NLPlus,
    PHuberCE,
    PHuberGCE,
    PLPlus,
    TaylorCE,
    make,
    names,
    parse,
)
from .constructions import BinaryReduction, TargetSeparation
from .loss import Loss

__version__ = "0.1.0"

__all__ = [
    "AEL",
    "AGCE",
    "AMSE",
    "ANorm",
    "AUL",
    "BEF",
    "BQF",
    "CE",
    "FL",
    "GCE",
    "GJS",
    "JS",
    "LDR",
    "MAE",
    "MSE",
    "NCE",
    "NFL",
    "NGCE",
    "NL",
    "NLPlus",
    "NNCE",
    "NNFL",
    "PHuberCE",
    "PHuberGCE",
    "PLPlus",
    "RCE",
    "TGCE",
    "TaylorCE",
    "VCE",
    "VEL",
    "VMSE",
    "BinaryReduction",
    "Loss",
    "TargetSeparation",
    "base",
    "catalog",
    "constructions",
    "errors",
    "loss",
    "make",
    "names",
    "parse",
]

"""Noise-robust multiclass losses from univariate functions, as drop-ins for cross entropy.

>>> import torch, lossforge
>>> criterion = lossforge.BEF()  # was torch.nn.CrossEntropyLoss()
>>> criterion(torch.zeros(4, 10), torch.tensor([3, 1, 4, 1])).shape
torch.Size([])
"""

import importlib
from types import ModuleType

from . import base, catalog, constructions, errors, loss, models, noise, theory, training
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
from .catalog.sums import SRSchedule
from .constructions import (
    BackwardCorrection,
    BinaryReduction,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
    TargetSeparation,
    complementary_labels,
)
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
    "BackwardCorrection",
    "BinaryReduction",
    "EpsSoftmax",
    "ForwardCorrection",
    "LogitClip",
    "Loss",
    "SRSchedule",
    "Sharpened",
    "TargetSeparation",
    "base",
    "catalog",
    "complementary_labels",
    "constructions",
    "data",
    "errors",
    "loss",
    "make",
    "models",
    "names",
    "noise",
    "parse",
    "report",
    "theory",
    "training",
    "tuning",
]


def __getattr__(name: str) -> ModuleType:
    """Load what needs more than torch when it is first asked for."""
    if name in ("data", "report", "tuning"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Named losses: a reference and parameters, no behaviour of their own."""

from .balanced import BEF, BQF
from .classwise import (
    AMSE,
    GJS,
    LDR,
    MSE,
    NCE,
    NFL,
    NGCE,
    NL,
    NNCE,
    NNFL,
    ANorm,
    NLPlus,
    PLPlus,
)
from .entries import ENTRIES
from .entry import Entry
from .lookup import find
from .make import make, names
from .parse import parse
from .pointwise import (
    AEL,
    AGCE,
    AUL,
    CE,
    FL,
    GCE,
    JS,
    MAE,
    RCE,
    TGCE,
    VCE,
    VEL,
    VMSE,
    PHuberCE,
    PHuberGCE,
    TaylorCE,
)
from .presets import PRESETS, select, settings
from .references import REFERENCES
from .sums import SRSchedule

CLASSES = (
    *(AEL, AGCE, AMSE, ANorm, AUL, BEF, BQF, CE, FL, GCE, GJS, JS, LDR, MAE, MSE, NCE, NFL, NGCE),
    *(NL, NLPlus, NNCE, NNFL, PHuberCE, PHuberGCE, PLPlus, RCE, TGCE, TaylorCE, VCE, VEL, VMSE),
)

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
    "CLASSES",
    "ENTRIES",
    "Entry",
    "PRESETS",
    "REFERENCES",
    "SRSchedule",
    "find",
    "make",
    "names",
    "parse",
    "select",
    "settings",
]

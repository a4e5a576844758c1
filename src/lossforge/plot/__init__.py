"""Pictures of base functions and losses: matplotlib axes in, matplotlib axes out."""

from .balance import balance
from .curves import base, loss, pull
from .explore import explorer
from .frontier import frontier
from .shares import shares
from .sheet import example, sheet
from .simplex import simplex
from .style import save

__all__ = [
    "balance",
    "base",
    "example",
    "explorer",
    "frontier",
    "loss",
    "pull",
    "save",
    "shares",
    "sheet",
    "simplex",
]

"""One fused algorithm for the losses of the catalogue: optional, and chosen in one place.

`formula` says in plain data what a loss computes; `native` loads the C library; `rows` makes a
differentiable function of it. `Loss` asks for a kernel and otherwise composes torch operations.
"""

from .formula import Form, Formula, Rescaling, Role, Term
from .native import COMPOSED, composed, describe, is_built, is_on
from .rows import Kernel, choose

__all__ = [
    "COMPOSED",
    "Form",
    "Formula",
    "Kernel",
    "Rescaling",
    "Role",
    "Term",
    "choose",
    "composed",
    "describe",
    "is_built",
    "is_on",
]

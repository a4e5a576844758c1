"""One fused algorithm for the losses of the catalogue: optional, and chosen in one place.

`formula` says in plain data what a loss computes; `native` loads the C library; `rows` calls it;
`operator` makes an operator of it for compiled graphs. `Loss` asks for a kernel and otherwise
composes torch operations.
"""

from .formula import Form, Formula, Rescaling, Role, Term
from .native import COMPOSED, DONE, composed, describe, is_built, is_on
from .rows import DTYPES, Kernel

__all__ = [
    "COMPOSED",
    "DONE",
    "DTYPES",
    "Form",
    "Formula",
    "Kernel",
    "Rescaling",
    "Role",
    "Term",
    "composed",
    "describe",
    "is_built",
    "is_on",
]

"""One fused algorithm for the losses of the catalogue: optional, and chosen in one place.

`formula` says in plain data what a loss computes; `native` loads the C library; `rows` calls it;
`operator` makes an operator of it for compiled graphs; `triton_rows` is for CUDA. `Loss` asks for a
kernel and otherwise composes torch operations.
"""

from .formula import Form, Formula, Rescaling, Role, Term
from .native import COMPOSED, DONE, composed, describe, is_built, is_on, is_on_cuda
from .rows import DTYPES, Kernel
from .triton_rows import TritonKernel

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
    "TritonKernel",
    "composed",
    "describe",
    "is_built",
    "is_on",
    "is_on_cuda",
]

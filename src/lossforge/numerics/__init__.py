"""Approximation and evaluation of univariate functions; depends on torch alone."""

from .chebyshev import Function, evaluate, fit, limited
from .log_space import log_sum
from .positive import Positive, running_mean
from .rows import in_blocks

__all__ = [
    "Function",
    "Positive",
    "evaluate",
    "fit",
    "in_blocks",
    "limited",
    "log_sum",
    "running_mean",
]

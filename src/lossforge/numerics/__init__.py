"""Approximation and evaluation of univariate functions; depends on torch alone."""

from .chebyshev import Function, evaluate, fit
from .positive import Positive, running_mean
from .rows import in_blocks

__all__ = ["Function", "Positive", "evaluate", "fit", "in_blocks", "running_mean"]

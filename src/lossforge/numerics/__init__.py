"""Approximation and evaluation of univariate functions; depends on torch alone."""

from .chebyshev import evaluate, fit, quadrature
from .positive import Positive, running_mean
from .rows import in_blocks

__all__ = ["Positive", "evaluate", "fit", "in_blocks", "quadrature", "running_mean"]

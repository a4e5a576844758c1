"""Constructions: from univariate base functions to multiclass losses."""

from .pairs import BinaryReduction
from .target import TargetLoss, TargetSeparation

__all__ = ["BinaryReduction", "TargetLoss", "TargetSeparation"]

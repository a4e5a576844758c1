"""Univariate base functions: a decreasing h on [0, 1] given by its density."""

from .derivative import Series, from_derivative
from .elementary import (
    ExponentialDecay,
    Focal,
    HuberLog,
    Linear,
    Log,
    MirroredPower,
    Power,
    ShiftedPower,
    Taylor,
)
from .function import BaseFunction, Smooth, format_arguments, integrate
from .paper import Exponential, Quadratic
from .point import Margin, Point

__all__ = [
    "BaseFunction",
    "Exponential",
    "ExponentialDecay",
    "Focal",
    "HuberLog",
    "Linear",
    "Log",
    "Margin",
    "MirroredPower",
    "Point",
    "Power",
    "Quadratic",
    "Series",
    "ShiftedPower",
    "Smooth",
    "Taylor",
    "format_arguments",
    "from_derivative",
    "integrate",
]

"""Univariate base functions: a decreasing h on [0, 1] given by its density."""

from .derivative import Series, from_derivative
from .elementary import (
    ExponentialDecay,
    Linear,
    Log,
    MirroredPower,
    Power,
    ShiftedPower,
    Taylor,
)
from .function import BaseFunction, Smooth, format_arguments, integrate, text_name
from .modified import Focal, HuberLog, HuberPower, JensenShannon, ShiftedLog, Truncated
from .paper import Exponential, Quadratic
from .point import Margin, Point

__all__ = [
    "BaseFunction",
    "Exponential",
    "ExponentialDecay",
    "Focal",
    "HuberLog",
    "HuberPower",
    "JensenShannon",
    "Linear",
    "Log",
    "Margin",
    "MirroredPower",
    "Point",
    "Power",
    "Quadratic",
    "Series",
    "ShiftedLog",
    "ShiftedPower",
    "Smooth",
    "Taylor",
    "Truncated",
    "format_arguments",
    "from_derivative",
    "integrate",
    "text_name",
]

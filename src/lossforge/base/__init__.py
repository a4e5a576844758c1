"""Univariate base functions: a decreasing h on [0, 1] given by its density.

Every class of `elementary`, `modified` and `paper` is a name of this package; nothing has to be
added here.
"""

from typing import TYPE_CHECKING

from . import elementary, modified, paper
from .derivative import Series as Series
from .derivative import from_derivative as from_derivative
from .function import BaseFunction as BaseFunction
from .function import Smooth as Smooth
from .point import Point as Point

if TYPE_CHECKING:
    from .elementary import *  # noqa: F403
    from .modified import *  # noqa: F403
    from .paper import *  # noqa: F403
else:
    _FUNCTIONS = {
        name: member
        for module in (elementary, modified, paper)
        for name, member in vars(module).items()
        if isinstance(member, type) and member.__module__ == module.__name__
    }
    globals().update(_FUNCTIONS)
    __all__ = [
        *sorted(_FUNCTIONS),
        "BaseFunction",
        "Point",
        "Series",
        "Smooth",
        "from_derivative",
    ]

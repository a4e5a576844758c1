"""Named losses: a reference and parameters, no behaviour of their own."""

from ..loss import Loss
from .balanced import BEF, BQF
from .entropy import CE
from .parse import Parser

CATALOG: dict[str, type[Loss]] = {loss.__name__: loss for loss in (CE, BEF, BQF)}

parse = Parser(CATALOG)

__all__ = ["BEF", "BQF", "CATALOG", "CE", "parse"]

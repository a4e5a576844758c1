"""The parts of the library that commands use, imported at their first use.

Importing torch takes seconds, and `--help` does not need it: a command module imports this module
and writes `library.theory.certify(...)`.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from .. import audit, catalog, data, noise, report, theory, tuning
    from ..benchmark import choose
    from ..catalog import describe, markdown
    from ..data import sources
    from ..report import audit as audit_report
    from ..report import frontier as frontier_figure
    from ..report import search as search_figure

__all__ = [
    "audit",
    "audit_report",
    "catalog",
    "choose",
    "data",
    "describe",
    "frontier_figure",
    "markdown",
    "noise",
    "report",
    "search_figure",
    "sources",
    "theory",
    "torch",
    "tuning",
]
# names that are not those of a subpackage
_MODULES = {
    "audit_report": ".report.audit",
    "choose": ".benchmark.choose",
    "describe": ".catalog.describe",
    "frontier_figure": ".report.frontier",
    "markdown": ".catalog.markdown",
    "search_figure": ".report.search",
    "sources": ".data.sources",
    "torch": "torch",
}


def __getattr__(name: str) -> ModuleType:
    """Import a part when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(_MODULES.get(name, f".{name}"), "lossforge")

"""The parts of the library that commands use, imported at their first use.

Importing torch takes seconds, and `--help` does not need it: a command module imports this module
and writes `library.theory.certify(...)`.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch

    from .. import audit as audit
    from .. import benchmark as benchmark
    from .. import catalog as catalog
    from .. import data as data
    from .. import noise as noise
    from .. import report as report
    from .. import theory as theory
    from .. import training as training
    from .. import tuning as tuning
    from ..benchmark import executors as executors
    from ..benchmark import grid as grid
    from ..benchmark import records as records
    from ..benchmark import store as store
    from ..catalog import describe as describe
    from ..report import page as page
    from ..report import style as style

# names that are not those of a subpackage
_MODULES = {
    "describe": ".catalog.describe",
    "executors": ".benchmark.executors",
    "frontier_figure": ".report.frontier",
    "grid": ".benchmark.grid",
    "page": ".report.page",
    "records": ".benchmark.records",
    "runs": ".benchmark.run",
    "search_figure": ".report.search",
    "store": ".benchmark.store",
    "style": ".report.style",
    "torch": "torch",
}


def __getattr__(name: str) -> ModuleType:
    """Import a part when it is first used."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(_MODULES.get(name, f".{name}"), "lossforge")

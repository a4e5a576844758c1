"""The parts of the library that commands use, imported at their first use.

Importing torch takes seconds, and `--help` does not need it: a command module imports this module
and writes `library.theory.certify(...)`.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from .. import interrupts

if TYPE_CHECKING:
    import torch as torch

    from .. import audit as audit
    from .. import catalog as catalog
    from .. import data as data
    from .. import files as files
    from .. import kernels as kernels
    from .. import noise as noise
    from .. import plot as plot
    from .. import report as report
    from .. import style as style
    from .. import theory as theory
    from .. import training as training
    from .. import tuning as tuning
    from ..audit import clean as clean
    from ..benchmark import claim as claim
    from ..benchmark import executors as executors
    from ..benchmark import grid as grid
    from ..benchmark import model as model
    from ..benchmark import outputs as outputs
    from ..benchmark import records as records
    from ..benchmark import run as run
    from ..benchmark import spec as spec
    from ..benchmark import store as store
    from ..catalog import describe as describe
    from ..report import page as page
    from ..report import search as search

_MODULES = {
    "audit": "lossforge.audit",
    "catalog": "lossforge.catalog",
    "clean": "lossforge.audit.clean",
    "claim": "lossforge.benchmark.claim",
    "data": "lossforge.data",
    "describe": "lossforge.catalog.describe",
    "executors": "lossforge.benchmark.executors",
    "files": "lossforge.files",
    "grid": "lossforge.benchmark.grid",
    "kernels": "lossforge.kernels",
    "model": "lossforge.benchmark.model",
    "noise": "lossforge.noise",
    "outputs": "lossforge.benchmark.outputs",
    "page": "lossforge.report.page",
    "plot": "lossforge.plot",
    "records": "lossforge.benchmark.records",
    "report": "lossforge.report",
    "run": "lossforge.benchmark.run",
    "search": "lossforge.report.search",
    "spec": "lossforge.benchmark.spec",
    "store": "lossforge.benchmark.store",
    "style": "lossforge.style",
    "theory": "lossforge.theory",
    "torch": "torch",
    "training": "lossforge.training",
    "tuning": "lossforge.tuning",
}


def __getattr__(name: str) -> ModuleType:
    """Import a part when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with interrupts.deferred():
        return importlib.import_module(_MODULES[name])

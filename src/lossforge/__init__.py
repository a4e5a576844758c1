"""Noise-robust multiclass losses from univariate functions, as drop-ins for cross entropy.

>>> import torch, lossforge
>>> criterion = lossforge.BEF()  # was torch.nn.CrossEntropyLoss()
>>> criterion(torch.zeros(4, 10), torch.tensor([3, 1, 4, 1])).shape
torch.Size([])
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0"

_PACKAGES = (
    *("audit", "base", "benchmark", "catalog", "constructions", "data", "errors", "integrations"),
    *("kernels", "loss", "models", "noise", "plot", "report", "theory", "training", "tuning"),
)
_INTERNAL = ("files", "interrupts")
# every class of the catalogue is a name as well
_NAMES = {
    "BackwardCorrection": "constructions",
    "BinaryReduction": "constructions",
    "EpsSoftmax": "constructions",
    "ForwardCorrection": "constructions",
    "LinearLoss": "loss",
    "LogitClip": "constructions",
    "Loss": "loss",
    "SRSchedule": "catalog",
    "Sharpened": "constructions",
    "TargetSeparation": "constructions",
    "complementary_labels": "constructions",
    "load": "benchmark",
    "make": "catalog",
    "names": "catalog",
    "parse": "catalog",
}

if TYPE_CHECKING:
    from . import audit as audit
    from . import base as base
    from . import benchmark as benchmark
    from . import catalog as catalog
    from . import constructions as constructions
    from . import data as data
    from . import errors as errors
    from . import integrations as integrations
    from . import kernels as kernels
    from . import loss as loss
    from . import models as models
    from . import noise as noise
    from . import plot as plot
    from . import report as report
    from . import theory as theory
    from . import training as training
    from . import tuning as tuning
    from .benchmark.model import load as load
    from .catalog import SRSchedule as SRSchedule
    from .catalog import names as names
    from .catalog.balanced import *  # noqa: F403
    from .catalog.classwise import *  # noqa: F403
    from .catalog.make import make as make
    from .catalog.parse import parse as parse
    from .catalog.pointwise import *  # noqa: F403
    from .constructions import BackwardCorrection as BackwardCorrection
    from .constructions import BinaryReduction as BinaryReduction
    from .constructions import EpsSoftmax as EpsSoftmax
    from .constructions import ForwardCorrection as ForwardCorrection
    from .constructions import LogitClip as LogitClip
    from .constructions import Sharpened as Sharpened
    from .constructions import TargetSeparation as TargetSeparation
    from .constructions import complementary_labels as complementary_labels
    from .loss import LinearLoss as LinearLoss
    from .loss import Loss as Loss
else:
    # a name is imported when it is first used: the help of the command line needs no torch
    import importlib

    def __getattr__(name):
        if name in _PACKAGES or name in _INTERNAL:
            return importlib.import_module(f".{name}", __name__)
        if name == "__all__":
            return [*sorted(_losses()), *sorted({*_NAMES, *_PACKAGES})]
        if name in _NAMES:
            found = getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
        elif not name.startswith("_") and name in _losses():
            found = _losses()[name]
        else:
            raise AttributeError(_unknown(name))
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})

    def _losses():
        catalog = importlib.import_module(".catalog", __name__)
        return {loss.__name__: loss for loss in catalog.CLASSES}

    def _unknown(name):
        from .errors import near

        message = f"module {__name__!r} has no attribute {name!r}"
        hints = [] if name.startswith("_") else near(name, __getattr__("__all__"), 1)
        return f"{message}; did you mean {hints[0]}?" if hints else message

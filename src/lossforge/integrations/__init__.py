"""Adapters of a `Loss` to the frameworks people train with, one small module each.

None is imported by the package itself, and importing one needs torch alone: the framework is
looked for when it is used. What has no module here (Lightning, segmentation) needs no adapter, see
docs/integrations.md.
"""

import importlib
from types import ModuleType

__all__ = ["boosting", "distributed", "fastai", "huggingface", "skorch", "timm"]


def __getattr__(name: str) -> ModuleType:
    """Load an adapter on first use."""
    if name in __all__:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

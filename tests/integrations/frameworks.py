"""Frameworks that a test needs, or a skip that says where it runs."""

import importlib
import importlib.util
import warnings

import pytest
import torch

# what each example, and each section of docs/integrations.md, imports
FRAMEWORKS = {
    "huggingface": ("transformers", "accelerate"),
    "lightning": ("lightning",),
    "skorch": ("skorch",),
    "boosting": ("xgboost", "lightgbm"),
    "timm": ("timm",),
    "fastai": ("fastai.learner",),
    "segmentation": ("sklearn",),
}
_SHIM = []


def need(*modules: str) -> None:
    """Skip the module that calls this unless all of `modules` can be imported."""
    for module in modules:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a framework says of itself is not ours
                importlib.import_module(module)
        except (ImportError, RuntimeError) as error:  # torchvision on a CPU: RuntimeError
            reason = f"{module} cannot be imported here: `make test-integrations` runs this"
            if not isinstance(error, ModuleNotFoundError):
                reason += f" ({error})"
            pytest.skip(reason, allow_module_level=True)


def torchvision_without_operators() -> None:
    """Let torchvision be imported where its build is for GPUs and torch's is not.

    Its operators in C++ are then missing. What timm and fastai need of it here is Python.
    """
    installed = importlib.util.find_spec("torchvision") is not None
    if not installed or torch.version.cuda is not None or _SHIM:
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    _SHIM.append(library)  # its definitions live as long as it does

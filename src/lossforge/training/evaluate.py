"""Predictions of a model and their accuracy."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from . import distributed
from .samples import Samples

TOP = 5


def top_classes(
    model: nn.Module,
    samples: Samples,
    positions: Tensor | None = None,
    *,
    batch_size: int = 512,
    context: AbstractContextManager[object] | None = None,
) -> Tensor:
    """Return the five likeliest classes of each sample (N, 5), likeliest first.

    With five classes or fewer only the likeliest is given, and the other columns are -1. Several
    processes share the work, and all receive the whole result.

    Args:
        model: The model, called in evaluation mode.
        samples: The samples, read without augmentation.
        positions: The samples to evaluate, all if None.
        batch_size: Samples in one call of the model.
        context: Entered around the calls, such as an autocast.
    """
    positions = torch.arange(len(samples)) if positions is None else positions
    rows = distributed.share(torch.arange(len(positions)))
    # classes are counted from 1 here, so that the sum over processes keeps an absent one at 0
    found = torch.zeros(len(positions), TOP, dtype=torch.int64, device=_device(model))
    with context or nullcontext():
        parts = _apply(model, model, _top, samples, positions[rows], batch_size)
    if parts:
        found[rows] = torch.cat(parts)
    return (distributed.total(found) - 1).cpu()


def predict(model: nn.Module, samples: Samples, *, batch_size: int = 512) -> Tensor:
    """Return the logits of each sample (N, K), on the CPU.

    Args:
        model: The model, called in evaluation mode.
        samples: The samples, read without augmentation.
        batch_size: Samples in one call of the model.
    """
    positions = torch.arange(len(samples))
    return torch.cat(_apply(model, model, Tensor.cpu, samples, positions, batch_size))


def features(
    model: nn.Module,
    samples: Samples,
    positions: Tensor | None = None,
    *,
    batch_size: int = 512,
) -> Tensor:
    """Return the inputs of the model's last layer (N, D), by its method `features`.

    Args:
        model: A model with a method `features`, called in evaluation mode.
        samples: The samples, read without augmentation.
        positions: The samples to evaluate, all if None.
        batch_size: Samples in one call of the model.
    """
    extract = getattr(model, "features", None)
    if not callable(extract):
        raise TypeError(f"model must have a method `features`, got {type(model).__name__}")
    positions = torch.arange(len(samples)) if positions is None else positions
    parts = _apply(model, extract, Tensor.cpu, samples, positions, batch_size)
    return torch.cat(parts)


def accuracy(top: Tensor, labels: Tensor) -> dict[str, float | None]:
    """Return top-1 and top-5 accuracy in per cent; top-5 is None with five classes or fewer.

    Args:
        top: The predictions, as `top_classes` gives them.
        labels: The correct labels (N,).
    """
    hits = top == labels[:, None]
    several = bool((top[:, 1:] >= 0).any())
    return {"top1": _percent(hits[:, 0]), "top5": _percent(hits.any(1)) if several else None}


def memorisation(predicted: Tensor, given: Tensor, true: Tensor | None) -> dict[str, float | None]:
    """Measure how well a model fits correct and wrong training labels, in per cent.

    Args:
        predicted: The model's classes (N,).
        given: The labels it was trained on; samples with a negative one are left out.
        true: The true labels; if None, all values are None.

    Returns:
        Of the mislabelled samples, how many are predicted as their wrong label (`noise_fit`) and
        how many as their true one (`noise_recovered`); of the others, how many are predicted right
        (`clean_fit`). None where there are no such samples.
    """
    if true is None:
        return {"noise_fit": None, "noise_recovered": None, "clean_fit": None}
    wrong, right = (given >= 0) & (given != true), given == true
    return {
        "noise_fit": _percent((predicted == given)[wrong]),
        "noise_recovered": _percent((predicted == true)[wrong]),
        "clean_fit": _percent((predicted == true)[right]),
    }


def _percent(hits: Tensor) -> float | None:
    return 100 * int(hits.sum()) / len(hits) if len(hits) else None


def _apply(
    model: nn.Module,
    function: Callable[[Tensor], Tensor],
    finish: Callable[[Tensor], Tensor],
    samples: Samples,
    positions: Tensor,
    batch_size: int,
) -> list[Tensor]:
    device = _device(model)
    with _evaluating(model), torch.no_grad():
        return [
            finish(function(samples.inputs(batch, device)))
            for batch in torch.split(positions, batch_size)
            if len(batch)
        ]


def _top(logits: Tensor) -> Tensor:
    """Return the likeliest classes, counted from 1; 0 where none is given."""
    width = TOP if logits.shape[1] > TOP else 1
    return nn.functional.pad(logits.topk(width).indices + 1, (0, TOP - width))


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode, and restore the previous mode."""
    mode = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(mode)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device

"""Curves over a probability: a base function, the value of a loss, its pull on the label's logit.

The label has probability p and the other classes share the rest evenly. The logits have mean 0,
because some losses change under a common shift of logits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..base import BaseFunction
from ..base import Linear as _Linear
from ..base import Log as _Log
from ..constructions import TargetLoss, ViewsDivergence
from ..errors import check_integer
from ..loss import Loss
from .style import Theme, ThemeName, caption, find_theme, name_losses, panels, styled

POINTS = 400
REFERENCES: dict[str, Loss] = {"CE": TargetLoss(_Log()), "MAE": TargetLoss(_Linear())}
_DASHES = {"CE": (0, (5, 2)), "MAE": (0, (1.2, 1.6))}
_HEADROOM = 1.06


def predictions(num_classes: int, points: Tensor) -> Tensor:
    """Return centred logits (N, K) in which class 0 has these probabilities."""
    check_integer("num_classes", num_classes, 2)
    rest = ((1 - points) / (num_classes - 1))[:, None].expand(-1, num_classes - 1)
    logits = torch.log(torch.cat([points[:, None], rest], 1))
    return logits - logits.mean(1, keepdim=True)


def evaluate(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return values (N,) and gradients (N, K) of a loss; all views of a sample are the same."""
    logits = logits.detach().clone().requires_grad_()
    views = len(loss.weights) - 1 if isinstance(loss, ViewsDivergence) else 0
    called: Any = loss.with_policy(reduction="none")
    with torch.enable_grad():
        values = called([logits] * views if views else logits, target)
        (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach(), gradient


def values_and_pulls(loss: Loss, num_classes: int, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss and its pull, minus the derivative in the label's logit, at probabilities."""
    target = torch.zeros(len(points), dtype=torch.int64)
    values, gradient = evaluate(loss, predictions(num_classes, points), target)
    return values, -gradient[:, 0]


def probabilities() -> Tensor:
    """Return the probabilities of a curve, the ends left out."""
    return torch.linspace(0.002, 0.998, POINTS, dtype=torch.float64)


def base(h: BaseFunction, *, axes: Any = None, theme: ThemeName = "light") -> Any:
    """Draw a base function h and its density phi = -h'.

    Args:
        h: The base function.
        axes: Axes to draw into; those of a new figure if None.
        theme: "light", "dark", or "clear" for a background of any lightness.

    Returns:
        The axes.

    Example:
        >>> import lossforge
        >>> axes = lossforge.plot.base(lossforge.base.Exponential(beta=-4))
        >>> [line.get_label() for line in axes.lines]
        ['h', 'φ = −h′']
    """
    colours = find_theme(theme)
    with styled(colours):
        (axis,) = panels(axes)
        x = probabilities()
        for place, (label, y) in enumerate({"h": h.h(x), "φ = −h′": h.phi(x)}.items()):
            axis.plot(x, y, label=label, linewidth=1.8, **colours.line(place))
        axis.set(title=caption(str(h)), xlabel="x", xlim=(0, 1))
        axis.set_ylim(0, None)
        axis.legend(loc="best")
    return axis


def loss(
    loss: Loss,
    *,
    name: str | None = None,
    num_classes: int = 10,
    axes: Any = None,
    theme: ThemeName = "light",
) -> Any:
    """Draw the value of a loss and its pull on the label's logit, beside CE and MAE.

    Args:
        loss: The loss.
        name: What to call it; its text form if None.
        num_classes: K; the classes other than the label's are alike.
        axes: Two axes to draw into; those of a new figure if None.
        theme: See `base`.

    Returns:
        The two axes: value, pull.
    """
    colours, x = find_theme(theme), probabilities()
    label = caption(next(iter(name_losses(loss))) if name is None else name, 28)
    with styled(colours):
        both = panels(axes, 2, width=0.87, height=0.8)
        drawn = values_and_pulls(loss, num_classes, x)
        beside = {key: values_and_pulls(one, num_classes, x) for key, one in REFERENCES.items()}
        for place, (axis, title) in enumerate(zip(both, ("value", "pull"), strict=True)):
            for key, curves in beside.items():
                _reference(axis, colours, key, x, curves[place])
            axis.plot(x, drawn[place], label=label, linewidth=1.9, **colours.line(place))
            axis.set(title=title, xlabel="probability of the label", xlim=(0, 1))
            # cross entropy would make everything else flat
            low, high = (float(bound(drawn[place])) for bound in (torch.min, torch.max))
            axis.set_ylim(min(0.0, low), _HEADROOM * max(high, 1.0))
            axis.legend(loc="best")
    return tuple(both)


def pull(
    losses: Mapping[str, Loss] | Sequence[Loss] | Loss,
    *,
    num_classes: int = 10,
    axes: Any = None,
    theme: ThemeName = "light",
) -> Any:
    """Draw the pull of several losses on the label's logit, beside CE and MAE.

    What pulls most at small probabilities learns fast, from wrong labels too.

    Args:
        losses: Losses, by the names to show if it is a mapping.
        num_classes: See `loss`.
        axes: See `base`.
        theme: See `base`.

    Returns:
        The axes.
    """
    colours, x, found = find_theme(theme), probabilities(), name_losses(losses)
    with styled(colours):
        (axis,) = panels(axes, height=1.1)
        for key, one in REFERENCES.items():
            if key not in found:
                _reference(axis, colours, key, x, values_and_pulls(one, num_classes, x)[1])
        for place, (name, one) in enumerate(found.items()):
            y = values_and_pulls(one, num_classes, x)[1]
            axis.plot(x, y, label=caption(name, 28), linewidth=1.8, **colours.line(place))
        axis.set(title=f"pull on the label's logit, {num_classes} classes", xlim=(0, 1))
        axis.set_xlabel("probability of the label")
        axis.legend(loc="best")
    return axis


def _reference(axis: Any, colours: Theme, name: str, x: Tensor, y: Tensor) -> None:
    axis.plot(x, y, label=name, color=colours.muted, linewidth=1.1, linestyle=_DASHES[name])

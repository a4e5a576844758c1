"""Which share of the gradient comes from right and from wrong labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..loss import Loss
from .curves import evaluate
from .style import ThemeName, caption, find_theme, name_losses, panels, styled

_BAR = 0.62


def shares(
    losses: Mapping[str, Loss] | Sequence[Loss] | Loss,
    logits: Tensor | Mapping[str, Tensor],
    given: Tensor,
    true: Tensor,
    *,
    axes: Any = None,
    theme: ThemeName = "light",
) -> Any:
    """Draw which share of each loss's gradient comes from samples with right and wrong labels.

    A sample's gradient counts by its size, the sum of absolute derivatives in the logits. A loss
    whose wrong share is far below the share of wrong labels, the dashed line, hardly fits them.

    Args:
        losses: Losses, by the names to show if it is a mapping.
        logits: (N, K) outputs of a network for training samples, such as those of
            `lossforge.training.evaluate.predict`; a mapping of the same names where each loss
            trained a network of its own.
        given: (N,) labels it is trained on.
        true: (N,) true labels.
        axes: See `base`.
        theme: See `base`.

    Returns:
        The axes.
    """
    colours, found = find_theme(theme), name_losses(losses)
    wrong = _wrong_labels(given, true)
    parts = {
        name: wrong_share(one, _outputs(logits, name), given, wrong) for name, one in found.items()
    }
    with styled(colours):
        (axis,) = panels(axes, height=0.45 + 0.14 * len(found))
        places, lengths = range(len(parts)), list(parts.values())
        rest = [1 - length for length in lengths]
        axis.barh(places, rest, _BAR, color=colours.colours[0], label="right labels")
        looks = {"color": colours.colours[1], "hatch": "////", "edgecolor": colours.paper}
        axis.barh(places, lengths, _BAR, left=rest, label="wrong labels", **looks)
        share = float(wrong.double().mean())
        axis.axvline(1 - share, color=colours.ink, linestyle=(0, (4, 3)), linewidth=1.1)
        axis.set_yticks(places, [caption(name, 28) for name in parts])
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set(xlim=(0, 1), xlabel=f"share of the gradient (dashed: {share:.0%} of labels wrong)")
        axis.set_title("where the gradient comes from")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2)
    return axis


def wrong_share(loss: Loss, logits: Tensor, given: Tensor, wrong: Tensor) -> float:
    """Return the share of a loss's gradient that samples with wrong labels make up."""
    _, gradient = evaluate(loss, logits.detach().double(), given)
    sizes = gradient.abs().sum(1)
    total = float(sizes.sum())
    if not total > 0:
        raise ValueError(f"{loss} must have a gradient at these outputs, got 0 everywhere")
    return float(sizes[wrong].sum()) / total


def _outputs(logits: Tensor | Mapping[str, Tensor], name: str) -> Tensor:
    return logits if isinstance(logits, Tensor) else logits[name]


def _wrong_labels(given: Tensor, true: Tensor) -> Tensor:
    if given.shape != true.shape or given.ndim != 1:
        raise ValueError(
            f"given and true must be two vectors of labels, got shapes {tuple(given.shape)} and "
            f"{tuple(true.shape)}"
        )
    wrong = given != true
    if not bool(wrong.any()) or bool(wrong.all()):
        raise ValueError(f"some labels must be wrong and some right, got {int(wrong.sum())} wrong")
    return torch.as_tensor(wrong)

"""Transition matrices as pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ..errors import extra


def transition_heatmaps(
    matrices: Mapping[str, Tensor], classes: Sequence[str] | None = None
) -> Any:
    """Draw transition matrices side by side: rows are true labels, columns given ones.

    Args:
        matrices: The matrices by their captions.
        classes: Class names for the axes; the class numbers if not given.

    Returns:
        A `matplotlib.figure.Figure`; save it with its `savefig`.
    """
    if not matrices:
        raise ValueError("matrices must hold at least one matrix, got none")
    figure = extra("matplotlib.figure", "bench").Figure(
        figsize=(3.6 * len(matrices) + 0.6, 4.2), layout="constrained"
    )
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axis, (caption, T) in zip(axes, matrices.items(), strict=True):
        image = axis.imshow(T.numpy(force=True), cmap="Blues", vmin=0, vmax=1)
        axis.grid(visible=False)
        axis.set_title(caption, fontsize=11)
        axis.set_xlabel("given label")
        _name_classes(axis, len(T), classes)
        if len(T) <= 20:
            _write_percentages(axis, T)
    axes[0].set_ylabel("true label")
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02, label="share of the true class")
    return figure


def _name_classes(axis: Any, num_classes: int, classes: Sequence[str] | None) -> None:
    if num_classes > 20:
        return  # matplotlib spaces the numbers itself
    names = classes or [str(label) for label in range(num_classes)]
    axis.set_xticks(range(num_classes), names, rotation=90 if classes else 0, fontsize=8)
    axis.set_yticks(range(num_classes), names, fontsize=8)


def _write_percentages(axis: Any, T: Tensor) -> None:
    for i, row in enumerate(T.tolist()):
        for j, share in enumerate(row):
            if share >= 0.005:
                colour = "white" if share > 0.5 else "black"
                text = f"{100 * share:.0f}"
                axis.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)

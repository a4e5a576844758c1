"""The pulls of target separation and binary reduction over the confidence of a network."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..constructions import Declared
from ..loss import Loss, WeightedSum
from .curves import values_and_pulls
from .style import ThemeName, find_theme, panels, styled

Term = tuple[float, Loss]
CLASSES = (10, 100, 1000)
_POINTS = 600
_DEPTH = 1e-3  # of the largest pull: the lowest that is shown
_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)


def balance(
    loss: Loss,
    *,
    classes: Sequence[int] = CLASSES,
    axes: Any = None,
    theme: ThemeName = "light",
) -> Any:
    """Draw the pulls of the two parts of a balanced loss, their sum and where it dips.

    Binary reduction pulls while a network is unsure, target separation once the label's
    probability is a share of 1. Between the two their sum dips, the deeper the more classes there
    are; a network that trains from scratch has to cross it.

    Args:
        loss: A sum of target separation and binary reduction, such as `BEF`.
        classes: Numbers of classes, a panel each.
        axes: As many axes to draw into; those of a new figure if None.
        theme: See `base`.

    Returns:
        The axes, one for each number of classes.
    """
    colours = find_theme(theme)
    with styled(colours):
        drawn = panels(axes, len(classes), width=0.78)
        for axis, count in zip(drawn, classes, strict=True):
            p, separated, reduced = pulls(loss, count)
            total = separated + reduced
            parts = {"target separation": separated, "binary reduction": reduced}
            for place, (name, line) in enumerate(parts.items()):
                axis.plot(p, line, label=name, linewidth=1.5, **colours.line(place))
            axis.plot(p, total, label="sum", color=colours.ink, linewidth=2, alpha=0.8)
            place_of_dip = dip(total)
            if place_of_dip is not None:
                at, height = float(p[place_of_dip]), float(total[place_of_dip])
                axis.plot([at], [height], "o", color=colours.alarm, markersize=6, zorder=5)
                peak = float(total[place_of_dip:].max())
                note = f"dip to 1/{peak / height:.2g} of the peak"
                looks = {"ha": "center", "va": "top", "fontsize": 8, "color": colours.alarm}
                axis.annotate(note, (at, height), (0, -9), textcoords="offset points", **looks)
            axis.set(xscale="logit", yscale="log", title=f"{count:,} classes")
            axis.set_ylim(_DEPTH * float(total.max()), 1.4 * float(total.max()))
            ticks = [tick for tick in _TICKS if tick >= 1 / count]
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_xticks([], minor=True)
            axis.set_xlabel("probability of the label")
        drawn[0].set_ylabel("pull on the label's logit")
        drawn[0].legend(loc="lower center")
    return tuple(drawn)


def pulls(loss: Loss, num_classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return probabilities from 1/K on, and the pulls of the two parts there."""
    halves = split(loss, num_classes)
    if halves is None:
        raise ValueError(
            f"loss must be a sum of target separation and binary reduction, got {loss}"
        )
    # equal steps of the logit
    start, end = -math.log(num_classes - 1), 6.2
    p = torch.sigmoid(torch.linspace(start, end, _POINTS, dtype=torch.float64))
    separated, reduced = (
        sum((scale * values_and_pulls(one, num_classes, p)[1] for scale, one in half), 0 * p)
        for half in halves
    )
    return p, separated, reduced


def split(loss: Loss, num_classes: int) -> tuple[list[Term], list[Term]] | None:
    """Return the terms of target separation and of binary reduction; None unless it has both only.

    Args:
        loss: Any loss.
        num_classes: K.
    """
    separated: list[Term] = []
    reduced: list[Term] = []
    for term in loss.terms if isinstance(loss, WeightedSum) else ():
        parts = term[1].parts(num_classes) if isinstance(term[1], Declared) else ()
        roles = {part.role for part in parts}
        if roles == {"pairs"}:
            reduced.append(term)
        elif roles and roles <= {"target", "others"}:
            separated.append(term)
        else:
            return None
    return (separated, reduced) if separated and reduced else None


def dip(total: Tensor) -> int | None:
    """Return where a line has its lowest inner minimum; None if it has none."""
    inner = total[1:-1]
    turns = ((inner < total[:-2]) & (inner <= total[2:])).nonzero()[:, 0] + 1
    return int(turns[total[turns].argmin()]) if len(turns) else None

"""The pulls of target separation and of what accompanies it over the confidence of a network."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..constructions import Declared
from ..loss import Loss, WeightedSum
from .curves import values_and_pulls
from .style import ThemeName, find_theme, panels, styled

CLASSES = (10, 100, 1000)
SEPARATION = "target separation"
PARTS = (SEPARATION, "binary reduction", "bounded cosine")
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
    are; a network that trains from scratch has to cross it. Where a loss has a bounded cosine in
    the place of binary reduction, as `BEF` beyond 150 classes, that is drawn.

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
            p, parts = pulls(loss, count)
            total = torch.stack(list(parts.values())).sum(0)
            for name, line in parts.items():
                looks = colours.line(PARTS.index(name))
                axis.plot(p, line, label=name, linewidth=1.5, **looks)
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
        lines = {line.get_label(): line for axis in drawn for line in axis.lines}
        shown = [name for name in (*PARTS, "sum") if name in lines]
        drawn[0].legend([lines[name] for name in shown], shown, loc="lower center")
    return tuple(drawn)


def pulls(loss: Loss, num_classes: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return probabilities from 1/K on, and the pulls of both parts there by their names."""
    terms = split(loss, num_classes)
    if terms is None:
        raise ValueError(
            f"loss must be a sum of target separation and binary reduction, got {loss}"
        )
    # equal steps of the logit
    start, end = -math.log(num_classes - 1), 6.2
    p = torch.sigmoid(torch.linspace(start, end, _POINTS, dtype=torch.float64))
    found = {name: 0 * p for name, _, _ in terms}
    for name, scale, member in terms:
        found[name] = found[name] + scale * values_and_pulls(member, num_classes, p)[1]
    return p, found


def split(loss: Loss, num_classes: int) -> list[tuple[str, float, Loss]] | None:
    """Return the terms of a loss, each with its name among `PARTS`.

    Args:
        loss: Any loss.
        num_classes: K.

    Returns:
        None unless it has target separation and another part, and nothing else.
    """
    terms = loss.terms if isinstance(loss, WeightedSum) else ()
    found = [(_part_of(member, num_classes), scale, member) for scale, member in terms]
    named = [(name, scale, member) for name, scale, member in found if name is not None]
    names = {name for name, _, _ in named}
    return named if len(named) == len(found) and SEPARATION in names and len(names) > 1 else None


def _part_of(member: Loss, num_classes: int) -> str | None:
    """Return which of `PARTS` a loss is for K classes; None if it is none of them."""
    declared = member.parts(num_classes) if isinstance(member, Declared) else ()
    roles = {part.role for part in declared}
    if roles and roles <= {"target", "others"}:
        return SEPARATION
    if roles == {"pairs"}:
        return PARTS[1]
    return PARTS[2] if roles == {"cosine"} else None


def dip(total: Tensor) -> int | None:
    """Return where a line has its lowest inner minimum; None if it has none."""
    inner = total[1:-1]
    turns = ((inner < total[:-2]) & (inner <= total[2:])).nonzero()[:, 0] + 1
    return int(turns[total[turns].argmin()]) if len(turns) else None

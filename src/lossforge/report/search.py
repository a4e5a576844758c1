"""A search over the parameters of a loss: how it went, and where the good ones lie."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import extra
from .style import COLOURS, INK, MUTED, SIZE, style

COLUMNS = 3


@dataclass(frozen=True)
class Point:
    """A trial as it is drawn.

    Args:
        coordinates: Where it lies in the search space.
        score: In %; None if it has none.
        kind: "default", "design" or "search".
    """

    coordinates: Mapping[str, float]
    score: float | None
    kind: str = "search"


def search_figure(
    points: Sequence[Point], ranges: Mapping[str, tuple[float, float, bool]], *, title: str
) -> Any:
    """Draw the scores in the order of the search, and over every coordinate.

    Args:
        points: The trials in their order.
        ranges: Lower end, upper end and whether logarithmic, by coordinate.
        title: What the figure is about.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    scored = [(place, point) for place, point in enumerate(points) if point.score is not None]
    if not scored:
        raise ValueError("points must hold at least one with a score, got none")
    rows = math.ceil(len(ranges) / COLUMNS)
    columns = min(COLUMNS, len(ranges))
    with style():
        size = (SIZE[0] * 0.72 * max(columns, 2), SIZE[1] * (0.95 + 0.72 * rows))
        figure = extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")
        heights = [0.95, *[0.72] * rows]
        grid = figure.add_gridspec(rows + 1, columns, height_ratios=heights)
        _history(figure.add_subplot(grid[0, :]), points, scored, title)
        figure.legend(loc="outside upper right", ncols=5)
        shared = None
        for place, (name, (low, high, log)) in enumerate(ranges.items()):
            cell = grid[1 + place // columns, place % columns]
            axis = figure.add_subplot(cell, sharey=shared)
            shared = shared or axis
            _slice(axis, name, scored)
            if log:
                axis.set_xscale("log")
                axis.minorticks_off()
            gap = (high / low) ** 0.04 if log else 0.04 * (high - low)
            axis.set_xlim(*((low / gap, high * gap) if log else (low - gap, high + gap)))
            if place % columns:
                axis.tick_params(labelleft=False)
            else:
                axis.set_ylabel("score in %")
    return figure


def _history(
    axis: Any, points: Sequence[Point], scored: Sequence[tuple[int, Point]], title: str
) -> None:
    """Scores and the best so far, and ticks where a trial has no score."""
    best, steps = -math.inf, []
    for place, point in scored:
        best = max(best, point.score or 0.0)
        steps.append((place, best))
    steps.append((len(points) - 1, best))
    axis.step(
        *zip(*steps, strict=True), where="post", color=INK, linewidth=1.2, label="best so far"
    )
    _dots(axis, [(place, point) for place, point in scored], labelled=True)
    floor = min(point.score or 0.0 for _, point in scored)
    without = [place for place, point in enumerate(points) if point.score is None]
    if without:
        base = [floor - 0.06 * (best - floor or 1)] * len(without)
        axis.plot(
            without, base, "|", color=MUTED, markersize=5, label="stopped early, not admitted"
        )
    axis.set(title=title, xlabel="trial", ylabel="accuracy on held-out\nnoisy labels in %")
    axis.xaxis.get_major_locator().set_params(integer=True)


def _slice(axis: Any, name: str, scored: Sequence[tuple[int, Point]]) -> None:
    _dots(axis, [(point.coordinates[name], point) for _, point in scored])
    top = max((point for _, point in scored), key=lambda point: point.score or 0.0)
    axis.axvline(top.coordinates[name], color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axis.set_xlabel(name)


def _dots(axis: Any, placed: Sequence[tuple[float, Point]], *, labelled: bool = False) -> None:
    looks = {
        "search": {"color": COLOURS[0], "s": 14, "alpha": 0.75},
        "design": {"color": COLOURS[2], "s": 42, "marker": "^"},
        "default": {"color": COLOURS[1], "s": 38, "marker": "D"},
    }
    names = {"search": "trial", "design": "theory's proposal", "default": "published parameters"}
    for kind, look in looks.items():
        found = [(x, point.score) for x, point in placed if point.kind == kind]
        if found:
            label = names[kind] if labelled else None
            axis.scatter(*zip(*found, strict=True), linewidths=0, zorder=3, label=label, **look)

"""The figure of a search over the parameters of a loss."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..errors import extra
from ..style import COLOURS, INK, MUTED, SIZE, caption, style

COLUMNS = 3


class DrawnTrial(Protocol):
    """A trial: its coordinates in the search space, its score in %, and where it came from."""

    @property
    def coordinates(self) -> Mapping[str, float]: ...

    @property
    def score(self) -> float | None: ...

    @property
    def origin(self) -> str:
        """One of "default", "design" and "search"."""


def search_figure(
    trials: Sequence[DrawnTrial], ranges: Mapping[str, tuple[float, float, bool]], *, title: str
) -> Any:
    """Draw the scores in the order of the search, and against every coordinate.

    Args:
        trials: The trials in their order.
        ranges: Lower end, upper end and whether logarithmic, by coordinate.
        title: Title of the figure.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    scored = [(place, trial) for place, trial in enumerate(trials) if trial.score is not None]
    if not scored:
        raise ValueError("trials must hold at least one with a score, got none")
    rows = math.ceil(len(ranges) / COLUMNS)
    columns = min(COLUMNS, len(ranges))
    with style():
        size = (SIZE[0] * 0.72 * max(columns, 2), SIZE[1] * (0.95 + 0.72 * rows))
        figure = extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")
        heights = [0.95, *[0.72] * rows]
        grid = figure.add_gridspec(rows + 1, columns, height_ratios=heights)
        _history(figure.add_subplot(grid[0, :]), trials, scored, title)
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
    axis: Any, trials: Sequence[DrawnTrial], scored: Sequence[tuple[int, DrawnTrial]], title: str
) -> None:
    """Draw scores, the best so far, and ticks for trials without a score."""
    best, steps = -math.inf, []
    for place, trial in scored:
        best = max(best, trial.score or 0.0)
        steps.append((place, best))
    steps.append((len(trials) - 1, best))
    axis.step(
        *zip(*steps, strict=True), where="post", color=INK, linewidth=1.2, label="best so far"
    )
    _dots(axis, scored, labelled=True)
    floor = min(trial.score or 0.0 for _, trial in scored)
    without = [place for place, trial in enumerate(trials) if trial.score is None]
    if without:
        base = [floor - 0.06 * (best - floor or 1)] * len(without)
        axis.plot(
            without, base, "|", color=MUTED, markersize=5, label="stopped early, not admitted"
        )
    axis.set(title=caption(title), xlabel="trial", ylabel="accuracy on held-out\nnoisy labels in %")
    axis.xaxis.get_major_locator().set_params(integer=True)


def _slice(axis: Any, name: str, scored: Sequence[tuple[int, DrawnTrial]]) -> None:
    _dots(axis, [(trial.coordinates[name], trial) for _, trial in scored])
    top = max((trial for _, trial in scored), key=lambda trial: trial.score or 0.0)
    axis.axvline(top.coordinates[name], color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axis.set_xlabel(name)


def _dots(axis: Any, placed: Sequence[tuple[float, DrawnTrial]], *, labelled: bool = False) -> None:
    looks = {
        "search": {"color": COLOURS[0], "s": 14, "alpha": 0.75},
        "design": {"color": COLOURS[2], "s": 42, "marker": "^"},
        "default": {"color": COLOURS[1], "s": 38, "marker": "D"},
    }
    names = {"search": "trial", "design": "theory's proposal", "default": "published parameters"}
    for origin, look in looks.items():
        found = [(x, trial.score) for x, trial in placed if trial.origin == origin]
        if found:
            label = names[origin] if labelled else None
            axis.scatter(*zip(*found, strict=True), linewidths=0, zorder=3, label=label, **look)

"""One number for every loss: what it costs, and how it ranks."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .statistics import Ranking
from .style import COLOURS, INK, MUTED, new_figure, style


def cost(seconds: Mapping[str, Sequence[float]], *, title: str) -> Any:
    """Draw the median time of an epoch for every loss.

    Args:
        seconds: Times of epochs, by loss.
        title: What the panel is about.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=0.35 + 0.09 * len(seconds))
        names = list(seconds)
        medians = [statistics.median(seconds[name]) for name in names]
        bars = axis.barh(names, medians, color=COLOURS[0], height=0.6)
        axis.bar_label(bars, [f"{value:.3g}" for value in medians], padding=3, color=INK)
        _plain(axis, title, "seconds per epoch, median")
        axis.margins(x=0.12)
    return figure


def ranks(ranking: Ranking) -> Any:
    """Draw mean ranks with bars of half the critical difference to either side.

    Two losses whose bars do not overlap differ at 5 % (Nemenyi).

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=0.35 + 0.09 * len(ranking.ranks))
        names, means = list(ranking.ranks), list(ranking.ranks.values())
        looks = {"color": COLOURS[0], "ecolor": MUTED, "elinewidth": 1.2, "capsize": 3}
        axis.errorbar(means, names, xerr=ranking.critical / 2, fmt="o", markersize=5, **looks)
        _plain(axis, f"Mean rank over {ranking.settings} settings", "mean rank, 1 is best")
        axis.margins(y=0.08)
    return figure


def _plain(axis: Any, title: str, xlabel: str) -> None:
    axis.set_title(title)
    axis.set_xlabel(xlabel)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)

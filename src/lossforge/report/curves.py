"""Lines over the epochs: accuracy, and how far the noise is learnt."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .style import look, new_figure, style

Seeds = Sequence[Sequence[float | None]]


def curves(
    lines: Mapping[str, Seeds],
    *,
    title: str,
    ylabel: str,
    names: Sequence[str] | None = None,
    legend: bool = True,
) -> Any:
    """Draw one line for every name: the mean over seeds, in a band of one standard deviation.

    Args:
        lines: Values after every epoch, for every seed, by name.
        title: What the panel is about.
        ylabel: What the values are.
        names: All names of the report in order, so that each has its colour everywhere.
        legend: Whether the names are written below.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    if not lines:
        raise ValueError("lines must hold at least one name, got none")
    with style():
        rows = -(-len(lines) // 4) if legend else 0
        figure, axis = new_figure(height=1 + 0.07 * rows)
        for name, seeds in lines.items():
            _draw(axis, name, seeds, names or list(lines))
        axis.set_title(title)
        axis.set_xlabel("epoch")
        axis.set_ylabel(ylabel)
        axis.margins(x=0.01)
        axis.xaxis.get_major_locator().set_params(integer=True)
        if legend:
            figure.legend(loc="outside lower center", ncols=4, handlelength=1.6, columnspacing=1.2)
    return figure


def _draw(axis: Any, name: str, seeds: Seeds, names: Sequence[str]) -> None:
    looks, place = look(name, names), list(names).index(name)
    epochs, means, low, high = [], [], [], []
    for epoch, values in enumerate(zip(*seeds, strict=False), start=1):
        known = [value for value in values if value is not None]
        if known:
            spread = statistics.stdev(known) if len(known) > 1 else 0.0
            epochs.append(epoch)
            means.append(statistics.fmean(known))
            low.append(means[-1] - spread)
            high.append(means[-1] + spread)
    marker = "o" if len(epochs) == 1 else None
    (line,) = axis.plot(epochs, means, linewidth=1.5, marker=marker, label=name, **looks)
    line.set_gid(f"series-{place}")  # a page can then point one out
    if any(above > below for above, below in zip(high, low, strict=True)):
        band = axis.fill_between(epochs, low, high, color=looks["color"], alpha=0.16, linewidth=0)
        band.set_gid(f"band-{place}")

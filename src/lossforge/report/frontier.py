"""The figure of the noise rates that losses tolerate, from symmetric noise to pair flips."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .style import INK, MUTED, RULE, caption, look, new_figure, style

NOTHING = 1e-3  # up to this rate, bisection has found none


def frontiers(peaks: Sequence[float], rates: Mapping[str, Sequence[float]], *, title: str) -> Any:
    """Draw the largest noise rate that each loss tolerates, over the peak of the noise.

    Args:
        peaks: Increasing shares of the most frequent wrong class among the wrong labels, from
            1 / (K - 1), symmetric noise, to 1, pair flips.
        rates: For every loss, the rate at each peak.
        title: Title of the panel.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    if not rates:
        raise ValueError("rates must hold at least one loss, got none")
    limits = [1 / (1 + peak) for peak in peaks]
    with style():
        figure, axis = new_figure(1.5, 1.25)
        axis.fill_between(peaks, limits, 1, color=RULE, alpha=0.55, linewidth=0)
        for name, line in rates.items():
            _draw(axis, peaks, line, name, look(name, [*rates]))
        axis.plot(peaks, limits, color=INK, linestyle=(0, (4, 3)), linewidth=1.1, zorder=4)
        axis.text(
            0.985,
            0.955,
            "a wrong label is at least as frequent as the true one: no loss helps",
            transform=axis.transAxes,
            ha="right",
            va="top",
            color=MUTED,
            fontsize=8,
        )
        axis.text(
            0.015,
            0.03,
            caption(_unproved(rates), 200),
            transform=axis.transAxes,
            color=MUTED,
            fontsize=8,
        )
        axis.set(title=caption(title), xlim=(peaks[0], peaks[-1]), ylim=(0, 1))
        axis.set_xlabel("share of the wrong labels that go to one class")
        axis.set_ylabel("noise rate up to which it is proved")
        ticks = [peaks[0], *(t for t in (0.25, 0.5, 0.75) if t > peaks[0] + 0.1), peaks[-1]]
        names = [f"{tick:.2g}" for tick in ticks]
        axis.set_xticks(ticks, [f"{names[0]}\nsymmetric", *names[1:-1], f"{names[-1]}\npair flips"])
        figure.legend(loc="outside lower center", ncols=4, handlelength=1.8, columnspacing=1.4)
    return figure


def _draw(
    axis: Any, peaks: Sequence[float], line: Sequence[float], name: str, looks: dict[str, Any]
) -> None:
    """Draw a line where a rate is proved, and a dot where it is at one peak only."""
    above = [rate if rate > NOTHING else math.nan for rate in line]
    known = [place for place, rate in enumerate(above) if not math.isnan(rate)]
    if not known:
        return
    alone = [p for p in known if p - 1 not in known and p + 1 not in known]
    axis.plot(
        peaks,
        above,
        linewidth=1.8,
        marker="o" if alone else None,
        markersize=5,
        markevery=alone,
        label=caption(name),
        clip_on=False,
        zorder=3,
        **looks,
    )


def _unproved(rates: Mapping[str, Sequence[float]]) -> str:
    """Name the losses without a proof, everywhere or where no line is drawn."""
    names = [
        name if max(line) <= NOTHING else f"{name} elsewhere"
        for name, line in rates.items()
        if min(line) <= NOTHING
    ]
    return f"nothing is proved: {', '.join(names)}" if names else ""

"""The noise rates that losses tolerate, from symmetric noise to pair flips."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ..errors import check_integer
from ..loss import Loss
from ..theory import frontier as tolerated
from .style import Theme, ThemeName, caption, find_theme, name_losses, panels, styled

POINTS = 19  # of a line
NOTHING = 1e-3  # up to this rate, bisection has found none
_FINE = 2e-3  # relative tolerance of a point


def frontier(
    losses: Mapping[str, Loss] | Sequence[Loss] | Loss,
    *,
    num_classes: int = 10,
    claim: Literal["monotone", "transfers", "global"] = "monotone",
    axes: Any = None,
    theme: ThemeName = "light",
    on_point: Callable[[str, int], object] | None = None,
) -> Any:
    """Draw the largest noise rate at which each loss is proved robust, over the peak of the noise.

    Args:
        losses: Losses, by the names to show if it is a mapping.
        num_classes: K, 3 or more.
        claim: See `lossforge.theory.certify`.
        axes: See `base`.
        theme: See `base`.
        on_point: Called with a name and the number of the point that is computed next.

    Returns:
        The axes.
    """
    check_integer("num_classes", num_classes, 3)
    shares = peaks(num_classes)
    lines: dict[str, list[float]] = {}
    for name, loss in name_losses(losses).items():
        lines[name] = []
        for place, peak in enumerate(shares):
            if on_point is not None:
                on_point(name, place)
            ray = _ray(num_classes, peak)
            found = tolerated(loss, num_classes, ray, claim=claim, tolerance=_FINE)
            lines[name].append(found.rate)
    title = f"Noise that a loss tolerates, {num_classes} classes"
    return draw_rates(shares, lines, title=title, axes=axes, theme=theme)


def peaks(num_classes: int) -> list[float]:
    """Return shares of the most frequent wrong class, from even to all, denser at the bend."""
    even = 1 / (num_classes - 1)
    steps = torch.linspace(0, 1, POINTS, dtype=torch.float64).tolist()
    return [even + (1 - even) * step**1.3 for step in steps]


def draw_rates(
    peaks: Sequence[float],
    rates: Mapping[str, Sequence[float]],
    *,
    title: str,
    axes: Any = None,
    theme: ThemeName = "light",
) -> Any:
    """Draw the largest noise rate that each loss tolerates, over the peak of the noise.

    Args:
        peaks: Increasing shares of the most frequent wrong class among the wrong labels, from
            1 / (K - 1), symmetric noise, to 1, pair flips.
        rates: For every loss, the rate at each peak.
        title: Title of the panel.
        axes: See `base`.
        theme: See `base`.

    Returns:
        The axes.
    """
    if not rates:
        raise ValueError("rates must hold at least one loss, got none")
    colours = find_theme(theme)
    limits = [1 / (1 + peak) for peak in peaks]
    with styled(colours):
        (axis,) = panels(axes, width=1.5, height=1.25)
        axis.fill_between(peaks, limits, 1, color=colours.rule, alpha=0.55, linewidth=0)
        for place, (name, line) in enumerate(rates.items()):
            _draw(axis, peaks, line, name, colours.line(place))
        axis.plot(peaks, limits, color=colours.ink, linestyle=(0, (4, 3)), linewidth=1.1, zorder=4)
        beyond = "a wrong label is at least as frequent as the true one: no loss helps"
        _note(axis, colours, 0.985, 0.955, beyond, ha="right", va="top")
        _note(axis, colours, 0.015, 0.03, caption(_unproved(rates), 200))
        axis.set(title=caption(title), xlim=(peaks[0], peaks[-1]), ylim=(0, 1))
        axis.set_xlabel("share of the wrong labels that go to one class")
        axis.set_ylabel("noise rate up to which it is proved")
        ticks = [peaks[0], *(t for t in (0.25, 0.5, 0.75) if t > peaks[0] + 0.1), peaks[-1]]
        names = [f"{tick:.2g}" for tick in ticks]
        axis.set_xticks(ticks, [f"{names[0]}\nsymmetric", *names[1:-1], f"{names[-1]}\npair flips"])
        if axis.get_legend_handles_labels()[0]:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
            axis.legend(ncols=4, handlelength=1.8, columnspacing=1.4, **below)
    return axis


def _note(axis: Any, colours: Theme, x: float, y: float, text: str, **align: str) -> None:
    looks = {"color": colours.muted, "fontsize": 8, "wrap": True}
    axis.text(x, y, text, transform=axis.transAxes, **looks, **align)


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
        label=caption(name, 40),
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


def _ray(classes: int, peak: float) -> Tensor:
    """One wrong class gets a share of the wrong labels, the others equal parts of the rest."""
    ray = torch.full((classes,), (1 - peak) / (classes - 2), dtype=torch.float64)
    ray[0], ray[1] = 0.0, peak
    return ray

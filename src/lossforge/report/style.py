"""How every figure looks: one set of colours that reads on white and on black."""

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..errors import extra

INK, MUTED, RULE = "#22262b", "#6a7078", "#d5d9de"
COLOURS = (
    "#3f7fd9",
    "#e07b39",
    "#2f9e73",
    "#cf4f63",
    "#8d68cf",
    "#b58a22",
    "#1fa1b5",
    "#d169a8",
    "#7b8794",
    "#8f6a4a",
)
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (5, 2, 1.2, 2)))
SIZE = (4.2, 2.9)  # inches, of one panel
STYLE = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": "lossforge",  # the same figure is the same file
}


def style() -> AbstractContextManager[Any]:
    """Matplotlib's settings for as long as a figure is drawn or saved."""
    context: AbstractContextManager[Any] = extra("matplotlib", "bench").rc_context(STYLE)
    return context


def new_figure(width: float = 1.0, height: float = 1.0) -> tuple[Any, Any]:
    """An empty figure and its axes, in units of the usual panel."""
    size = (SIZE[0] * width, SIZE[1] * height)
    figure = extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def look(name: str, names: Sequence[str]) -> dict[str, Any]:
    """Colour and dashes of one of several lines, the same in every figure."""
    place = list(names).index(name)
    dashes = DASHES[place // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": dashes}


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as SVG and as PNG, and return the two paths."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    with style():
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=200)
    return paths


def inline_svg(figure: Any, prefix: str, label: str) -> str:
    """A figure as an element of a page, in the page's own letters and colours.

    Args:
        figure: What to show.
        prefix: Put before every id, which must differ between the figures of a page.
        label: What a reader hears who cannot see it.
    """
    stream = io.StringIO()
    with style():
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"font-family: [^;\"]+", "font-family: var(--sans)", text)
    for colour, name in ((INK, "ink"), (MUTED, "muted"), (RULE, "rule")):
        text = text.replace(colour, f"var(--{name})")
    safe = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    opening = f'<svg role="img" aria-label="{safe}"'
    text = re.sub(r'^<svg((?:\s+[\w:]+="[^"]*")*)', lambda m: opening + _kept(m[1]), text, count=1)
    return re.sub(r"\n\s*", "\n", text).strip()


def _kept(attributes: str) -> str:
    """The attributes of an SVG element but its size, which the page decides."""
    return re.sub(r'\s(width|height|version)="[^"]*"', "", attributes)

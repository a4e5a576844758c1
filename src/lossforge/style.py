"""The style of every figure, with colours that are legible on white and on black, and its files."""

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .errors import extra
from .text import printable

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
PICTURES = (".png", ".svg")
SIZE = (4.2, 2.9)  # inches of one panel
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
    "svg.hashsalt": "lossforge",  # equal figures give equal files
}


def style() -> AbstractContextManager[Any]:
    """Apply the style while a figure is drawn or saved."""
    context: AbstractContextManager[Any] = extra("matplotlib", "bench").rc_context(STYLE)
    return context


def new_figure(width: float = 1.0, height: float = 1.0) -> tuple[Any, Any]:
    """Make an empty figure and its axes, sized in units of one panel."""
    size = (SIZE[0] * width, SIZE[1] * height)
    figure = extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def caption(text: str, most: int = 100) -> str:
    """Write a name for a figure: without controls or formulas, its middle cut out if it is long."""
    text = printable(text)
    if len(text) > most:
        text = f"{text[: most // 2]}…{text[1 - most // 2 :]}"
    # matplotlib reads $...$ as a formula, and leaves names that begin with _ out of legends
    return f"{' ' if text.startswith('_') else ''}{text}".replace("$", r"\$")


def look(name: str, names: Sequence[str]) -> dict[str, Any]:
    """Return colour and dashes of one of several lines, the same in every figure."""
    place = list(names).index(name)
    dashes = DASHES[place // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": dashes}


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as SVG and as PNG, and return the two paths."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    for path in paths:
        write_picture(figure, path)
    return paths


def check_picture(path: Path) -> None:
    """Raise unless `path` names a PNG or SVG file in an existing folder."""
    if path.suffix.lower() not in PICTURES:
        raise ValueError(f"a picture must be a .png or .svg file, got {str(path)!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} for the picture")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure as PNG or SVG; equal figures give equal bytes."""
    check_picture(path)
    # neither the time nor the version of matplotlib
    metadata = {"Date": None, "Creator": None} if path.suffix.lower() == ".svg" else None
    with style():
        figure.savefig(path, dpi=200, metadata=metadata, facecolor=figure.get_facecolor())


def inline_svg(figure: Any, prefix: str, label: str) -> str:
    """Write a figure as an element of a page, in the page's own fonts and colours.

    Args:
        figure: The figure.
        prefix: Prepended to every id, to be unique on the page.
        label: A description for screen readers.
    """
    stream = io.StringIO()
    with style():
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub("<[^>]+>", lambda tag: _adapted(tag[0], prefix), text)
    safe = printable(label).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    opening = f'<svg role="img" aria-label="{safe}"'
    text = re.sub(r'^<svg((?:\s+[\w:]+="[^"]*")*)', lambda m: opening + _kept(m[1]), text, count=1)
    return re.sub(r"\n\s*", "\n", text).strip()


def _adapted(tag: str, prefix: str) -> str:
    """Make ids unique, and take fonts and colours from the page."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", tag)
    tag = re.sub(r"font-family: [^;\"]+", "font-family: var(--sans)", tag)
    for colour, name in ((INK, "ink"), (MUTED, "muted"), (RULE, "rule")):
        tag = tag.replace(colour, f"var(--{name})")
    return tag


def _kept(attributes: str) -> str:
    """Drop the size from an SVG element's attributes: the page decides it."""
    return re.sub(r'\s(width|height|version)="[^"]*"', "", attributes)

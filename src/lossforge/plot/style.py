"""The themes of pictures: light, dark, and clear for any background; files and panels."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import extra
from ..loss import Loss
from ..style import DASHES, SIZE, STYLE, caption, write_picture

ThemeName = Literal["light", "dark", "clear"]


@dataclass(frozen=True)
class Theme:
    """The colours of a picture.

    Lines differ in lightness as well as in hue, and dashes tell them apart without any colour.

    Args:
        paper: Background.
        ink: Titles and marks.
        muted: Axes, labels and the curves of reference.
        rule: Grid and fills.
        colours: Lines, in order.
        alarm: Where a claim fails.
    """

    paper: str
    ink: str
    muted: str
    rule: str
    colours: tuple[str, ...]
    alarm: str

    def line(self, place: int) -> dict[str, Any]:
        """Return colour and dashes of one of several lines."""
        count = len(self.colours)
        return {
            "color": self.colours[place % count],
            "linestyle": DASHES[place // count % len(DASHES)],
        }


THEMES: dict[str, Theme] = {
    "light": Theme(
        *("#ffffff", "#22262b", "#5f666e", "#d5d9de"),
        ("#0b63a8", "#d55e00", "#009e73", "#3d2b56", "#c274a6", "#8a6d00"),
        "#c8324f",
    ),
    "dark": Theme(
        *("#131619", "#e8eaed", "#a2a9b1", "#33393f"),
        ("#62b6ee", "#f0883e", "#9be8b4", "#f3e08b", "#d58fc0", "#8f9fff"),
        "#ff7a90",
    ),
    # legible on white and on black, and without a background of its own
    "clear": Theme(
        *("none", "#7d838b", "#858b93", "#858b9340"),
        ("#2f86c9", "#d9712b", "#1f9e5b", "#9a6fc4", "#c46a9f", "#a0841c"),
        "#dd4f68",
    ),
}


def find_theme(name: str) -> Theme:
    """Return a theme by its name."""
    if name not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, got {name!r}")
    return THEMES[name]


def styled(theme: Theme) -> AbstractContextManager[Any]:
    """Apply a theme while a picture is drawn."""
    inks = dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"))
    look: dict[str, Any] = STYLE | dict.fromkeys(inks, theme.muted)
    look |= dict.fromkeys(("text.color", "axes.titlecolor", "hatch.color"), theme.ink)
    look |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), theme.paper)
    look |= {"grid.color": theme.rule, "axes.titleweight": "normal"}
    context: AbstractContextManager[Any] = extra("matplotlib", "bench").rc_context(look)
    return context


def panels(axes: Any, count: int = 1, *, width: float = 1.0, height: float = 1.0) -> list[Any]:
    """Return the axes that were given, or those of a new figure, side by side.

    Args:
        axes: One axes, several, or None for new ones.
        count: How many are needed.
        width: Of each new panel, in units of `SIZE`.
        height: Of each new panel, in units of `SIZE`.
    """
    if axes is None:
        size = (SIZE[0] * width * count, SIZE[1] * height)
        figure = extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")
        return list(figure.subplots(1, count, squeeze=False)[0])
    found = list(axes) if isinstance(axes, Sequence) or hasattr(axes, "flat") else [axes]
    if len(found) != count:
        raise ValueError(f"axes must be {count} axes, got {len(found)}")
    return found


def name_losses(losses: Mapping[str, Loss] | Sequence[Loss] | Loss) -> dict[str, Loss]:
    """Return losses by their names, by default their text forms."""
    if isinstance(losses, Loss):
        losses = [losses]
    found = dict(losses) if isinstance(losses, Mapping) else {str(one): one for one in losses}
    if not found:
        raise ValueError("losses must hold at least one loss, got none")
    for name, one in found.items():
        if not isinstance(one, Loss):
            raise TypeError(f"{name} must be a loss, got {one!r}; lossforge.parse reads a text")
    return found


def save(picture: Any, path: Path | str) -> Path:
    """Write a picture as SVG or PNG; equal pictures give equal bytes.

    Args:
        picture: A figure, or any of its axes.
        path: A .svg or .png file in a folder that exists.
    """
    path = Path(path)
    if not hasattr(picture, "savefig"):
        picture = next(iter(picture), None) if isinstance(picture, list | tuple) else picture
        picture = getattr(picture, "figure", None)
    if picture is None:
        raise TypeError("picture must be a figure or axes of one, got neither")
    write_picture(picture, path)
    return path


__all__ = ["SIZE", "THEMES", "Theme", "ThemeName", "caption", "find_theme", "panels", "save"]

"""All pictures of a loss, or of several, on one sheet."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..base import BaseFunction
from ..catalog import ENTRIES, parse
from ..catalog.entry import look_up
from ..constructions import Declared
from ..errors import extra
from ..loss import Loss, WeightedSum
from ..noise import NoiseSpec, symmetric
from .balance import balance, split
from .curves import base, pull
from .curves import loss as draw_loss
from .frontier import frontier
from .simplex import simplex
from .style import SIZE, ThemeName, caption, find_theme, name_losses, styled

EXAMPLE_RATE = 0.2  # of the noise that corrections are shown with
_MOST_TRIANGLES = 3


def example(text: str, num_classes: int) -> Loss:
    """Make a loss from its text; one that needs a noise corrects symmetric noise of 0.2.

    Args:
        text: A name of the catalogue or an expression.
        num_classes: K.
    """
    entry = look_up(text)
    needs = [] if entry is None else _needed(entry.name)
    if entry is None or not needs:
        return parse(text)
    made: Loss = ENTRIES[entry.name].make(
        **dict.fromkeys(needs, symmetric(num_classes, EXAMPLE_RATE))
    )
    return made


def sheet(
    losses: Mapping[str, Loss] | Callable[[int], Mapping[str, Loss]],
    *,
    noise: str | NoiseSpec | None = None,
    num_classes: int = 10,
    theme: ThemeName = "light",
) -> Any:
    """Draw a loss with its base function, value, pull, fields and balance, or compare several.

    Args:
        losses: Losses by name, or a function that makes them for a number of classes: the fields
            have three, and some losses serve one number only.
        noise: Of the fields; clean labels alone if None.
        num_classes: Of the curves and of the frontier.
        theme: See `base`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    made = losses if callable(losses) else lambda count: losses
    spec = None if noise is None else NoiseSpec.parse(noise)
    found, three = name_losses(made(num_classes)), name_losses(made(3))
    draw = _one if len(found) == 1 else _several
    with styled(find_theme(theme)):
        return draw(found, three, spec, num_classes, theme)


def _one(
    found: dict[str, Loss], three: dict[str, Loss], noise: NoiseSpec | None, count: int, theme: Any
) -> Any:
    ((name, loss),) = found.items()
    bases, balanced = _bases(loss, count), split(loss, count) is not None
    fields = [None] if noise is None else [None, noise]
    rows = 3 if balanced else 2
    figure = _new_figure(6, rows)
    grid = figure.add_gridspec(rows, 6)
    width = 2 if bases else 3
    top = [figure.add_subplot(grid[0, at : at + width]) for at in range(0, 6, width)]
    if bases:
        base(bases[0], axes=top[0], theme=theme)
    draw_loss(loss, name=name, num_classes=count, axes=top[-2:], theme=theme)
    width = 3 if len(fields) == 2 else 6
    for place, one in enumerate(fields):
        axis = figure.add_subplot(grid[1, place * width : (place + 1) * width])
        simplex(next(iter(three.values())), one, axes=axis, theme=theme)
    if balanced:
        bottom = [figure.add_subplot(grid[2, at : at + 2]) for at in (0, 2, 4)]
        balance(loss, axes=bottom, theme=theme)
    figure.suptitle(caption(name, 80), x=0.01, ha="left", fontsize=11)
    return figure


def _several(
    found: dict[str, Loss], three: dict[str, Loss], noise: NoiseSpec | None, count: int, theme: Any
) -> Any:
    shown = list(three.items())[:_MOST_TRIANGLES]
    figure = _new_figure(6, 2)
    grid = figure.add_gridspec(2, 6)
    pull(found, num_classes=count, axes=figure.add_subplot(grid[0, :3]), theme=theme)
    # a proof takes a number of classes that the loss serves, and two directions at least
    frontier(found, num_classes=max(3, count), axes=figure.add_subplot(grid[0, 3:]), theme=theme)
    width = 6 // len(shown)
    for place, (name, loss) in enumerate(shown):
        axis = figure.add_subplot(grid[1, place * width : (place + 1) * width])
        simplex(loss, noise, axes=axis, theme=theme)
        axis.set_title(caption(f"{name}, {axis.get_title(loc='left')}", 48))
    return figure


def _new_figure(columns: int, rows: int) -> Any:
    size = (SIZE[0] * 0.42 * columns, SIZE[1] * rows)
    return extra("matplotlib.figure", "bench").Figure(figsize=size, layout="constrained")


def _bases(loss: Loss, num_classes: int) -> list[BaseFunction]:
    """Return the base functions that a loss declares, each once."""
    terms = loss.terms if isinstance(loss, WeightedSum) else ((1.0, loss),)
    parts = [
        part
        for _, member in terms
        if isinstance(member, Declared)
        for part in member.parts(num_classes)
    ]
    return list(dict.fromkeys(part.base for part in parts if part.factor != 0))


def _needed(name: str) -> list[str]:
    parameters = ENTRIES[name].parameters().items()
    return [key for key, default in parameters if default is inspect.Parameter.empty]

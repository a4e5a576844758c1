"""`lossforge plot`: pictures of losses."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import library
from .options import FORMS, one_line_errors
from .output import waiting


def plot(
    losses: Annotated[list[str], typer.Argument(help="Losses or expressions.")],
    noise: Annotated[
        str | None,
        typer.Option(
            help=f"Of the gradient fields, over three classes: one of {FORMS}.", show_default=False
        ),
    ] = None,
    classes: Annotated[int, typer.Option(help="Number of classes of the curves.")] = 10,
    theme: Annotated[
        Literal["light", "dark", "clear"],
        typer.Option(help="clear: no background, legible on any."),
    ] = "light",
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .svg or .png file; by default NAME.svg, or losses.svg for several.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw losses: base function, value, pull, gradient fields under noise, balance, frontier.

    One loss is drawn with everything that is known of it; several are compared. The fields show
    where gradient descent takes predictions of three classes, and where a claim fails.

    \b
    lossforge plot BEF --noise pair:0.4
    lossforge plot BEF GCE CE --noise symmetric:0.6 --classes 100 --out losses.png
    lossforge plot "0.9*TS(quadratic(), a=1) + 0.1*CE" --theme dark
    """
    with one_line_errors():
        path = out or Path(f"{_stem(losses)}.svg")
        library.style.check_picture(path)
        draw = library.plot
        with waiting(f"drawing {shlex.join(losses)}"):
            figure = draw.sheet(
                lambda count: {text: draw.example(text, count) for text in losses},
                noise=noise,
                num_classes=classes,
                theme=theme,
            )
            draw.save(figure, path)
        typer.echo(f"picture: {path}", err=True)


def _stem(losses: list[str]) -> str:
    """A file name from a single loss: letters and digits, joined by dashes."""
    if len(losses) > 1:
        return "losses"
    words = "".join(letter if letter.isalnum() else " " for letter in losses[0]).split()
    return "-".join(words)[:60] or "loss"

"""`lossforge plot`: pictures of losses."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import library
from .options import FORMS, DataDir, Trust, one_line_errors, typed_loss
from .output import waiting

if TYPE_CHECKING:
    from ..benchmark.outputs import Outputs
    from ..plot.style import ThemeName


def plot(
    losses: Annotated[
        list[str] | None,
        typer.Argument(
            help="Losses or expressions, or your own my_losses.py:Name.", show_default=False
        ),
    ] = None,
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
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="Draw instead which share of the gradient right and wrong labels have at the end "
            "of a run of `lossforge train`: of its own loss, or of the losses given. Repeatable.",
            show_default=False,
        ),
    ] = None,
    trust: Trust = False,
    data_dir: DataDir = None,
) -> None:
    """Draw losses: base function, value, pull, gradient fields under noise, balance, frontier.

    One loss is drawn with everything that is known of it; several are compared. The fields show
    where gradient descent takes predictions of three classes, and where a claim fails.

    \b
    lossforge plot BEF --noise pair:0.4
    lossforge plot BEF GCE CE --noise symmetric:0.6 --classes 100 --out losses.png
    lossforge plot "0.9*TS(quadratic(), a=1) + 0.1*CE" --theme dark
    lossforge plot --run runs/train/0123456789abcdef
    """
    with one_line_errors():
        names = [typed_loss(text) for text in losses or ()]
        if not names and not run:
            raise ValueError("name a loss, or a run by --run")
        path = out or Path("shares.svg" if run else f"{_stem(names)}.svg")
        library.style.check_picture(path)
        draw = library.plot
        with waiting(f"drawing {shlex.join([*names, *map(str, run or [])])}"):
            if run:
                found = [
                    library.outputs.training_outputs(one, data_dir=data_dir, trust=trust)
                    for one in run
                ]
                figure = _shares(found, names, theme)
            else:
                figure = draw.sheet(
                    lambda count: {text: draw.example(text, count) for text in names},
                    noise=noise,
                    num_classes=classes,
                    theme=theme,
                )
            draw.save(figure, path)
        typer.echo(f"picture: {path}", err=True)


def _shares(found: "Sequence[Outputs]", names: list[str], theme: "ThemeName") -> Any:
    """Draw the losses of runs at their own outputs, or given losses at those of one run."""
    first, *others = found
    if first.true is None:
        raise ValueError("the run must be of data with true labels: --true names their column")
    if names:
        if others:
            raise ValueError(f"losses are drawn at the outputs of one --run, got {len(found)}")
        losses = {text: library.catalog.parse(text) for text in names}
        return library.plot.shares(losses, first.logits, first.given, first.true, theme=theme)
    for one in others:
        if not library.torch.equal(one.given, first.given):
            raise ValueError("the runs must have the same noisy labels: same data, noise and seed")
    # the number tells runs of one loss apart
    shown = {f"{one.name}, run {number}": one for number, one in enumerate(found, 1)}
    return library.plot.shares(
        {name: one.loss for name, one in shown.items()},
        {name: one.logits for name, one in shown.items()},
        first.given,
        first.true,
        theme=theme,
    )


def _stem(losses: list[str]) -> str:
    """Make a file name from a single loss: letters and digits, joined by dashes."""
    if len(losses) > 1:
        return "losses"
    words = "".join(letter if letter.isalnum() else " " for letter in losses[0]).split()
    return "-".join(words)[:60] or "loss"

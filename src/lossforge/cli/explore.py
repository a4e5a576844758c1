"""`lossforge explore`: the explorer as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from . import library
from .options import Show, one_line_errors, typed_loss
from .output import open_page


def explore(
    loss: Annotated[
        str | None,
        typer.Argument(
            help="The loss that is shown at first, also your own my_losses.py:Name if it is target "
            "separation, binary reduction or their sum; BEF if none.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[str, typer.Option(help="symmetric:RATE or pair:RATE.")] = "symmetric:0.4",
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("explorer.html"),
    show: Show = False,
) -> None:
    """Write a page on which a loss is shaped, seen, proved and trained in the browser.

    It needs no network: move the sliders or draw the derivative, read the verdict, train a tiny
    network on wrong labels, and copy the Python, the text form or a link.

    \b
    lossforge explore --open
    lossforge explore "0.8*TS(exponential(beta=-4), tau=0.3) + 0.2*BR(exponential(beta=-4))"
    lossforge explore GCE --noise pair:0.3 --classes 100 --out gce.html
    """
    with one_line_errors():
        criterion = None if loss is None else library.catalog.parse(typed_loss(loss))
        entry = None if loss is None else library.catalog.entry.look_up(loss)
        name = "" if entry is None else entry.name
        page = library.plot.explorer(criterion, name=name, noise=noise, num_classes=classes)
        library.files.write_atomically(out, page.encode())
        typer.echo(f"page: {out}", err=True)
        if show:
            open_page(out)

"""`lossforge losses`: the catalogue in the terminal."""

import shutil
import sys
from typing import Annotated

import typer

from . import library
from .options import one_line_errors


def losses(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A loss, in any case, or an expression such as '0.5*GCE(q=0.7) + 0.5*MAE'.",
            show_default=False,
        ),
    ] = None,
    cite: Annotated[
        bool, typer.Option("--cite", help="Print BibTeX, of all losses if none is named.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/catalog.md.")
    ] = False,
) -> None:
    """List the catalogue, or show one loss with its published settings, caveats and reference."""
    width = shutil.get_terminal_size((100, 24)).columns
    with one_line_errors():
        if as_markdown and (name is not None or cite):
            raise ValueError("--markdown takes neither a name nor --cite")
        if as_markdown:
            typer.echo(library.describe.render_markdown(), nl=False)
        elif cite:
            typer.echo(library.describe.citations(name))
        elif name is not None:
            typer.echo(library.describe.detail(name, min(width, 100)))
        else:
            typer.echo(library.describe.table(width if sys.stdout.isatty() else None))

"""`lossforge losses`: the catalogue in the terminal."""

import shutil
import sys
from typing import Annotated

import typer

from ..catalog import describe


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
    if as_markdown and (name is not None or cite):
        typer.echo("error: --markdown takes neither a name nor --cite", err=True)
        raise typer.Exit(2)
    width = shutil.get_terminal_size((100, 24)).columns
    try:
        if as_markdown:
            typer.echo(describe.render_markdown(), nl=False)
        elif cite:
            typer.echo(describe.citations(name))
        elif name is not None:
            typer.echo(describe.detail(name, min(width, 100)))
        else:
            typer.echo(describe.table(width if sys.stdout.isatty() else None))
    except (TypeError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None

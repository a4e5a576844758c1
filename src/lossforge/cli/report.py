"""`lossforge report`: what a folder of runs says."""

import contextlib
import shlex
import shutil
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..report import make_report, write_report


def report(
    store: Annotated[
        Path, typer.Argument(help="The folder that `lossforge bench` wrote, or its runs, packed.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write page, tables and figures. Without --format: STORE/report, "
            "or NAME-report beside a packed file NAME.jsonl.gz.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Literal["terminal", "markdown", "latex", "csv"] | None,
        typer.Option(
            "--format",
            help="Print the tables so, and write files only where --out says.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The loss that the others are compared with: CE, or else the first.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Literal["last", "mean10", "selected"],
        typer.Option(help="The last epoch, the mean of the last ten, or the selected one."),
    ] = "last",
    show: Annotated[
        bool,
        typer.Option("--open", help="Open the page in a browser, if this is typed in a terminal."),
    ] = False,
) -> None:
    """Print the tables of a folder of runs, and write a page with its tables and figures."""
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
    folder = out if out or form else _usual(store)
    words = ["lossforge", "report", str(store), "--table", table]
    words += ["--baseline", baseline] if baseline else []
    try:
        found = make_report(store, baseline=baseline, measure=table)
        typer.echo(found.text(form or "terminal", width), nl=False)
        if found.unfinished:
            typer.echo(f"note: {found.unfinished} runs are not finished", err=True)
        if folder:
            page = write_report(found, folder, shlex.join([*words, "--out", str(folder)]))
            typer.echo(f"report: {page}", err=True)
            # a script, a pipe or a CI job has nobody to look at it
            if show and sys.stdout.isatty():
                _open(page)
    except (OSError, ValueError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _usual(store: Path) -> Path:
    """Where a report goes: into a folder of runs, beside a file of them."""
    if store.is_file():
        return store.with_name(f"{store.name.removesuffix('.gz').removesuffix('.jsonl')}-report")
    return store / "report"


def _open(page: Path) -> None:
    """Show a page in a browser; where there is none, its path was printed."""
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(page.resolve().as_uri())

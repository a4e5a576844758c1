"""`lossforge data`: list, download and examine data sets."""

import sys
from typing import Annotated

import typer

from . import library
from .options import DataDir, new_app, one_line_errors
from .output import table

data = new_app(no_args_is_help=True, help="List, download and examine data sets.")

Name = Annotated[str, typer.Argument(help="A name that `lossforge data list` shows.")]


@data.command("list")
def show_list() -> None:
    """List all data sets and label sets, and how to get them."""
    rows = []
    for source in library.data.registry.SOURCES.values():
        how = "embedded" if not source.layout else "by hand" if source.obtain else "fetch"
        rows.append((source.name, how, source.summary))
    typer.echo("\n".join(table(rows, header=False)))


@data.command("fetch")
def fetch_data(name: Name, data_dir: DataDir = None) -> None:
    """Download a data set and verify its published checksum."""
    with one_line_errors():
        terms = library.data.registry.find(name).terms
        paths = library.data.fetch(name, data_dir=data_dir)
    for path in paths:
        typer.echo(path)
    if not paths:
        typer.echo(f"{name} needs no download", err=True)
    if terms:
        typer.echo(f"terms: {terms}", err=True)


@data.command()
def doctor(name: Name, data_dir: DataDir = None) -> None:
    """Check that the files of a data set are complete and can be read.

    Exit status 1 if there is a problem.
    """
    problems = 0
    with one_line_errors():
        for finding in library.data.diagnose(name, data_dir=data_dir, progress=_show_progress):
            problems += finding.kind == "problem"
            typer.echo(f"{finding.kind + ':':9}{finding.text}")
    raise typer.Exit(1 if problems else 0)


def _show_progress(part: str, done: int, total: int) -> None:
    if not sys.stderr.isatty() or (done % 100 and done != total):
        return
    end = "\r" if done < total else "\r\x1b[K"
    typer.echo(f"{part}: {done:,} of {total:,} images", err=True, nl=False)
    typer.echo(end, err=True, nl=False)

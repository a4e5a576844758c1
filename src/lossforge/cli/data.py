"""`lossforge data`: what data there are, getting them, and examining them."""

import sys
from typing import Annotated

import typer

from ..data import diagnose, fetch, registry
from .options import DataDir, one_line_errors

app = typer.Typer(no_args_is_help=True, help="List, download and examine data sets.")

Name = Annotated[str, typer.Argument(help="A name that `lossforge data list` shows.")]


@app.command("list")
def show_list() -> None:
    """Show every data set and set of labels, and which can be downloaded."""
    for source in registry.SOURCES.values():
        how = "" if not source.layout else "by hand" if source.obtain else "fetch"
        typer.echo(f"{source.name:16}{how or 'embedded':10}{source.summary}")


@app.command("fetch")
def fetch_data(name: Name, data_dir: DataDir = None) -> None:
    """Download a data set, checked against its published checksum."""
    with one_line_errors():
        terms = registry.find(name).terms
        paths = fetch(name, data_dir=data_dir)
    for path in paths:
        typer.echo(path)
    if not paths:
        typer.echo(f"{name} needs no download", err=True)
    if terms:
        typer.echo(f"terms: {terms}", err=True)


@app.command()
def doctor(name: Name, data_dir: DataDir = None) -> None:
    """Say what is there of a data set, what is missing, and whether all of it can be read.

    Exits with 1 if there is a problem.
    """
    problems = 0
    with one_line_errors():
        for finding in diagnose(name, data_dir=data_dir, progress=_show_progress):
            problems += finding.kind == "problem"
            typer.echo(f"{finding.kind + ':':9}{finding.text}")
    raise typer.Exit(1 if problems else 0)


def _show_progress(part: str, done: int, total: int) -> None:
    if not sys.stderr.isatty() or (done % 100 and done != total):
        return
    end = "\r" if done < total else "\r\x1b[K"
    typer.echo(f"{part}: {done:,} of {total:,} images", err=True, nl=False)
    typer.echo(end, err=True, nl=False)

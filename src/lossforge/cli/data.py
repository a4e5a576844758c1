"""`lossforge data`: list, download and examine data sets."""

from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from . import library
from .options import DataDir, new_app, one_line_errors
from .output import echo_styled, progress_bar, table

data = new_app(no_args_is_help=True, help="List, download and examine data sets.")

Name = Annotated[str, typer.Argument(help="A name that `lossforge data list` shows.")]


@data.command("list")
def show_list() -> None:
    """List all data sets and label sets, and how to get them."""
    rows = []
    for source in library.data.registry.SOURCES.values():
        how = "embedded" if not source.layout else "by hand" if source.obtain else "fetch"
        rows.append((source.name, how, source.summary))
    echo_styled("\n".join(table(rows, header=False)))


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
    with one_line_errors():
        with progress_bar("{task.description}", MofNCompleteColumn()) as bar:
            task = bar.add_task("")

            def show(part: str, done: int, total: int) -> None:
                bar.update(task, description=f"{part}: images", completed=done, total=total)

            found = list(library.data.diagnose(name, data_dir=data_dir, progress=show))
        for finding in found:
            typer.echo(f"{finding.kind + ':':9}{finding.text}")
    raise typer.Exit(1 if any(finding.kind == "problem" for finding in found) else 0)

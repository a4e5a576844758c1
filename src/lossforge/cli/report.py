"""`lossforge report`: tables and figures of a folder of runs."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import library
from .options import Show, one_line_errors, separate
from .output import echo_styled, in_terminal, open_page


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
            help="Print the tables in this format, and write files only with --out.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The loss that the others are compared with; by default CE, or else the first.",
            show_default=False,
        ),
    ] = None,
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            help="Losses whose curves are emphasised, beside the best and the baseline. "
            "Repeatable and comma-separated.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Literal["last", "mean10", "selected"],
        typer.Option(help="The last epoch, the mean of the last ten, or the selected one."),
    ] = "last",
    show: Show = False,
) -> None:
    """Print the tables of a folder of runs, and write a page with its tables and figures."""
    width = shutil.get_terminal_size((100, 24)).columns if in_terminal() else None
    words = ["lossforge", "report", str(store), "--table", table]
    words += ["--baseline", baseline] if baseline else []
    chosen = separate(highlight)
    words += [word for name in chosen for word in ("--highlight", name)]
    with one_line_errors():
        folder = out if out or form else _default_folder(store)
        found = library.report.make_report(
            store, baseline=baseline, measure=table, highlight=chosen
        )
        write = echo_styled if form in (None, "terminal") else typer.echo
        write(found.text(form or "terminal", width).removesuffix("\n"))
        if found.unfinished:
            typer.echo(f"note: {found.unfinished} runs are not finished", err=True)
        if found.unsealed:
            advice = "`lossforge bench` adds it"
            typer.echo(f"note: {found.unsealed} runs carry no seal yet; {advice}", err=True)
        if folder:
            command = shlex.join([*words, "--out", str(folder)])
            page = library.report.write_report(found, folder, command)
            typer.echo(f"report: {page}", err=True)
            if show:
                open_page(page)
        if form is None:
            typer.echo("\n" + "\n".join(found.closing(width)))
    if found.damaged:
        for line in found.damaged:
            typer.echo(f"error: {line}", err=True)
        typer.echo("damaged runs are left out; `lossforge bench` repeats them", err=True)
        raise typer.Exit(2)


def _default_folder(store: Path) -> Path:
    """Return the default folder of a report: in a store, or beside an archive."""
    if store.is_file():
        return store.with_name(f"{store.name.removesuffix('.gz').removesuffix('.jsonl')}-report")
    return store / "report"

"""`lossforge clean`: data without the wrong labels that an audit found."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import library
from .options import one_line_errors


def clean(
    data: Annotated[
        Path,
        typer.Argument(help="The audited .csv, .tsv or .parquet file, or folder of images."),
    ],
    audit: Annotated[Path, typer.Option(help="Folder of its audit.")],
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write; of a folder of images a .csv list, or a folder for copies."
        ),
    ],
    decisions: Annotated[
        Path | None,
        typer.Option(
            help="CSV with the columns index and decision (accept, keep, skip) and perhaps label. "
            "Without it all suspects are accepted.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Leave accepted suspects out.")] = False,
    relabel: Annotated[
        bool, typer.Option("--relabel", help="Give them the suggested label.")
    ] = False,
    weights: Annotated[
        bool,
        typer.Option(
            "--weights",
            help="Add a column `label_weight`: for them the probability of their label, else 1.",
        ),
    ] = False,
) -> None:
    """Write data without the wrong labels that an audit found; the original is only read.

    \b
    lossforge clean tickets.csv --audit runs/audit/tickets.csv --drop --out clean.csv
    lossforge clean photos/ --audit runs/audit/photos --relabel --out photos-clean
    """
    with one_line_errors():
        if drop + relabel + weights != 1:
            raise ValueError("give one of --drop, --relabel and --weights")
        how: Literal["drop", "relabel", "weights"] = (
            "drop" if drop else "relabel" if relabel else "weights"
        )
        found = library.clean.clean(data, audit=audit, how=how, out=out, decisions=decisions)
        done = {"drop": "left out", "relabel": "relabelled", "weights": "down-weighted"}
        typer.echo(f"{found.changed:,} of {found.total:,} samples are {done[how]}", err=True)
        if found.undecided:
            typer.echo(f"{found.undecided:,} suspects are undecided and unchanged", err=True)
        typer.echo(found.out)

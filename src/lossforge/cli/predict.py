"""`lossforge predict`: what a trained network says of new samples."""

from pathlib import Path
from typing import Annotated

import typer

from ..text import csv_text
from . import library
from .options import one_line_errors


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run of `lossforge train`.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="Samples like those it was trained on, without labels: a table, an image or a "
            "folder of images, a .npz file."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Write the CSV to this file, not to stdout.", show_default=False),
    ] = None,
) -> None:
    """Predict the labels of new samples with a network that `lossforge train` left.

    Prints CSV: the place of each sample, its label, and the label's probability.

    \b
    lossforge predict runs/train/0123456789abcdef new.csv --out predicted.csv
    """
    with one_line_errors():
        if out is not None:
            library.files.check_not_read(out, [data])
        found = library.model.load(run).predict(data)
        rows = [(one.where, one.label, f"{one.confidence:.4f}") for one in found]
        text = csv_text([("where", "label", "confidence"), *rows])
        if out is None:
            typer.echo(text, nl=False)
        else:
            library.files.write_atomically(out, text.encode())
            typer.echo(out)

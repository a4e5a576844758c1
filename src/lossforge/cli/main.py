"""The `lossforge` command."""

from typing import Annotated

import typer

from .. import __version__
from .audit import audit
from .bench import bench, run
from .certify import certify
from .data import app as data
from .design import design
from .frontier import frontier
from .losses import losses
from .report import report
from .train import train
from .tune import tune

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Noise-robust multiclass losses for PyTorch.",
)
app.command()(losses)
app.command()(certify)
app.command()(frontier)
app.command()(design)
app.command()(train)
app.command()(bench)
app.command()(run)
app.command()(tune)
app.command()(audit)
app.command()(report)
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass

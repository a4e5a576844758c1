"""The `lossforge` command; the module of a subcommand is imported when the subcommand is used."""

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import unknown
from .options import OwnDataCommand, new_app, with_new_names
from .output import checked_output, visible_controls

# name: the first line of its help; a test compares the two
COMMANDS = {
    "losses": "List the catalogue, or show one loss with its published settings, caveats and "
    "reference.",
    "certify": "Prove or refute that a loss is robust to a label noise.",
    "frontier": "Show up to which noise rates losses are proved robust.",
    "design": "Make a loss that is proved robust to a label noise.",
    "plot": "Draw losses: base function, value, pull, gradient fields under noise, balance, "
    "frontier.",
    "explore": "Write a page on which a loss is shaped, seen, proved and trained in the browser.",
    "train": "Train a network on noisy labels by the published protocol of its data set.",
    "predict": "Predict the labels of new samples with a network that `lossforge train` left.",
    "bench": "Run a grid of losses, noise and seeds; finished runs are kept, interrupted ones "
    "resumed.",
    "run": "Do one run of a grid; `lossforge bench --executor print` prints these commands.",
    "tune": "Search the parameters of a loss on noisy labels; true labels are read once, at the "
    "end.",
    "audit": "Estimate how many labels are wrong and which, and recommend how to train on them.",
    "clean": "Write data without the wrong labels that an audit found; the original is only read.",
    "report": "Print the tables of a folder of runs, and write a page with its tables and figures.",
    "data": "List, download and examine data sets.",
    "doctor": "Show versions, threads, extras, and whether the compiled kernel computes the "
    "losses.",
}
_MODULES = {"run": "bench"}  # of commands that share a module


class Commands(TyperGroup):
    """The subcommands in `COMMANDS`, listed in full and imported when they are used."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        with visible_controls():
            return super().main(*arguments, **options)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{_MODULES.get(cmd_name, cmd_name)}", __package__)
        found = getattr(module, cmd_name)
        if not isinstance(found, typer.Typer):
            function, found = found, new_app()
            found.command(cmd_name, cls=OwnDataCommand)(function)
        return typer.main.get_command(found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS:
            ctx.fail(str(unknown("command", args[0], COMMANDS)))
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, with_new_names(command, rest)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


app = new_app(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Noise-robust multiclass losses for PyTorch.",
)


def run() -> None:
    """Run the command that was typed."""
    with checked_output():
        app(prog_name="lossforge")


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

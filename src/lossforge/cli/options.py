"""Options that several verbs share, and how a mistake ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the data, instead of LOSSFORGE_DATA or the user's cache.",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Another setting, as key=value: epochs=20, lr=0.1, hold_out=0.1. May be repeated.",
        show_default=False,
    ),
]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What a user can mend is said in one line, with status 2; Ctrl-C ends with 130."""
    try:
        yield
    except KeyboardInterrupt as error:
        said = str(error) or "interrupted; the same command continues where this one stopped"
        typer.echo(said, err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, TypeError, ValueError, ImportError, RuntimeError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            said = f"{error.filename}: {error.strerror}"
        typer.echo(f"error: {said}", err=True)
        raise typer.Exit(2) from None

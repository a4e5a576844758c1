"""`lossforge doctor`: what this installation consists of, and how it computes losses."""

import platform
from importlib.util import find_spec

import typer

from .. import __version__
from . import library
from .output import labelled

# a package of each extra that a feature needs
_EXTRAS = {
    "ray": "ray",
    "slurm": "submitit",
    "tune": "optuna",
    "track": "tensorboard",
    "noise": "cleanlab",
    "verify": "flint",
    "embed": "sentence_transformers",
}


def doctor() -> None:
    """Show versions, threads, extras, and whether the compiled kernel computes the losses.

    Without the kernel nothing is missing, but losses take longer: up to ten times in eager mode.
    """
    torch, kernels = library.torch, library.kernels
    there = [extra for extra, package in _EXTRAS.items() if find_spec(package)]
    missing = [extra for extra in _EXTRAS if extra not in there]
    lines = [
        *labelled(
            "versions",
            f"lossforge {__version__}, torch {torch.__version__}, "
            f"Python {platform.python_version()}",
        ),
        *labelled("threads", str(torch.get_num_threads())),
        *labelled("kernel", kernels.describe() + _remedy(kernels.is_built())),
        *labelled("extras", ", ".join(there) or "none"),
    ]
    if missing:
        lines += labelled("", f"not installed: {', '.join(missing)}")
    typer.echo("\n".join(lines))


def _remedy(built: bool) -> str:
    if built:
        return ""
    return (
        ": no compiled library lies beside the package; with a C compiler on the PATH, "
        "`pip install --force-reinstall --no-deps` from a checkout or sdist builds one"
    )

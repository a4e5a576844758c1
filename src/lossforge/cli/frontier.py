"""`lossforge frontier`: how much noise losses bear."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from .. import theory
from ..catalog import parse
from ..errors import check_integer
from ..report.frontier import frontiers
from ..report.style import check_picture, write_picture
from ..theory import CLAIMS, Claim, Frontier
from .arguments import AsJson, read_matrix, waiting
from .options import one_line_errors

POINTS = 19  # of a line in the plot
_FINE = 2e-3  # of a point of it, relatively
_SMALL = 1e-6  # rates below it are those of losses for which nothing is proved


def frontier(
    losses: Annotated[list[str], typer.Argument(help="Losses or expressions.")],
    classes: Annotated[int, typer.Option(help="Number of classes.")],
    claim: Annotated[Claim, typer.Option(help="See `lossforge certify`.")] = "monotone",
    direction: Annotated[
        Path | None,
        typer.Option(
            help="A .csv or .npy matrix: row y says how the wrong labels of class y are "
            "distributed, with 0 at y.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the rates between symmetric noise and pair flips, as .svg or .png.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show up to which noise rates losses are robust.

    Proved, for symmetric noise (every wrong class alike), pair flips (all wrong labels in one
    class) and, on request, a direction of your own; beside the limit at which a wrong label becomes
    as frequent as the true one, where every loss fails. Above its rate a loss is refuted or open;
    `lossforge certify` says which.

    \b
    lossforge frontier BEF BQF AGCE GCE --classes 10
    lossforge frontier BEF "BEF(tau=9)" --classes 100 --claim global
    lossforge frontier BEF MAE --classes 10 --plot frontier.svg
    """
    with one_line_errors():
        check_integer("--classes", classes, 2)
        criteria = {text: parse(text) for text in losses}
        ways: dict[str, Any] = {"symmetric": "symmetric", "pair": "pair"}
        if direction is not None:
            ways["given"] = read_matrix(direction)
        if plot is not None:
            check_picture(plot)
            check_integer("--classes, for a plot,", classes, 3)
        with waiting("frontiers") as say:
            found = {}
            for text, loss in criteria.items():
                for way, ray in ways.items():
                    say(f"{text}, {way}")
                    found[text, way] = theory.frontier(loss, classes, ray, claim=claim)
            if plot is not None:
                peaks = _peaks(classes)
                lines: dict[str, list[float]] = {}
                for text, loss in criteria.items():
                    lines[text] = []
                    for place, peak in enumerate(peaks):
                        say(f"plot: {text}, point {place + 1} of {len(peaks)}")
                        ray = _ray(classes, peak)
                        one = theory.frontier(loss, classes, ray, claim=claim, tolerance=_FINE)
                        lines[text].append(one.rate)
                title = f"Noise that a loss tolerates, {classes} classes"
                write_picture(frontiers(peaks, lines, title=title), plot)
        if as_json:
            typer.echo(json.dumps([_plain(text, one) for (text, _), one in found.items()]))
        else:
            typer.echo("\n".join(_table([*criteria], [*ways], found, classes, claim)))
        if plot is not None:
            typer.echo(f"plot: {plot}", err=True)


def shown(rate: float) -> str:
    """A rate to four digits, never rounded up beyond what is proved."""
    return f"{math.floor(rate * 1e4 + 1e-3) / 1e4:.4f}"


def _table(
    losses: Sequence[str],
    ways: Sequence[str],
    found: dict[tuple[str, str], Frontier],
    classes: int,
    claim: Claim,
) -> list[str]:
    wide = max(map(len, [*losses, "limit"])) + 2
    lines = [
        f"{classes} classes; proved below these rates, in % of the limit: {CLAIMS[claim]}",
        "",
        f"{'loss':{wide}}" + "".join(f"{way:<18}" for way in ways).rstrip(),
    ]
    for loss in losses:
        rates = [found[loss, way] for way in ways]
        cells = [f"{shown(one.rate)} {100 * one.rate / one.limit:5.0f} %" for one in rates]
        lines.append(f"{loss:{wide}}" + "".join(f"{cell:<18}" for cell in cells).rstrip())
    limits = [shown(found[losses[0], way].limit) for way in ways]
    lines.append(f"{'limit':{wide}}" + "".join(f"{limit:<18}" for limit in limits).rstrip())
    if any(one.rate < _SMALL for one in found.values()):
        lines += [
            "",
            "0: nothing is proved, however small the rate; `lossforge certify` says whether there "
            "is a counterexample.",
        ]
    return lines


def _plain(loss: str, found: Frontier) -> dict[str, Any]:
    return {"loss": loss, **vars(found)}


def _peaks(classes: int) -> list[float]:
    """Shares of the most frequent wrong class, from even to all; denser where the limit bends."""
    even = 1 / (classes - 1)
    steps = torch.linspace(0, 1, POINTS, dtype=torch.float64).tolist()
    return [even + (1 - even) * step**1.3 for step in steps]


def _ray(classes: int, peak: float) -> Tensor:
    """One wrong class gets a share of the wrong labels, and the others the rest alike."""
    ray = torch.full((classes,), (1 - peak) / (classes - 2), dtype=torch.float64)
    ray[0], ray[1] = 0.0, peak
    return ray

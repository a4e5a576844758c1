"""`lossforge certify`: whether a loss is robust to a noise."""

import json
import shlex
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from . import library
from .options import (
    FORMS,
    AsJson,
    Claim,
    Classes,
    DataName,
    LossText,
    Noise,
    one_line_errors,
    read_noise,
    typed_loss,
)
from .output import WIDTH, labelled, waiting

if TYPE_CHECKING:
    from ..theory import Verdict

_SURE = {
    "monotone": "whatever a network predicts, on average these labels never lower the true class's "
    "score, just as clean labels would not. How fast a network learns from them is another "
    "question.",
    "transfers": "moving probability from any class to the true one never increases the average "
    "loss over these labels.",
    "global": "the best prediction is the true class at full confidence, as with clean labels. "
    "Training may still not find it: `--claim monotone` decides that.",
}
_FAILS = {
    "monotone": "there are predictions at which these labels lower the true class's score on "
    "average. Training that reaches them moves away from the true class and may fit wrong labels.",
    "transfers": "there are predictions at which moving probability to the true class increases "
    "the average loss over these labels.",
    "global": "some prediction other than the true class at full confidence has a smaller average "
    "loss over these labels. The better a network fits them, the more of the noise it reproduces.",
}
_BEST = {
    "PROVED": "the best prediction is the true class at full confidence",
    "REFUTED": "the best prediction is not the true class at full confidence",
}


def certify(
    loss: LossText,
    noise: Annotated[str, typer.Option(help=f"One of {FORMS}.")],
    data: DataName = None,
    classes: Classes = None,
    claim: Annotated[
        Claim,
        typer.Option(
            help="monotone: raising the true class's logit never increases the expected loss; "
            "transfers: moving probability to it never does; global: full confidence in it is the "
            "only minimum."
        ),
    ] = "monotone",
    cells: Annotated[
        int, typer.Option(help="Cells of the table that bounds a base function; more is finer.")
    ] = 4000,
    as_json: AsJson = False,
) -> None:
    """Prove or refute that a loss is robust to a label noise.

    The answer is about the average over labels at one instance. It is a proof or a prediction at
    which the claim fails, not a measurement. Exit status 0: proved; 1: refuted or open; 2: an
    argument cannot be read.

    \b
    lossforge certify BEF --noise symmetric:0.8 --classes 10
    lossforge certify BEF --noise asymmetric:0.4 --data cifar10 --claim global
    lossforge certify "0.9*TS(quadratic(), a=1) + 0.1*CE" --noise pair:0.3 --classes 100
    lossforge certify GCE --noise weights:0.6,0.3,0.1 --json
    lossforge certify BQF --noise estimated.csv      # row y: the labels that class y is given
    """
    with one_line_errors():
        criterion = library.catalog.parse(typed_loss(loss))
        labels = read_noise(noise, classes, data)
        best = None
        with waiting(f"certifying {loss}"):
            verdict = library.theory.certify(criterion, labels.weights, claim=claim, cells=cells)
            if claim == "monotone" and not as_json:
                best = library.theory.certify(
                    criterion, labels.weights, claim="global", cells=cells
                )
        if as_json:
            names = {} if labels.classes is None else {"classes": labels.classes}
            typer.echo(json.dumps(verdict.to_dict() | names, allow_nan=False))
        else:
            lines = [*answer(loss, labels, verdict, best), "", *numbers(verdict, labels)]
            typer.echo("\n".join(lines))
    raise typer.Exit(0 if verdict.status == "PROVED" else 1)


def answer(loss: str, noise: Noise, verdict: "Verdict", best: "Verdict | None" = None) -> list[str]:
    """Say what a verdict means for training with the loss.

    Args:
        loss: As the user wrote it.
        noise: The labels it is about.
        verdict: On the claim.
        best: On the claim "global", as further information.
    """
    lines = [_meaning(loss, f"{noise.text}, {noise.num_classes} classes", verdict)]
    if best is not None and best.status in _BEST:
        found = _BEST[best.status]
        lost = best.status == "PROVED" and verdict.status != "PROVED"
        lines.append(f"minimum: {found}{', but training may not find it' if lost else ''}.")
    elif best is not None:
        lines.append("minimum: could not determine the best prediction.")
    if verdict.status == "PROVED":
        command = f"lossforge frontier {shlex.quote(loss)} --classes {noise.num_classes}"
        lines.append(f"next: `{command}` shows how much noise it tolerates.")
    else:
        lines.append(f"next: `lossforge design {noise.options}` makes a loss for this noise.")
    return [line for text in lines for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]


def numbers(verdict: "Verdict", noise: Noise) -> list[str]:
    """Write a verdict as labelled lines."""
    level = "" if verdict.level is None else f" ({verdict.level})"
    fields = [("verdict", verdict.status + level), *verdict.facts(noise.class_name)]
    return [line for label, text in fields for line in labelled(label, text)]


def _meaning(loss: str, noise: str, verdict: "Verdict") -> str:
    if verdict.status == "PROVED":
        return f"{loss} is robust to this noise ({noise}): {_SURE[verdict.claim]}"
    if verdict.status == "REFUTED":
        return f"{loss} is not robust to this noise ({noise}): {_FAILS[verdict.claim]}"
    if verdict.status == "UNDECIDED":
        finer = "" if verdict.cells is None else f" `--cells {4 * verdict.cells}` may decide it."
        return f"Whether {loss} is robust to this noise ({noise}) is open: {verdict.reason}{finer}"
    return (
        f"Nothing is proved about {loss} under this noise ({noise}): {verdict.reason} It may still "
        "work well."
    )

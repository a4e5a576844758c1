"""`lossforge certify`: whether a loss is robust to a noise."""

import json
import math
import shlex
import textwrap
from typing import Annotated

import typer

from .. import theory
from ..catalog import parse
from ..theory import CLAIMS, Claim, Verdict
from .arguments import FORMS, AsJson, Classes, LossText, Noise, read_noise, waiting
from .options import one_line_errors

WIDTH, INDENT = 100, 10
_SURE = {
    "monotone": "whatever a network predicts, these labels never push the true class down on "
    "average, no more than clean ones would. How fast a network learns from them is another "
    "question.",
    "transfers": "moving probability from any class to the true one never costs anything, on "
    "average over these labels.",
    "global": "the best prediction is the true class at full confidence, as if the labels were "
    "clean. Training may still not find it: `--claim monotone` asks for that.",
}
_FAILS = {
    "monotone": "there are predictions at which these labels push the true class down on average. "
    "Training that comes there is led away from it and may fit wrong labels.",
    "transfers": "there are predictions at which moving probability to the true class costs, on "
    "average over these labels.",
    "global": "another prediction than the true class at full confidence costs less, on average "
    "over these labels. The better a network fits them, the more of the noise it reproduces.",
}
_BEST = {
    "PROVED": "the best prediction is the true class at full confidence",
    "REFUTED": "the best prediction is not the true class at full confidence",
}
_VALUE = {
    "monotone": "slope along the true class's logit",
    "transfers": "rise per probability moved",
    "global": "cheaper than full confidence by",
}


def certify(
    loss: LossText,
    noise: Annotated[str, typer.Option(help=f"One of {FORMS}.")],
    classes: Classes = None,
    claim: Annotated[
        Claim,
        typer.Option(
            help="monotone: raising the true class's logit never costs; transfers: moving "
            "probability to it never does; global: full confidence in it is the only minimum."
        ),
    ] = "monotone",
    cells: Annotated[
        int, typer.Option(help="Of the table that encloses a base function; more is finer.")
    ] = 4000,
    as_json: AsJson = False,
) -> None:
    """Prove or refute that a loss is robust to a label noise.

    The answer is about the average over labels at one instance. It is a proof, or a prediction
    at which the claim fails, and not a measurement. Status 0: proved; 1: refuted or open;
    2: something cannot be read.

    \b
    lossforge certify BEF --noise symmetric:0.8 --classes 10
    lossforge certify BEF --noise asymmetric:cifar10:0.4 --claim global
    lossforge certify "0.9*TS(quadratic(), a=1) + 0.1*CE" --noise pair:0.3 --classes 100
    lossforge certify GCE --noise weights:0.6,0.3,0.1 --json
    lossforge certify BQF --noise estimated.csv      # row y: labels that class y is given
    """
    with one_line_errors():
        criterion, labels = parse(loss), read_noise(noise, classes)
        best = None
        with waiting(f"certifying {loss}"):
            verdict = theory.certify(criterion, labels.weights, claim=claim, cells=cells)
            if claim == "monotone" and not as_json:
                best = theory.certify(criterion, labels.weights, claim="global", cells=cells)
        if as_json:
            typer.echo(json.dumps(verdict.to_dict(), allow_nan=False))
        else:
            typer.echo("\n".join([*answer(loss, labels, verdict, best), "", *numbers(verdict)]))
    raise typer.Exit(0 if verdict.status == "PROVED" else 1)


def answer(loss: str, noise: Noise, verdict: Verdict, best: Verdict | None = None) -> list[str]:
    """What a verdict means for whoever wants to train with the loss.

    Args:
        loss: As the user wrote it.
        noise: As it was read.
        verdict: On the claim.
        best: On the claim "global", as further information.
    """
    lines = [_meaning(loss, f"{noise.text}, {noise.num_classes} classes", verdict)]
    if best is not None and best.status in _BEST:
        found = _BEST[best.status]
        lost = best.status == "PROVED" and verdict.status != "PROVED"
        lines.append(f"minimum: {found}{', but training may not find it' if lost else ''}.")
    elif best is not None:
        lines.append("minimum: where the best prediction is, was not found out.")
    if verdict.status == "PROVED":
        command = f"lossforge frontier {shlex.quote(loss)} --classes {noise.num_classes}"
        lines.append(f"next: `{command}` shows how much noise it bears.")
    else:
        lines.append(f"next: `lossforge design {noise.options}` makes a loss for this noise.")
    return [line for text in lines for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]


def numbers(verdict: Verdict) -> list[str]:
    """A verdict as labelled lines."""
    level = "" if verdict.level is None else f" ({verdict.level})"
    fields = [("verdict", verdict.status + level), ("claim", CLAIMS[verdict.claim])]
    if verdict.ratio is not None and verdict.allowed is not None:
        margin = verdict.margin
        free = math.isinf(verdict.allowed)
        spare = "" if margin is None or free else f", margin {100 * margin:+.1f} %"
        allowed = "any" if free else f"{verdict.allowed:.6g}"
        fields.append(("ratio", f"{verdict.ratio:.6g}, allowed {allowed}{spare}"))
    if verdict.row is not None:
        rival = "" if verdict.rival is None else f" against class {verdict.rival}"
        fields.append(("binding", f"class {verdict.row}{rival}"))
    if verdict.witness is not None:
        value = f"{_VALUE[verdict.claim]} {verdict.witness.value:.4g}"
        fields.append(("witness", f"{verdict.witness}; {value}"))
    fields.append(("rule", verdict.rule))
    if verdict.cells is not None:
        fields.append(("cells", str(verdict.cells)))
    fields += [("assumes", text) for text in verdict.assumptions]
    return [line for label, text in fields for line in labelled(label, text)]


def labelled(label: str, text: str) -> list[str]:
    """A label and its text, wrapped."""
    blank = " " * INDENT
    first = f"{label:{INDENT}}"
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=blank, break_on_hyphens=False
    )


def _meaning(loss: str, noise: str, verdict: Verdict) -> str:
    if verdict.status == "PROVED":
        return f"{loss} is robust to this noise ({noise}): {_SURE[verdict.claim]}"
    if verdict.status == "REFUTED":
        return f"{loss} is not robust to this noise ({noise}): {_FAILS[verdict.claim]}"
    if verdict.status == "UNDECIDED":
        finer = "" if verdict.cells is None else f" `--cells {4 * verdict.cells}` may decide it."
        return (
            f"Whether {loss} is robust to this noise ({noise}) is open: neither a proof nor a "
            f"counterexample was found.{finer}"
        )
    return (
        f"Nothing is proved about {loss} under this noise ({noise}), and no counterexample was "
        "found: the theory does not cover it. It may do well all the same."
    )

"""`lossforge design`: a loss made for a noise."""

import json
import math
import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import library
from .options import (
    FORMS,
    AsJson,
    Classes,
    DataName,
    Noise,
    data_classes,
    one_line_errors,
    read_noise,
)
from .output import labelled, waiting

if TYPE_CHECKING:
    from ..theory import Design

GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
DIGITS = 10  # classes of the default data set of `lossforge train`
_CURVATURE = {"exponential": "beta", "quadratic": "alpha/beta"}


def design(
    classes: Classes = None,
    noise: Annotated[
        str | None,
        typer.Option(help=f"One of {FORMS}. Unknown if not given.", show_default=False),
    ] = None,
    data: DataName = None,
    family: Annotated[
        Literal["exponential", "quadratic"],
        typer.Option(help="The family of the base function: that of BEF, or that of BQF."),
    ] = "exponential",
    as_json: AsJson = False,
) -> None:
    """Make a loss that is proved robust to a label noise.

    Also shows all coefficients and curvatures that the noise admits. Without a noise, the loss is
    as close as possible to the limits of symmetric noise and of pair flips at once. Exit status 1
    if the loss is not proved robust.

    \b
    lossforge design --classes 10 --noise pair:0.4
    lossforge design --noise asymmetric:0.4 --data cifar100 --family quadratic
    lossforge design --noise estimated.csv --json
    lossforge design --classes 100
    """
    with one_line_errors():
        labels = None if noise is None else read_noise(noise, classes, data)
        if labels is not None:
            classes = labels.num_classes
        elif data is not None:
            classes = data_classes(data, classes)[0]
        if classes is None:
            raise ValueError(
                "the number of classes or the noise is needed: --classes 10, --data, --noise NOISE"
            )
        with waiting("designing a loss"):
            weights = None if labels is None else labels.weights
            found = library.theory.design(classes, weights, family)
        text = str(found.loss)
        if str(library.catalog.parse(text)) != text:
            raise ValueError(f"the loss {text} does not read back")
        if as_json:
            typer.echo(json.dumps(_plain(found, labels), allow_nan=False))
        else:
            typer.echo("\n".join(_lines(found, labels)))
    proved = found.verdict is None or found.verdict.status == "PROVED"
    raise typer.Exit(0 if proved else 1)


def _lines(found: "Design", noise: Noise | None) -> list[str]:
    about = "unknown noise" if noise is None else noise.text
    lines = [f"a loss for {about}, {found.num_classes} classes:", "", f"  {found.loss}", ""]
    fields: list[tuple[str, str]] = []
    if found.verdict is not None:
        fields.append(("verdict", f"{found.verdict.status}: {found.verdict.reason}"))
    shown = library.theory.rate_text
    rates = [
        f"{one.direction} below {shown(one.rate)} (limit {shown(one.limit)})"
        for one in found.frontiers
    ]
    fields += [("tolerates", ", ".join(rates)), *_admissible(found)]
    lines += [line for label, text in fields for line in labelled(label, text)]
    lines += ["", f'in Python: criterion = lossforge.parse("{found.loss}")']
    if found.num_classes == DIGITS or (noise is not None and noise.data is not None):
        command = f"lossforge train{_train_options(noise)}"
        lines.append(f"train with it: {command} --loss {shlex.quote(str(found.loss))}")
    return lines


def _train_options(noise: Noise | None) -> str:
    """Return the options of `lossforge train` for labels with this noise."""
    if noise is None:
        return ""
    text = shlex.quote(noise.text)
    if noise.data is not None:
        return f" --data {noise.data} --noise {text}"
    name = noise.spec.name
    if noise.spec.kind == "asymmetric" and name != "next":
        return f" --data {'digits' if name == 'mnist' else name} --noise {text}"
    if noise.spec.kind == "weights":
        return " --noise given --data DATA"
    return f" --noise {text}"


def _admissible(found: "Design") -> list[tuple[str, str]]:
    """Write what the noise admits, for each part of the loss."""
    symbol = _CURVATURE[found.family]
    if found.verdict is None:
        any_base = ""
    elif found.a_interval is None or found.tau_interval is None:
        any_base = "; no a is safe for every decreasing base function"
    else:
        low, high = found.a_interval
        tau = " to ".join(f"{value:.4g}" for value in found.tau_interval)
        vote = " to ".join(f"{_vote(value):.4g}" for value in (low, high))
        any_base = (
            f"; every decreasing base function is safe for a from {low:.4g} to {high:.4g}, that is "
            f"tau from {tau}, vote threshold theta from {vote}"
        )
    fields = [
        ("TS", f"a = {found.a:.4g}, tau = {found.tau:.4g}, theta = {_vote(found.a):.4g}{any_base}")
    ]
    if math.isinf(found.ratio):
        fields.append(
            ("", f"at this a slopes of its base function may differ by any factor: any {symbol}")
        )
    else:
        spans = [f"{_span(found.curvatures(gamma))} at gamma {gamma:g}" for gamma in GAMMAS]
        fields.append(
            (
                "",
                "at this a slopes of its base function may differ by a factor of "
                f"{found.ratio:.4g}: {symbol} of " + ", ".join(spans),
            )
        )
    if found.verdict is not None:
        fields.append(
            (
                "BR",
                "slopes at p and 1 - p may differ by a factor of "
                f"{math.exp(found.tilt):.4g} (log {found.tilt:.4g}); centred at 1/2 they do not",
            )
        )
    return fields


def _vote(a: float) -> float:
    return a / (1 + a) if math.isfinite(a) else 1.0


def _span(interval: tuple[float, float]) -> str:
    low, high = interval
    return "any" if math.isinf(low) and math.isinf(high) else f"{low:.4g} to {high:.4g}"


def _plain(found: "Design", noise: Noise | None) -> dict[str, Any]:
    def finite(values: tuple[float, float] | None) -> list[float | str] | None:
        return None if values is None else [_number(value) for value in values]

    plain = {
        "loss": str(found.loss),
        "num_classes": found.num_classes,
        "family": found.family,
        "a": found.a,
        "tau": found.tau,
        "theta": _vote(found.a),
        "a_interval": finite(found.a_interval),
        "tau_interval": finite(found.tau_interval),
        "ratio": _number(found.ratio),
        "curvature": found.curvature,
        "curvatures": {f"{gamma:g}": finite(found.curvatures(gamma)) for gamma in GAMMAS},
        "tilt": _number(found.tilt),
        "verdict": None if found.verdict is None else found.verdict.to_dict(),
        "frontiers": [vars(one) for one in found.frontiers],
    }
    if noise is not None and noise.classes is not None:
        plain["classes"] = noise.classes
    return plain


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)

"""`lossforge frontier`: how much noise losses tolerate."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import check_integer
from . import library
from .options import (
    FORMS,
    AsJson,
    Claim,
    Classes,
    DataName,
    Noise,
    complete_noise,
    data_classes,
    one_line_errors,
    typed_loss,
)
from .output import echo_styled, labelled, table, waiting

if TYPE_CHECKING:
    from torch import Tensor

    from ..loss import Loss
    from ..theory import Frontier

_SMALL = 1e-6  # below it, a rate is that of a loss for which nothing is proved


def frontier(
    losses: Annotated[list[str], typer.Argument(help="Losses or expressions.")],
    noise: Annotated[
        str | None,
        typer.Option(
            help=f"A third direction: how wrong labels are distributed under one of {FORMS}; its "
            "rate does not matter, and the diagonal of a matrix may be 0.",
            show_default=False,
        ),
    ] = None,
    data: DataName = None,
    classes: Classes = None,
    claim: Annotated[Claim, typer.Option(help="See `lossforge certify`.")] = "monotone",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Draw the rates between symmetric noise and pair flips, as .svg or .png.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show up to which noise rates losses are proved robust.

    The rates are for symmetric noise (all wrong classes equally likely), pair flips (all wrong
    labels in one class) and, with --noise, a distribution of your own. Beside them stands the
    limit at which a wrong label becomes as frequent as the true one and every loss fails. Above
    its rate a loss is refuted or open; `lossforge certify` decides which.

    \b
    lossforge frontier BEF BQF AGCE GCE --classes 10
    lossforge frontier BEF "BEF(tau=9)" --classes 100 --claim global
    lossforge frontier BEF MAE --noise asymmetric:0.4 --data cifar100
    lossforge frontier BEF MAE --classes 10 --out frontier.svg
    """
    with one_line_errors():
        labels = None if noise is None else complete_noise(noise, classes, data)
        count = _count(labels, classes, data)
        criteria = {text: library.catalog.parse(typed_loss(text)) for text in losses}
        ways: dict[str, Any] = {"symmetric": "symmetric", "pair": "pair"}
        if labels is not None:
            ways["given"] = library.theory.wrong_labels(labels.weights)
        if out is not None:
            library.style.check_picture(out)
            check_integer("--classes, for a figure,", count, 3)
        with waiting("frontiers") as update:
            found = {}
            for text, loss in criteria.items():
                for way, ray in ways.items():
                    update(f"{text}, {way}")
                    found[text, way] = library.theory.frontier(loss, count, ray, claim=claim)
            if out is not None:
                _draw(criteria, count, claim, out, update)
        if as_json:
            typer.echo(json.dumps([_plain(text, one, labels) for (text, _), one in found.items()]))
        else:
            echo_styled("\n".join(_table([*criteria], [*ways], found, count, claim)))
            if labels is not None and labels.classes is not None:
                typer.echo("\n".join(["", *_binding(labels, ways["given"])]))
        if out is not None:
            typer.echo(f"plot: {out}", err=True)


def _count(noise: Noise | None, classes: int | None, data: str | None) -> int:
    if noise is not None:
        return noise.num_classes
    if data is not None:
        classes = data_classes(data, classes)[0]
    if classes is None:
        raise ValueError("the number of classes is needed: --classes 10, --data or --noise")
    check_integer("--classes", classes, 2)
    return classes


def _draw(losses: "dict[str, Loss]", classes: int, claim: Claim, path: Path, update: Any) -> None:
    """Draw the rates of losses between symmetric noise and pair flips."""
    axes = library.plot.frontier(
        losses,
        num_classes=classes,
        claim=claim,
        on_point=lambda text, place: update(f"plot: {text}, point {place + 1}"),
    )
    library.plot.save(axes, path)


def _table(
    losses: Sequence[str],
    ways: Sequence[str],
    found: "dict[tuple[str, str], Frontier]",
    classes: int,
    claim: Claim,
) -> list[str]:
    meaning = library.theory.CLAIMS[claim]
    rows = [("loss", *ways)]
    shown = library.theory.rate_text
    for loss in losses:
        rates = [found[loss, way] for way in ways]
        cells = [f"{shown(one.rate)} {100 * one.rate / one.limit:5.0f} %  " for one in rates]
        rows.append((loss, *cells))
    rows.append(("limit", *(shown(found[losses[0], way].limit) for way in ways)))
    lines = [
        f"{classes} classes; proved below these rates, in % of the limit: {meaning}",
        "",
        *table(rows),
    ]
    if any(one.rate < _SMALL for one in found.values()):
        lines += [
            "",
            "0: nothing is proved, however small the rate; `lossforge certify` finds out whether "
            "there is a counterexample.",
        ]
    return lines


def _binding(noise: Noise, ray: "Tensor") -> list[str]:
    """Return the class whose wrong labels are most often the same."""
    row, rival = divmod(int(ray.argmax()), ray.shape[1])
    text = (
        f"class {noise.class_name(row)} against class {noise.class_name(rival)}, which gets "
        f"{100 * float(ray[row, rival]):.4g} % of its wrong labels"
    )
    return labelled("binding", text)


def _plain(loss: str, found: "Frontier", noise: Noise | None) -> dict[str, Any]:
    plain = {"loss": loss, **vars(found)}
    if noise is not None and noise.classes is not None and found.direction == "given":
        plain["classes"] = noise.classes
    return plain

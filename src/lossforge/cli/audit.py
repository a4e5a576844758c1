"""`lossforge audit`: what noise is in your labels, and which loss fits it."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, TimeElapsedColumn

from ..text import printable
from . import library
from .options import (
    AsJson,
    Columns,
    DataDir,
    Device,
    Label,
    Show,
    one_line_errors,
    pick_device,
    typed_losses,
)
from .output import WIDTH, echo_styled, labelled, open_page, progress_bar, table

if TYPE_CHECKING:
    from ..audit import Progress

PAIRS, SUSPECTS = 6, 10
MEASURED = ("accuracy", "score")


def audit(
    data: Annotated[
        str,
        typer.Argument(
            help="A .csv, .tsv, .parquet or .npz file, a folder of class folders with images, or a "
            "data set (`lossforge data list`)."
        ),
    ],
    label: Label = None,
    column: Columns = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Noise to add to a data set, to try the audit: symmetric:0.4, asymmetric:0.4.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            help="Candidates in order of preference, separated by commas. May be repeated. By "
            "default BQF, BEF, ANL-CE, JAL-CE, NCE+RCE, NCE+AGCE, CEeps+MAE, GCE, SCE, CE.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[
        int, typer.Option(help="Cross-validations to average; more is slower and steadier.")
    ] = 3,
    epochs: Annotated[int, typer.Option(help="Most epochs to train a network.")] = 60,
    trials: Annotated[
        bool,
        typer.Option(help="Train with the candidates, to compare how well they predict."),
    ] = True,
    procedures: Annotated[
        bool,
        typer.Option(
            help="Try procedures as well as losses: without suspects, with suspects relabelled or "
            "weighted, stopped early, a linear model."
        ),
    ] = True,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds for comparing candidates; those that do not fit are not tried.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[int, typer.Option(help="Height and width that images are resized to.")] = 32,
    features: Annotated[
        str | None,
        typer.Option(
            help="A .npy file with a row for each sample; of texts sentence-transformers:MODEL; of "
            "images timm:MODEL, patches:ATOMS, 100 by default, or pixels for a small CNN, which "
            "takes much longer.",
            show_default=False,
        ),
    ] = None,
    pred_probs: Annotated[
        Path | None,
        typer.Option(
            help="Probabilities out of sample, instead of a cross-validation: a .npy file, or a "
            "table with a column for each class.",
            show_default=False,
        ),
    ] = None,
    classes_file: Annotated[
        Path | None,
        typer.Option(
            help="Text file with the classes in the order of the columns of a .npy file of "
            "probabilities, one on each line; sorted by default.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of noise, folds, weights and batch order.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the page, the suspects and the matrix; runs/audit/NAME by default, "
            "and none with --json.",
            show_default=False,
        ),
    ] = None,
    show: Show = False,
    device: Device = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Estimate how many labels are wrong and which, and recommend how to train on them.

    A small network is cross-validated on the labels as they are; no true label is read. Writes
    index.html, suspects.csv, transition.csv (for `lossforge certify` and `lossforge design`) and
    audit.json. After an interruption the same command continues where it stopped.

    \b
    lossforge audit reviews.csv --label sentiment --open
    lossforge audit photos/ --out audit
    lossforge audit tickets.csv --pred-probs probs.npy
    lossforge audit digits --noise symmetric:0.4
    """
    with one_line_errors():
        folder = out or (None if as_json else library.audit.default_folder(data))
    with one_line_errors(), _progress(folder) as show_progress:
        if out is not None and out.exists() and not out.is_dir():
            raise ValueError(f"--out must be a folder, {str(out)!r} is a file")
        if folder is not None:
            library.audit.check_folder(folder)
        library.torch.set_num_threads(1)  # networks so small are slower on several cores
        subject = library.audit.read_subject(
            data,
            label=label,
            columns=column or None,
            noise=noise,
            size=size,
            features=features,
            pred_probs=pred_probs,
            classes_file=classes_file,
            seed=seed,
            data_dir=data_dir,
            on_progress=show_progress,
        )
        found = library.audit.audit(
            subject,
            losses=typed_losses(loss) or library.audit.CANDIDATES,
            folds=folds,
            repeats=repeats,
            epochs=epochs,
            trials=trials,
            procedures=procedures,
            budget=budget,
            seed=seed,
            device=pick_device(device),
            folder=folder,
            command=_command(),
            source=_source(data, label, column, noise),
            on_progress=show_progress,
        )
    with one_line_errors():
        plain = found.to_dict()
        if as_json:
            typer.echo(json.dumps(plain))
        else:
            echo_styled("\n".join(lines(plain, folder)))
        if folder is not None and show:
            open_page(folder / "index.html")


def _command() -> str:
    """Return the command as it was typed."""
    return shlex.join(["lossforge", *sys.argv[1:]])


def _source(
    data: str, label: str | None, columns: list[str] | None, noise: str | None
) -> list[str]:
    """Return the data as `lossforge train` takes them."""
    words = [data]
    for option, values in (("--label", [label]), ("--column", columns), ("--noise", [noise])):
        for value in values or []:
            words += [option, value] if value is not None else []
    return words


@contextmanager
def _progress(folder: Path | None) -> Iterator[Callable[["Progress"], None]]:
    """Show a bar in a terminal, and a line for each step elsewhere."""
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn())
    with progress_bar(*columns) as bar:
        task, printed = bar.add_task("reading", total=None), ""

        def show(now: "Progress") -> None:
            nonlocal printed
            bar.update(task, description=now.text, completed=now.done, total=now.total)
            if now.note:
                typer.echo(now.note, err=True)
            if bar.disable and now.text != printed:
                printed = now.text
                typer.echo(now.text, err=True)

        try:
            yield show
        except KeyboardInterrupt:
            if folder is None or not folder.exists():
                raise KeyboardInterrupt("interrupted; nothing was written") from None
            raise


def lines(found: dict[str, Any], folder: Path | None = None) -> list[str]:
    """Write an audit as lines of text.

    Args:
        found: From `Audit.to_dict`.
        folder: Where its files are.
    """
    text = [line for name, words in _facts(found) for line in labelled(name, words)]
    text += ["", *_pairs(found), "", *_losses(found), "", *_advice(found), "", *_suspects(found)]
    if folder is not None:
        files = {"page": "index.html", "suspects": "suspects.csv", "matrix": "transition.csv"}
        text += ["", *(f"{name:10}{printable(str(folder / file))}" for name, file in files.items())]
    return text


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    data, method, noise = found["data"], found["method"], found["noise"]
    what = "images" if data["kind"] == "images" else "rows"
    facts = [("data", f"{data['name']}, {data['rows']:,} {what}, {len(data['classes'])} classes")]
    facts += [("", note) for note in data["notes"]]
    facts.append(("network", _network(method)))
    added = "" if data["injected"] is None else f"; {_percent(data['injected'])} were made wrong"
    facts.append(
        (
            "noise",
            f"about {_percent(noise['rate'])} of the labels are wrong, interval "
            f"{_percent(noise['low'])} to {_percent(noise['high'])}{added}",
        )
    )
    for one in noise["dominated"]:
        facts.append(
            (
                "warning",
                f"at least as many samples of class {one['true']!r} are labelled {one['given']!r} "
                "as correctly: nothing can be learnt about it from these labels",
            )
        )
    return facts


def _network(method: dict[str, Any]) -> str:
    share = f"{_percent(method['accuracy'])} of the labels"
    if not method["epochs"]:
        return f"none; the probabilities that were given predict {share}"
    repeats = f", {method['repeats']} times" if method["repeats"] > 1 else ""
    first, last = min(method["epochs"]), max(method["epochs"])
    stopped = f"{first} to {last}" if first < last else f"{first}"
    return (
        f"{method['network']}, {method['loss']}, {method['folds']} folds{repeats}, stopped at "
        f"epoch {stopped}; out of fold it predicts {share}"
    )


def _pairs(found: dict[str, Any]) -> list[str]:
    rows = [("true class", "given as", "share", "95 % interval", "rows")]
    for one in found["confusions"][:PAIRS]:
        span = f"{_percent(one['low'])} to {_percent(one['high'])}"
        rows.append((one["true"], one["given"], _percent(one["rate"]), span, f"{one['rows']:.0f}"))
    return table(rows, width=WIDTH) if len(rows) > 1 else ["no class is mistaken for another"]


def _losses(found: dict[str, Any]) -> list[str]:
    rows = [("candidate", "certificate", "resampled", "held out", "true class", "of")]
    for one in found["losses"]:
        share = "-" if one["proved_share"] is None else f"{100 * one['proved_share']:.0f} %"
        proof = "no guarantee" if one["status"] in ("REFUTED", "UNCERTIFIED") else one["status"]
        shares = ["-" if one[name] is None else _percent(one[name]) for name in MEASURED]
        shares[1] += " =" if one["level"] else ""
        judged = f"{one['judged']:,}" if one["judged"] else "-"
        rows.append((one["name"], proof, share, *shares, judged))
    return table(rows, width=WIDTH)


def _advice(found: dict[str, Any]) -> list[str]:
    advice = found["recommended"]
    lines = "\n".join(advice["commands"]) if advice["commands"] else advice["code"]
    first, *more = (printable(line) for line in lines.splitlines())
    text = [f"use       {first}", *(f"          {line}" for line in more)]
    return [*text, *labelled("because", f"{advice['reason']}.")]


def _suspects(found: dict[str, Any]) -> list[str]:
    suspects = found["suspects"]
    if not suspects:
        return ["no label stands out as wrong"]
    rows = [("suspicious", "given", "suggested", "self-confidence", "")]
    for one in suspects[:SUSPECTS]:
        rows.append(
            (one["where"], one["given"], one["suggested"], f"{one['confidence']:.3f}", one["text"])
        )
    left = len(suspects) - SUSPECTS
    return [*table(rows, width=WIDTH), *([f"and {left:,} more"] if left > 0 else [])]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

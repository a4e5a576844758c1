"""`lossforge tune`: the parameters of a loss for your data, from noisy labels alone."""

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from . import library
from .options import (
    AS_GIVEN,
    FORMS,
    OWN_DATA,
    AsJson,
    Changes,
    Columns,
    DataDir,
    Device,
    Features,
    Label,
    MethodText,
    TrueLabel,
    Weight,
    one_line_errors,
    pick_device,
    read_data,
    read_noise,
    typed_loss,
    usual_noise,
)
from .output import progress_bar

if TYPE_CHECKING:
    from ..data.own import OwnData
    from ..tuning import Comparison, SearchProgress, Tuned

TOP = 5


def tune(
    data: Annotated[
        str, typer.Option(help=f"A data set, see `lossforge data list`, {OWN_DATA}")
    ] = "digits",
    label: Label = None,
    true: TrueLabel = None,
    column: Columns = None,
    weight: Weight = None,
    features: Features = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Noise of its labels: given, symmetric:0.4, human:worst. By default "
            "symmetric:0.4, for your own data given.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="A loss, see `lossforge losses`, or your own my_losses.py:Name.")
    ] = "BEF",
    method: MethodText = "plain",
    trials: Annotated[
        int, typer.Option(help="Losses to try, including those stopped early or not admitted.")
    ] = 50,
    splits: Annotated[
        int,
        typer.Option(help="Held-out parts that score every trial; n splits take n times as long."),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Seed of noise, weights, held-out part and search.")
    ] = 0,
    final_seeds: Annotated[
        int, typer.Option(help="Pairs of final runs on the test set; 0 for none.")
    ] = 3,
    admit: Annotated[
        str | None,
        typer.Option(
            help=f"Try only losses proved robust to a noise: `estimate`, {FORMS}.",
            show_default=False,
        ),
    ] = None,
    changes: Changes = None,
    store: Annotated[Path, typer.Option(help="Folder of the search and the final runs.")] = Path(
        "runs/tune"
    ),
    storage: Annotated[
        str | None,
        typer.Option(help="URL of a database instead of a file in the store.", show_default=False),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes; only with one is the search reproducible.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Draw the search, as .svg or .png.", show_default=False),
    ] = None,
    device: Device = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Search the parameters of a loss on noisy labels; true labels are read once, at the end.

    A tenth of the noisy labels is held out to score every trial (`--set hold_out=0.2` for more).
    The same command continues an interrupted search, and a larger --trials extends one. Exit
    status 1 if no trial has a score.

    \b
    lossforge tune --data digits --noise asymmetric:0.4 --loss BEF
    lossforge tune --loss GCE --trials 20 --set epochs=20 --out search.png
    lossforge tune --loss BQF --noise pair:0.3 --admit pair:0.3
    """
    with one_line_errors():
        if out is not None:
            library.style.check_picture(out)
        settings = library.grid.read_changes(changes or [])
        read = read_data(
            data, label=label, true=true, columns=column, weight=weight, features=features
        )
        noise = noise or usual_noise(read)
        with _progress(loss, trials, 2 * final_seeds) as show:
            found = library.tuning.tune(
                read,
                noise,
                typed_loss(loss),
                method=method,
                trials=trials,
                splits=splits,
                seed=seed,
                settings=settings,
                admit=_admitted(admit, read),
                store=store,
                storage=storage,
                workers=workers,
                final_seeds=final_seeds,
                data_dir=data_dir,
                device=pick_device(device),
                on_progress=show,
            )
        if out is not None and found.top:
            draw(found, out, f"{found.loss} on {data}, {noise}")
        if found.final and any(
            record.tested_as_given for record in library.records.read_records(Path(found.folder))
        ):
            typer.echo(AS_GIVEN, err=True)
        typer.echo(json.dumps(found.to_dict()) if as_json else "\n".join(lines(found)))
    raise typer.Exit(0 if found.best else 1)


def _admitted(text: str | None, data: "str | OwnData") -> object:
    """Return the noise of `--admit`, completed by the data set."""
    if text is None or text == "estimate":
        return text
    if not isinstance(data, str):
        classes = library.data.own.load(data.place, **data.options).num_classes
        return read_noise(text, classes).weights
    return read_noise(text, data=data).weights


def draw(found: "Tuned", path: Path, title: str) -> None:
    """Write a figure of a search."""
    figure = library.search.search_figure(found.trials, found.ranges, title=title)
    library.style.write_picture(figure, path)


@contextmanager
def _progress(name: str, trials: int, final: int) -> Iterator[Callable[["SearchProgress"], None]]:
    """Show a bar over trials, then over final runs; outside a terminal, a line for each tenth."""
    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        "{task.fields[rest]}",
        TimeRemainingColumn(),
    )
    with progress_bar(*columns) as bar:
        task, printed = bar.add_task(name, total=trials, rest=""), 0

        def show(done: "SearchProgress") -> None:
            nonlocal printed
            rest = "" if done.best is None else f"best {done.best:.2f} %"
            if done.final:
                bar.update(task, description="final", total=final, completed=done.final, rest=rest)
                return
            bar.update(task, completed=done.finished, rest=rest)
            tenth = 10 * done.finished // trials
            if bar.disable and tenth > printed:
                printed = tenth
                text = f"{name}: {done.finished} of {trials} trials, {rest or 'no score yet'}"
                typer.echo(text, err=True)

        yield show


def lines(found: "Tuned") -> list[str]:
    """Write the outcome of a search as lines of text."""
    ends = [f"{found.count('complete')} complete"]
    for state, words in (
        ("pruned", "stopped early"),
        ("rejected", "not proved robust"),
        ("diverged", "diverged"),
    ):
        if count := found.count(state):  # type: ignore[arg-type]
            ends.append(f"{count} {words}")
    text = [f"trials     {len(found.trials)}: {', '.join(ends)}"]
    if not found.top:
        return [*text, f"best       none: no {found.loss} that was tried has a score"]
    text += ["", "noisy val  loss"]
    for trial in found.top[:TOP]:
        mark = "" if trial.origin == "search" else f"  ({trial.origin})"
        text.append(f"{trial.score:7.2f} %  {trial.expression}{mark}")
    if all(trial.origin != "default" for trial in found.top[:TOP]):
        score = "        -" if found.default_score is None else f"{found.default_score:7.2f} %"
        text.append(f"{score}  {found.default}  (default)")
    text.append("")
    if found.importance:
        shares = [f"{name} {100 * share:.0f} %" for name, share in found.importance.items()]
        text.append(f"matters    {', '.join(shares)}")
    text += [line for one in found.final for line in _final(one)]
    if found.final:
        text.append(f"runs       {found.folder}")
    return [*text, f"best       {found.best}"]


def _final(found: "Comparison") -> list[str]:
    """Write the final runs on one test set."""
    means = []
    for name, values in (("tuned", found.tuned), ("default", found.default)):
        known = [value for value in values if value is not None]
        mean = f"{name} {statistics.fmean(known):.2f} %" if known else f"{name} diverged"
        if 0 < len(known) < len(values):
            mean += f" ({len(values) - len(known)} diverged)"
        means.append(mean)
    seeds = "1 seed" if len(found.seeds) == 1 else f"{len(found.seeds)} seeds"
    text = [f"{found.test:10} {', '.join(means)}, {seeds}, last epoch"]
    if found.mean is not None:
        span = ""
        if found.low is not None and found.high is not None:
            span = f", 95 % interval {found.low:+.2f} to {found.high:+.2f}"
        text.append(f"difference {found.mean:+.2f} points{span}")
    return text

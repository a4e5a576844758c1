"""`lossforge tune`: the parameters of a loss for your data, from noisy labels alone."""

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from ..benchmark.grid import one_run, read_changes
from ..benchmark.run import check_data, prepare_data
from ..data.registry import find
from ..report.search import search_figure
from ..report.style import check_picture, write_picture
from ..tuning import Comparison, SearchProgress, Tuned
from ..tuning import tune as search
from ..tuning.plan import ESTIMATE
from .arguments import FORMS, AsJson, read_noise
from .options import Changes, DataDir, one_line_errors

TOP = 5


def tune(
    data: Annotated[str, typer.Option(help="A data set, see `lossforge data list`.")] = "digits",
    noise: Annotated[
        str, typer.Option(help="Of its labels: given, symmetric:0.4, human:worst.")
    ] = "symmetric:0.4",
    loss: Annotated[str, typer.Option(help="A loss, see `lossforge losses`.")] = "BEF",
    trials: Annotated[
        int, typer.Option(help="Losses to try, those stopped early or not admitted included.")
    ] = 50,
    splits: Annotated[
        int, typer.Option(help="Held-out parts that judge every trial; the time is as many times.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Of noise, weights, held-out part and search.")] = 0,
    final_seeds: Annotated[
        int, typer.Option(help="Pairs of final runs, tested on true labels; 0 for none.")
    ] = 3,
    admit: Annotated[
        str | None,
        typer.Option(
            help="Try only losses proved robust to a noise: `estimate`, asymmetric:RATE as of the "
            f"data, {FORMS}.",
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
    plot: Annotated[
        Path | None, typer.Option(help="Draw the search: a .png or .svg file.", show_default=False)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu or cuda; by default a GPU if there is one.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Search the parameters of a loss on noisy labels; true labels are read at the end, once.

    A tenth of the noisy labels is held out and judges every trial (`--set hold_out=0.2` for more).
    The same command continues an interrupted search, and a larger --trials prolongs one. Status 1
    if no trial has a score.

    \b
    lossforge tune --data digits --noise asymmetric:0.4 --loss BEF
    lossforge tune --loss GCE --trials 20 --set epochs=20 --plot search.png
    lossforge tune --loss BQF --noise pair:0.3 --admit pair:0.3
    """
    with one_line_errors():
        if plot is not None:
            check_picture(plot)
        settings = read_changes(changes or [])
        place = device or ("cuda" if torch.cuda.is_available() else "cpu")
        with _progress(loss, trials, 2 * final_seeds) as show:
            found = search(
                data,
                noise,
                loss,
                trials=trials,
                splits=splits,
                seed=seed,
                settings=settings,
                admit=_admitted(admit, data, settings, data_dir),
                store=store,
                storage=storage,
                workers=workers,
                final_seeds=final_seeds,
                data_dir=data_dir,
                device=place,
                on_progress=show,
            )
        if plot is not None and found.top:
            draw(found, plot, f"{found.loss} on {data}, {noise}")
        typer.echo(json.dumps(found.to_dict()) if as_json else "\n".join(lines(found)))
    raise typer.Exit(0 if found.best else 1)


def _admitted(
    text: str | None, data: str, settings: dict[str, Any], data_dir: Path | None
) -> object:
    """The noise of `--admit` for a data set."""
    if text is None or text == ESTIMATE:
        return text
    kind, _, rate = text.partition(":")
    if kind == "asymmetric" and ":" not in rate:
        class_map = find(data).class_map
        text = f"pair:{rate}" if class_map == "next" else f"asymmetric:{class_map}:{rate}"
    run = one_run(data, "given", "CE", changes=settings)
    check_data([run], data_dir)
    return read_noise(text, prepare_data(run.spec, data_dir).num_classes).weights


def draw(found: Tuned, path: Path, title: str) -> None:
    """Write a picture of a search."""
    write_picture(search_figure(found.trials, found.ranges, title=title), path)


@contextmanager
def _progress(name: str, trials: int, final: int) -> Iterator[Callable[[SearchProgress], None]]:
    """A bar over the trials, then over the final runs; on stderr, so that output can be piped."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rest]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task, told = bar.add_task(name, total=trials, rest=""), [0]

        def show(done: SearchProgress) -> None:
            rest = "" if done.best is None else f"best {done.best:.2f} %"
            if done.final:
                bar.update(task, description="final", total=final, completed=done.final, rest=rest)
                return
            bar.update(task, completed=done.finished, rest=rest)
            tenth = 10 * done.finished // trials
            if not console.is_terminal and tenth > told[0]:
                told[0] = tenth
                said = f"{name}: {done.finished} of {trials} trials, {rest or 'no score yet'}"
                typer.echo(said, err=True)

        yield show


def lines(found: Tuned) -> list[str]:
    """The outcome of a search as lines of text."""
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


def _final(found: Comparison) -> list[str]:
    """The final runs on one test set."""
    means = []
    for name, values in (("tuned", found.tuned), ("default", found.default)):
        known = [value for value in values if value is not None]
        said = f"{name} {statistics.fmean(known):.2f} %" if known else f"{name} diverged"
        if 0 < len(known) < len(values):
            said += f" ({len(values) - len(known)} diverged)"
        means.append(said)
    seeds = f"{len(found.seeds)} seed{'s' * (len(found.seeds) > 1)}"
    text = [f"{found.test:10} {', '.join(means)}, {seeds}, last epoch"]
    if found.mean is not None:
        span = ""
        if found.low is not None and found.high is not None:
            span = f", 95 % interval {found.low:+.2f} to {found.high:+.2f}"
        text.append(f"difference {found.mean:+.2f} points{span}")
    return text

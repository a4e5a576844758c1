"""`lossforge bench`: run a grid; `lossforge run`: do one of its runs by its id."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn

from . import library
from .options import (
    AS_GIVEN,
    OWN_DATA,
    Changes,
    Columns,
    DataDir,
    Device,
    Features,
    Label,
    TrueLabel,
    Trust,
    Weight,
    data_not_named,
    one_line_errors,
    pick_device,
    read_data,
    refuse_own,
    separate,
)
from .output import progress_bar

if TYPE_CHECKING:
    from ..benchmark import GridSpec, Run, RunSpec
    from ..data.own import OwnData


def bench(
    spec: Annotated[
        str, typer.Argument(help="A preset (`--list` shows them) or the path of a TOML file.")
    ] = "digits",
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Do the first part of the grid on other data, {OWN_DATA[3:]}",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    true: TrueLabel = None,
    column: Columns = None,
    weight: Weight = None,
    features: Features = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these losses, or others: CE,BEF,my_losses.py:Name. Repeatable and "
            "comma-separated.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this label noise, or other: clean,symmetric:0.4, or a transition matrix in "
            "a .csv or .npy file. Repeatable and comma-separated.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Other training methods: plain,mixup(alpha=0.3). Repeatable and comma-separated.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Other seeds, such as 0,1,2 or 0:10.", show_default=False)
    ] = None,
    changes: Changes = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Folder of runs; runs/NAME by default, and runs/FILE-ID for your own data.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Where to run: local, ray, slurm, or print for shell lines.")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="Runs at a time; one per core or GPU by default.", show_default=False),
    ] = None,
    runs_per_gpu: Annotated[int, typer.Option(help="Number of runs that share a GPU.")] = 1,
    address: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster: auto, ray://...", show_default=False),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter of submitit, such as slurm_partition=gpu. Repeatable.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the grid, train nothing.")
    ] = False,
    trust: Trust = False,
    show_list: Annotated[bool, typer.Option("--list", help="Show the presets.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Run a grid of losses, noise and seeds; finished runs are kept, interrupted ones resumed.

    Several of these commands, on one machine or many, may share one folder of runs.
    """
    with one_line_errors():
        if show_list:
            for name in library.grid.presets():
                typer.echo(f"{name:24}{library.grid.read_grid(name).title}")
            return
        library.executors.find_executor(executor)
        if spec not in library.grid.presets() and library.data.own.is_path(spec):
            raise ValueError(data_not_named(spec, "a grid"))
        own = _own(data, label=label, true=true, columns=column, weight=weight, features=features)
        grid = library.grid.narrow(
            library.grid.read_grid(spec),
            data=own,
            losses=separate(loss),
            noise=separate(noise),
            methods=separate(method),
            seeds=_read_seeds(seeds),
            changes=library.grid.read_changes(changes or []),
        )
        library.grid.admit_rows(grid, separate(loss), trust=trust)
        parts = grid.resolve()
        runs = [run for part in parts for run in part]
        specs = [run.spec for run in runs]
        name = own.stem if own else grid.name
        place = store or Path("runs") / name
        # another protocol or data set does not belong in the same tables
        if (changes or own) and store is None:
            place = place.with_name(f"{place.name}-{specs[0].id[:6]}")
        at_once = workers or library.executors.local.processors()
        if dry_run:
            typer.echo(_plan(grid, place, specs, at_once))
            return
        _check(parts, data_dir)
        library.grid.save_grid(place, grid, specs)
        with progress(name, place, specs, at_once) as show:
            library.executors.run_all(
                executor,
                place,
                runs,
                workers=workers,
                data_dir=data_dir,
                runs_per_gpu=runs_per_gpu,
                address=address,
                parameters=library.grid.read_changes(slurm or []),
                trust=True,  # all code was admitted above
                on_progress=show,
                on_wait=say_waiting,
            )
        if executor == "print":
            return
        records = [library.records.read_record(place / spec.id) for spec in specs]
        diverged = sum(record.failed is not None for record in records)
        if diverged:
            typer.echo(f"{diverged} runs diverged; the report names them", err=True)
        if any(record.tested_as_given for record in records):
            typer.echo(AS_GIVEN, err=True)
        typer.echo(place)
        hint = shlex.join(["lossforge", "report", str(place)])
        typer.echo(f"`{hint}` makes tables and figures of it", err=True)


def _own(data: str | None, **options: Any) -> "OwnData | None":
    """Return the user's own data, if any are named."""
    if data is None:
        refuse_own(options, "which --data names")
        return None
    found = read_data(data, **options)
    if isinstance(found, str):
        raise ValueError(f"--data must be your own data here, got the data set {found}")
    return found


def _check(parts: Sequence[Sequence["Run"]], data_dir: Path | None) -> None:
    """Find missing data, and networks that do not fit them, before anything trains."""
    library.run.check_data([run for part in parts for run in part], data_dir)
    for first, *_ in parts:
        dataset = library.run.prepare_data(first.spec, data_dir, noise=first.noise)
        library.run.prepare_model(first.spec, dataset)


@contextmanager
def progress(
    name: str, store: Path, runs: Sequence["RunSpec"], workers: int
) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Show a bar over the runs on stderr, so that output can be piped."""
    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        "{task.fields[rest]}",
        TimeElapsedColumn(),
    )
    with progress_bar(*columns) as bar:
        task, printed = bar.add_task(name, total=len(runs), rest=""), 0
        forecast = library.store.Forecast(store, runs, workers)

        def show(found: Mapping[str, str]) -> None:
            nonlocal printed
            counts = Counter(found.values())
            left = None
            if counts["finished"] < len(runs):
                left = forecast.left(found)
            running = [f"{counts['running']} running"] if counts["running"] else []
            rest = ", ".join(running if left is None else [*running, f"about {left} left"])
            bar.update(task, completed=counts["finished"], rest=rest)
            tenth = 10 * counts["finished"] // len(runs)
            if bar.disable and tenth > printed:
                printed = tenth
                done = f"{name}: {counts['finished']} of {len(runs)} runs"
                typer.echo(f"{done}, {rest}" if rest else done, err=True)

        yield show


def say_waiting(runs: Sequence[str]) -> None:
    """Say on stderr that only runs of other workers are left."""
    typer.echo(
        f"waiting for {len(runs)} runs claimed by other workers; a claim lapses "
        f"{library.claim.STALE:.0f} s after its worker stopped",
        err=True,
    )


def run(
    store: Annotated[Path, typer.Argument(help="Folder of runs.")],
    run_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the run's folder.")],
    device: Device = None,
    trust: Trust = False,
    data_dir: DataDir = None,
) -> None:
    """Do one run of a grid; `lossforge bench --executor print` prints these commands."""
    with one_line_errors():
        spec = library.store.read_spec(store, run_id)
        outcome = library.run.execute(
            store, spec, data_dir=data_dir, device=pick_device(device), trust=trust
        )
        typer.echo(f"{run_id} {outcome}")


def _read_seeds(text: str | None) -> list[int]:
    """Read the seeds of a text such as "0,1,2" or "0:10", whose end is excluded."""
    found: list[int] = []
    for word in separate([text or ""]):
        first, colon, end = word.partition(":")
        if not first.isdecimal() or not (end.isdecimal() if colon else not end):
            raise ValueError(f"--seeds must be whole numbers such as 0,1,2 or 0:10, got {text!r}")
        found += range(int(first), int(end)) if colon else [int(first)]
    return found


def _plan(grid: "GridSpec", store: Path, runs: Sequence["RunSpec"], workers: int) -> str:
    """Describe a grid, the status of its runs, and the time left."""
    statuses = {run.id: status for run, status in library.store.statuses(store, runs)}
    counts = Counter(statuses.values())
    lines = [
        f"{grid.name}: {grid.title}",
        f"store   {store}",
        f"runs    {len(runs)}: " + ", ".join(f"{n} {status}" for status, n in counts.items()),
    ]
    for part in grid.parts:
        names = [row if isinstance(row, str) else row.name for row in part.losses]
        epochs = library.training.Settings(**part.training).epochs
        lines += [
            f"data    {part.data}, {part.model}, {epochs} epochs, protocol: {part.protocol}",
            f"losses  {', '.join(names)}",
            f"noise   {', '.join(part.noise)}",
            *([f"methods {', '.join(part.methods)}"] if part.methods != ["plain"] else []),
            f"seeds   {', '.join(map(str, part.seeds))}",
        ]
    left = library.store.Forecast(store, runs, workers).left(statuses)
    known = "known after the first runs" if left is None else f"about {left} left"
    lines.append(f"time    {known}")
    return "\n".join(lines)

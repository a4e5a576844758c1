"""`lossforge train`: train one network on noisy labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, TimeRemainingColumn

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
    MethodText,
    TrueLabel,
    Weight,
    one_line_errors,
    pick_device,
    read_data,
    typed_loss,
    usual_noise,
)
from .output import progress_bar

if TYPE_CHECKING:
    from ..benchmark.records import Record
    from ..training import State


def train(
    data: Annotated[
        str, typer.Option(help=f"A data set (`lossforge data list` lists them), {OWN_DATA}")
    ] = "digits",
    label: Label = None,
    true: TrueLabel = None,
    column: Columns = None,
    weight: Weight = None,
    features: Features = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Label noise: clean, given, symmetric:0.4, pair:0.4, asymmetric:0.4, "
            "instance:0.4, human:worst, or a transition matrix in a .csv or .npy file. By default "
            "symmetric:0.4, for your own data given.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option(
            help="A loss (`lossforge losses` lists them), an expression: '0.5*GCE(q=0.7) + MAE', "
            "or one of your own: my_losses.py:Name, package.module:Name(gamma=2)."
        ),
    ] = "BEF",
    method: MethodText = "plain",
    model: Annotated[
        str | None,
        typer.Option(help="Another network than the protocol's.", show_default=False),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Another number of epochs than the protocol's.", show_default=False),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of noise, initial weights, batch order and augmentation.")
    ] = 0,
    changes: Changes = None,
    store: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs/train"),
    device: Device = None,
    tensorboard: Annotated[
        bool, typer.Option(help="Write TensorBoard events into the run's folder.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Train a network on noisy labels by the published protocol of its data set.

    An interrupted run is resumed, a finished one is shown. The run's folder keeps the network, and
    `lossforge predict` uses it. Under torchrun the processes share every batch.

    \b
    lossforge train --noise asymmetric:0.4 --loss BQF
    lossforge train --data tickets.csv --label category --loss BQF
    """
    with one_line_errors(), library.training.launched(pick_device(device)) as chosen:
        changed = library.grid.read_changes(changes or [])
        if model:
            changed["model"] = model
        if epochs is not None:
            changed["epochs"] = epochs
        read = read_data(
            data, label=label, true=true, columns=column, weight=weight, features=features
        )
        noise = noise or usual_noise(read)
        run = library.grid.one_run(
            read, noise, typed_loss(loss), method=method, seed=seed, changes=changed
        )
        library.run.check_data([run], data_dir)
        folder = store / run.spec.id
        events = None
        if tensorboard:
            events = library.training.TensorBoard(folder / "tensorboard")
        with _progress(run.spec.settings.epochs) as show:

            def report(state: "State") -> None:
                show(state)
                if events is not None:
                    events(state)

            outcome = library.run.execute(
                store, run, data_dir=data_dir, device=chosen, on_epoch=report, keep_model=True
            )
            if events is not None:
                events.close()
        if outcome == "busy":
            raise ValueError(f"another process is already running this; see {folder}")
        if library.training.distributed.world()[0] == 0:
            record = library.records.read_record(folder)
            if record.tested_as_given:
                typer.echo(AS_GIVEN, err=True)
            typer.echo(summary(record))
            typer.echo(f"run        {folder}")
            if record.failed:
                raise typer.Exit(1)


@contextmanager
def _progress(epochs: int) -> Iterator[Callable[["State"], None]]:
    """Show a bar with loss, accuracy and time left on stderr, so that output can be piped."""
    columns = (
        "epoch {task.completed}/{task.total}",
        BarColumn(),
        "{task.fields[figures]}",
        TimeRemainingColumn(),
    )
    with progress_bar(*columns) as bar:
        task = bar.add_task("", total=epochs, figures="")
        pace = library.training.Pace("training", "an epoch")

        def show(state: "State") -> None:
            bar.update(task, completed=state.epoch, figures=_figures(state.metrics[-1]))
            if note := pace(state.epoch, epochs):
                typer.echo(note, err=True)

        yield show


def _figures(metrics: dict[str, Any]) -> str:
    tests = "  ".join(f"{name} {found['top1']:.1f} %" for name, found in metrics["tests"].items())
    return f"loss {metrics['loss']:.4f}  {tests}"


def summary(record: "Record") -> str:
    """Return the results of a run as lines of text: never the best epoch on the test set."""
    lines = [f"loss       {record.spec['expression']}"]
    if "method" in record.spec:
        lines.append(f"method     {record.spec['method']}")
    if record.noise_rate is not None:
        lines.append(f"noise      {record.spec['noise']}, {100 * record.noise_rate:.2f} % wrong")
    if record.failed:
        return "\n".join([*lines, f"failed     {record.failed}"])
    for test in record.tests:
        for k in ("top1", "top5"):
            if (last := record.last(test, k)) is None:
                continue
            mean, chosen = record.mean_last(10, test, k), record.selected(test, k)
            parts = [f"last epoch {last:.2f} %", f"mean of the last ten {mean:.2f} %"]
            if chosen is not None:
                parts.append(f"selected on held-out labels {chosen:.2f} %")
            lines.append(f"{test} {k[:3]}-{k[3]}  {', '.join(parts)}")
    final = record.metrics[-1] if record.metrics else {}
    if final.get("noise_fit") is not None:
        lines.append(
            f"wrong labels  {final['noise_fit']:.1f} % are fitted, "
            f"{final['noise_recovered']:.1f} % of their samples get the true label"
        )
    return "\n".join(lines)

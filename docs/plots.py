"""The pictures of the site: one per loss, drawn at build time, and one of committed results."""

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lossforge import Loss, noise
from lossforge.benchmark.records import read_records
from lossforge.catalog import ENTRIES
from lossforge.report.style import COLOURS, SIZE, STYLE

DOCS = Path(__file__).parent
HOME = DOCS / "images" / "home.svg"
RUNS = DOCS.parent / "results" / "banking77.jsonl.gz"
SHOWN = {"CE": "cross entropy", "GCE": "GCE", "BEF": "BEF()"}
CLASSES = 10
POINTS = 400
GREY = "#858b93"  # legible on white and on black
INKS = ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color")
LOOK = STYLE | dict.fromkeys((*INKS, "xtick.color", "ytick.color"), GREY)
LOOK |= {"grid.color": GREY + "40", "axes.titlesize": 9, "axes.titleweight": "normal"}


def of_probability(loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
    """Return p, the loss, and minus its derivative in the label's logit, for equal other classes.

    The logits have mean 0, because some losses change under a common shift of logits.
    """
    p = torch.linspace(0.002, 0.998, POINTS, dtype=torch.float64)
    rest = ((1 - p) / (CLASSES - 1))[:, None].expand(-1, CLASSES - 1)
    logits = torch.log(torch.cat([p[:, None], rest], 1))
    logits = (logits - logits.mean(1, keepdim=True)).requires_grad_()
    target = torch.zeros(POINTS, dtype=torch.int64)
    values = loss.with_policy(reduction="none")(logits, target)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return p, values.detach(), -gradient[:, 0]


def example(name: str) -> Loss | None:
    """Make a catalogue loss with its defaults; None if one prediction does not determine it."""
    if name == "GJS":
        return None  # it compares two views of a sample
    parameters = ENTRIES[name].parameters().items()
    needs = [key for key, default in parameters if default is inspect.Parameter.empty]
    return ENTRIES[name].make(**dict.fromkeys(needs, noise.symmetric(CLASSES, 0.2)))


def draw_loss(loss: Loss) -> Figure:
    """Draw value and push of a loss against p, beside the push of cross entropy."""
    p, values, push = of_probability(loss)
    figure = Figure(figsize=(1.75 * SIZE[0], 0.72 * SIZE[1]))
    margins = {"left": 0.07, "right": 0.98, "bottom": 0.24, "top": 0.88, "wspace": 0.17}
    left, right = figure.subplots(1, 2, sharex=True, gridspec_kw=margins)
    left.plot(p, values, color=COLOURS[0], linewidth=1.8)
    left.set_title("loss")
    right.plot(p, 1 - p, color=GREY, linewidth=1, linestyle="--")
    right.plot(p, push, color=COLOURS[1], linewidth=1.8)
    right.set_title("push on the label's logit (dashed: cross entropy's)")
    right.set_xlim(0, 1)
    for axes in (left, right):
        axes.set_xlabel("probability of the label")
    return figure


def draw_home() -> Figure:
    """Draw the accuracy of three losses under label noise, from the runs on Banking77."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in read_records(RUNS):
        found.setdefault((record.spec["loss"], record.spec["noise"]), []).append(record.last())
    kinds = list(dict.fromkeys(kind for _, kind in found))
    figure = Figure(figsize=(1.75 * SIZE[0], SIZE[1]), layout="constrained")
    axes = figure.subplots()
    colours = (GREY, COLOURS[1], COLOURS[0])
    for place, (loss, label) in enumerate(SHOWN.items()):
        at = [column + 0.27 * (place - 1) for column in range(len(kinds))]
        heights = [mean(found[loss, kind]) for kind in kinds]
        bars = axes.bar(at, heights, 0.25, label=label, color=colours[place])
        axes.bar_label(bars, fmt="%.0f", fontsize=7.5)
    axes.set_xticks(range(len(kinds)), [kind.replace(":", "\n") for kind in kinds])
    axes.set_ylabel("test accuracy, %")
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, 100)
    axes.legend(loc="upper right", ncols=3)
    return figure


def svg(draw: Callable[[], Figure]) -> bytes:
    """Write a figure without background; equal figures give equal bytes."""
    stream = io.BytesIO()
    with mpl.rc_context(LOOK):
        nothing = {"Date": None, "Creator": None}
        draw().savefig(stream, format="svg", transparent=True, metadata=nothing)
    return stream.getvalue()


def file_name(name: str) -> str:
    """Name the file of a loss's picture, with + in words."""
    return f"{name.lower().replace('+', '_plus_')}.svg"


def write_losses(folder: Path) -> None:
    """Draw every loss of the catalogue that has a picture."""
    folder.mkdir(exist_ok=True)
    for name in ENTRIES:
        loss = example(name)
        if loss is not None:
            (folder / file_name(name)).write_bytes(svg(lambda loss=loss: draw_loss(loss)))


if __name__ == "__main__":
    HOME.write_bytes(svg(draw_home))

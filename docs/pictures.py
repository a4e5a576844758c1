"""The committed pictures of the site: `python docs/pictures.py` writes them again."""

from pathlib import Path
from statistics import mean
from typing import Any

from lossforge import CE, parse, plot
from lossforge.benchmark.records import read_records
from lossforge.plot.style import THEMES, panels, styled

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
RUNS = DOCS.parent / "results" / "banking77.jsonl.gz"
SHOWN = {"CE": "cross entropy", "GCE": "GCE", "BEF": "BEF()"}
NOISES = {
    "symmetric:0.4": "40 % wrong at random",
    "asymmetric:0.4": "40 % wrong, similar classes",
    "instance:0.6": "60 % wrong, hard samples",
}


def draw_memorising() -> Any:
    """Draw test accuracy over training, cross entropy and BEF, from the runs on Banking77."""
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for record in read_records(RUNS):
        curve = record.curve("test", "top1")
        curves.setdefault((record.spec["loss"], record.spec["noise"]), []).append(curve)
    theme = THEMES["clear"]
    with styled(theme):
        drawn = panels(None, len(NOISES), width=0.62, height=0.8)
        for axes, (noise, title) in zip(drawn, NOISES.items(), strict=True):
            for loss, colour in (("CE", theme.muted), ("BEF", theme.colours[0])):
                seeds = list(zip(*curves[loss, noise], strict=True))
                epochs = range(1, len(seeds) + 1)
                low, high = [min(one) for one in seeds], [max(one) for one in seeds]
                axes.fill_between(epochs, low, high, color=colour, alpha=0.25, linewidth=0)
                means = [mean(one) for one in seeds]
                axes.plot(epochs, means, color=colour, linewidth=2, label=SHOWN[loss])
                axes.annotate(
                    f"{means[-1]:.0f}",
                    (len(means), means[-1]),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                )
            axes.set(title=title, xlabel="epoch", ylim=(40, 90), xlim=(1, len(seeds) + 1))
        drawn[0].set_ylabel("test accuracy, %")
        drawn[0].legend(loc="lower right")
    return drawn


def draw_home() -> Any:
    """Draw the accuracy of three losses under label noise, from the runs on Banking77."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in read_records(RUNS):
        found.setdefault((record.spec["loss"], record.spec["noise"]), []).append(record.last())
    kinds = list(dict.fromkeys(kind for _, kind in found))
    theme = THEMES["clear"]
    with styled(theme):
        (axes,) = panels(None, width=1.75)
        colours = (theme.muted, theme.colours[1], theme.colours[0])
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
    return axes


def draw_designer() -> Any:
    """Draw the fields of cross entropy and of the tutorial's loss, half of the labels wrong."""
    part = "exponential(alpha=-1, beta=-4)"
    with styled(THEMES["clear"]):
        drawn = panels(None, 2, width=0.86, height=1.15)
    losses = {"cross entropy": CE(), "ours": parse(f"0.8*TS({part}, tau=0.3) + 0.2*BR({part})")}
    for axes, (name, loss) in zip(drawn, losses.items(), strict=True):
        plot.simplex(loss, "symmetric:0.5", axes=axes, theme="clear")
        axes.set_title(f"{name}, {axes.get_title(loc='left')}")
    return drawn


PICTURES = {
    "home.svg": draw_home,
    "designer.svg": draw_designer,
    "memorising.svg": draw_memorising,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        plot.save(draw(), IMAGES / name)

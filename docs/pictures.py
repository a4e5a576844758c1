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


PICTURES = {"home.svg": draw_home, "designer.svg": draw_designer}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        plot.save(draw(), IMAGES / name)

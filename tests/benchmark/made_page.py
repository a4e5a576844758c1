"""The page of results of runs that nobody did."""

import importlib
import sys
from pathlib import Path

from made_records import LOSSES, archive, made

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
results, checks, pages = map(importlib.import_module, ("results", "results_check", "results_page"))

SEEDS = (0, 1, 2)
HELD_OUT, SEARCHED = ("asymmetric:0.3", "instance:0.6"), ("clean", "symmetric:0.4")
OUT_OF_17 = "mean ranks of 17 and are never more than 2 points below the best of the other 15"


def accuracy(loss: str) -> float:
    """BEF 91, BQF 90, then one point less for each."""
    order = ["BEF", "BQF", *(name for name in LOSSES if name not in ("BEF", "BQF"))]
    return 91.0 - order.index(loss)


def runs(noises=HELD_OUT, changes=None, selected=None, losses=LOSSES, seeds=SEEDS, **fields):
    """17 losses x 2 settings x 3 seeds with known ranks.

    Args:
        noises: The settings.
        changes: Last accuracies that differ, by loss or by loss and noise.
        selected: Accuracies of the selected epoch that differ, by loss.
        losses: The rows.
        seeds: Each adds a tenth of a point to every loss.
        fields: More of the spec.
    """
    changes, selected = changes or {}, selected or {}
    found = []
    for seed in seeds:
        for noise in noises:
            for loss in losses:
                last = changes.get((loss, noise), changes.get(loss, accuracy(loss)))
                chosen = selected.get(loss, last)
                luck = seed / 10
                found.append(made(loss, noise, seed, last + luck, selected=chosen + luck, **fields))
    return found


def page(folder, **archives):
    for name, records in archives.items():
        archive(folder, name.replace("_", "-"), records)
    return pages.make_text(folder)[0]


def line(text, start):
    (found,) = [one for one in text.splitlines() if one.startswith(start)]
    return found


def sentence(text, settings="held-out"):
    (found,) = [
        one
        for one in text.splitlines()
        if f"{settings} settings, last epoch, " in one and one.startswith("- ")
    ]
    return found


def section(text, heading):
    start = text.index(f"## {heading}")
    end = text.find("\n## ", start)
    return text[start : end if end > 0 else None]

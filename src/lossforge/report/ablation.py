"""The balance of the two terms of BEF and BQF."""

import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .style import COLOURS, new_figure, style

Balance = tuple[float, float]
NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?)"

USUAL_MU, USUAL_CLASSES = 0.1, 150  # the default of mu, and up to how many classes it is that


def balance(expression: str, classes: int) -> tuple[str, float, float] | None:
    """The family, lam and mu of an expression such as "BEF(lam=0.9, mu=0.1)", if it is one.

    None, too, where mu is left to the number of classes, and these are many.
    """
    found = re.fullmatch(r"\s*(BEF|BQF)\((.*)\)\s*", expression)
    if not found:
        return None
    values = {
        name: re.search(rf"\b{name}\s*=\s*{NUMBER}", found[2], re.IGNORECASE)
        for name in ("lam", "mu")
    }
    if values["lam"] is None or (values["mu"] is None and classes > USUAL_CLASSES):
        return None
    return found[1], float(values["lam"][1]), float(values["mu"][1]) if values["mu"] else USUAL_MU


def ablation(
    families: Mapping[str, Mapping[Balance, Sequence[float]]], *, title: str, legend: bool = True
) -> Any:
    """Draw accuracy against the share of target separation, one line for every family.

    Args:
        families: Accuracies in % over seeds, by (lam, mu), by the name of the family.
        title: What the panel is about.
        legend: Whether the names are written below.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=1.07 if legend else 1)
        places: dict[float, str] = {}
        for colour, (name, points) in zip(COLOURS, families.items(), strict=False):
            ordered = sorted((lam / (lam + mu), (lam, mu)) for lam, mu in points if lam + mu > 0)
            shares = [share for share, _ in ordered]
            values = [points[key] for _, key in ordered]
            spreads = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values]
            means = [statistics.fmean(v) for v in values]
            looks = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.5}
            axis.errorbar(shares, means, spreads, label=name, capsize=2.5, **looks)
            places |= {share: f"{lam:g} : {mu:g}" for share, (lam, mu) in ordered}
        crowded = any(after - before < 0.18 for before, after in pairwise(sorted(places)))
        axis.set_xticks(list(places), list(places.values()), rotation=45 if crowded else 0)
        axis.set_title(title)
        axis.set_xlabel("lam : mu (target separation : binary reduction)")
        axis.set_ylabel("accuracy (%)")
        if legend:
            figure.legend(loc="outside lower center", ncols=4)
    return figure

"""How far each loss is behind the best of a setting, and a loss chosen by noisy labels alone."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from results_data import OURS, Figures, is_held_out, listed, where

from lossforge.benchmark.records import Record
from lossforge.report.results import Column, Results
from lossforge.style import COLOURS, MUTED, caption, new_figure, style

NEAR = 2.0  # points behind the best
CHOSEN = "chosen by noisy labels"
FILE = "results-behind.svg"


@dataclass(frozen=True)
class Behind:
    """Points behind the best loss of a setting, in every setting.

    Args:
        columns: The settings.
        fixed: Of every loss that has all settings, mean over the seeds that these have in common.
        chosen: Of the loss that is best on held-out noisy labels after the last epoch, chosen anew
            for every setting and seed, mean over seeds; empty where no labels were held out.
    """

    columns: Sequence[Column]
    fixed: Mapping[str, Sequence[float]]
    chosen: Sequence[float]

    @property
    def closest(self) -> str:
        """The fixed loss whose largest distance is the smallest."""
        return min(self.fixed, key=lambda loss: max(self.fixed[loss]))

    @property
    def nearest(self) -> list[str]:
        """The fixed losses by their mean distance, the smallest first."""
        return sorted(self.fixed, key=lambda loss: statistics.fmean(self.fixed[loss]))

    def worst(self, points: Sequence[float]) -> Column:
        return self.columns[max(range(len(points)), key=lambda i: points[i])]


def behind(results: Results) -> Behind | None:
    """Compare every loss with the best of the setting; None without losses that have them all."""
    whole = results.complete()
    means = [whole.means(column) for column in whole.columns]
    if not whole.losses or not all(means):
        return None
    best = [max(column.values()) for column in means]
    fixed = {
        loss: [top - column[loss] for top, column in zip(best, means, strict=True)]
        for loss in whole.losses
    }
    choices = [_choose(whole, column) for column in results.columns]
    chosen = [top - mean for top, mean in zip(best, choices, strict=True) if mean is not None]
    return Behind(results.columns, fixed, chosen if len(chosen) == len(best) else [])


def _choose(results: Results, column: Column) -> float | None:
    """Return the mean test accuracy of the loss chosen for each seed that all losses have."""
    runs = {loss: results.runs(loss, column) for loss in results.losses}
    accuracies = []
    for seed in sorted(set.intersection(*map(set, runs.values()))):
        held_out = {loss: _held_out(cell[seed]) for loss, cell in runs.items()}
        known = {loss: value for loss, value in held_out.items() if value is not None}
        if known:
            first = max(known, key=lambda loss: known[loss])
            accuracies.append(results.values(first, column)[seed])
    return statistics.fmean(accuracies) if accuracies else None


def _held_out(run: Record) -> float | None:
    value = run.metrics[-1].get("validation") if run.metrics and not run.failed else None
    return None if value is None else float(value)


def reach_sentence(found: Behind) -> str:
    """Say once that no fixed loss does what was hoped for."""
    near = [loss for loss, points in found.fixed.items() if max(points) <= NEAR]
    closest = found.fixed[found.closest]
    if near:
        stay = "stays" if len(near) == 1 else "stay"
        here = f"though {listed(near)} {stay} within {NEAR:g} points in every setting here"
    else:
        here = (
            f"and of the {len(found.fixed)} here none stays within {NEAR:g} points of the best in "
            f"every setting: {found.closest}, the closest, is {max(closest):.1f} behind in one "
            f"({where(found.worst(closest))})"
        )
    return (
        f'**One fixed loss is not enough.** "{listed(OURS)} have the two best mean ranks and are '
        f'never more than {NEAR:g} points behind the best loss" is not reachable by one fixed '
        "loss: two independent searches over about 165 variants, whose runs are not kept, found "
        f"none, {here}."
    )


def distance_sentence(found: Behind) -> str:
    """Say how far BEF and BQF are behind on average, and their place by that."""
    parts = [
        f"{loss} {statistics.fmean(found.fixed[loss]):.1f} (place {found.nearest.index(loss) + 1})"
        for loss in found.nearest
        if loss in OURS
    ]
    if not parts:
        return ""
    return (
        f"Points behind the best loss of a setting, mean over the settings: {listed(parts)} of "
        f"{len(found.fixed)} losses."
    )


def choice_sentences(
    found: Behind, asides: Mapping[str, Behind], independent: Behind | None = None
) -> list[str]:
    """Compare a choice by noisy labels with the best fixed loss, and say where it fails.

    Args:
        found: The main settings.
        asides: Other data, by name.
        independent: The main settings without the losses whose parameters depend on the noise.
    """
    if not found.chosen:
        return []
    fixed, count = found.nearest[0], len(found.columns)
    near, fixed_near = (_near(points) for points in (found.chosen, found.fixed[fixed]))
    better = statistics.fmean(found.chosen) < statistics.fmean(found.fixed[fixed])
    work = "**Measuring comes closer.**" if better else "**Measuring did no better here.**"
    sentences = [
        f"{work} Taking, in every setting and for every seed, the loss that is best on held-out "
        f"noisy labels, no true label being used, is {statistics.fmean(found.chosen):.1f} points "
        f"behind on average and within {NEAR:g} in {near} of {count} settings; the best fixed "
        f"loss, {fixed}, {statistics.fmean(found.fixed[fixed]):.1f} and {fixed_near}."
    ]
    if independent and independent.chosen:
        names = listed([loss for loss in found.fixed if loss not in independent.fixed])
        fixed = independent.nearest[0]
        sentences.append(
            f"The candidates matter: without {names}, whose published parameters depend on the "
            f"noise, the choice is {_summary(independent.chosen)} behind the best of the rest, and "
            f"{fixed} {_summary(independent.fixed[fixed])}."
        )
    limits = [
        f"{name} {statistics.fmean(one.chosen):.1f} ({one.nearest[0]} "
        f"{statistics.fmean(one.fixed[one.nearest[0]]):.1f})"
        for name, one in asides.items()
        if one.chosen
    ]
    more = (
        ". Mean points behind on other data, in brackets those of the best fixed loss: "
        + ", ".join(limits)
    )
    sentences.append(
        f"It is no guarantee: few or very noisy labels judge badly. At worst it is "
        f"{max(found.chosen):.1f} points behind ({where(found.worst(found.chosen))})"
        f"{more if limits else ''}."
    )
    return sentences


def _summary(points: Sequence[float]) -> str:
    return f"{statistics.fmean(points):.1f} points on average and {max(points):.1f} at worst"


def _near(points: Sequence[float]) -> int:
    return sum(point <= NEAR for point in points)


def behind_figure(found: Behind) -> Figures:
    """Return the function that draws the figure, by its file name."""
    return {FILE: partial(draw_behind, found)}


def draw_behind(found: Behind) -> Any:
    """Draw a dot for every setting and a bar for the mean, one row per loss, the best first."""
    rows = {CHOSEN: found.chosen} if found.chosen else {}
    rows |= {loss: found.fixed[loss] for loss in found.nearest}
    held = [is_held_out(column) for column in found.columns]
    with style():
        figure, axis = new_figure(width=1.6, height=0.45 + 0.085 * len(rows))
        for place, (name, points) in enumerate(rows.items()):
            colour = COLOURS[1] if name == CHOSEN else COLOURS[0]
            for kept_out, fill in ((False, "none"), (True, colour)):
                shown = [p for p, is_out in zip(points, held, strict=True) if is_out == kept_out]
                looks = {"s": 16, "facecolors": fill, "edgecolors": colour, "linewidths": 0.7}
                axis.scatter(shown, [place] * len(shown), alpha=0.75, **looks)
            mean = statistics.fmean(points)
            axis.plot([mean, mean], [place - 0.35, place + 0.35], color=colour, linewidth=2.2)
        axis.axvline(NEAR, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axis.set_yticks(range(len(rows)), [caption(name) for name in rows])
        axis.set_xscale("symlog", linthresh=NEAR, linscale=0.8)
        ticks = (0, 1, 2, 5, 10, 20, 50)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set_xlim(min(0, *(min(points) for points in rows.values())) - 0.1, None)
        axis.invert_yaxis()
        axis.grid(visible=False, axis="y")
        axis.spines["left"].set_visible(False)
        axis.set_title(f"Points behind the best loss, {len(found.columns)} settings")
        axis.set_xlabel("points; dot: a setting (filled: held out), bar: mean")
    return figure

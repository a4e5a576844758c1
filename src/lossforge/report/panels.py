"""The figures that results have data for, as groups of panels."""

import re
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from ..benchmark.records import Measure, Record
from ..style import caption as shown_name
from ..style import style
from .figures import (
    Seeds,
    ablation,
    cost,
    curves,
    embed,
    forest,
    mean_curve,
    parameter_heatmap,
    ranks,
    scatter,
    shared_limits,
    transition_heatmaps,
)
from .parameters import find_planes
from .results import Column, Results
from .statistics import Difference, rank_losses

LEAST_BALANCES = 3  # fewer make no figure
FEW_LINES = 4  # up to here, all lines of a panel are equally strong
FEW_LOSSES = 2  # up to here, lines are settings and panels are losses
LONGEST = 150  # characters of a file's name, which systems limit to 255 bytes


@dataclass(frozen=True)
class Panel:
    """One figure.

    Args:
        name: Name of its files, without the ending.
        label: A description for screen readers.
        make: A function that draws the figure.
        shares_legend: Whether the panels of its group have one legend, which `make` draws or not
            as its keyword `legend` says.
    """

    name: str
    label: str
    make: Callable[..., Any]
    shares_legend: bool = False

    def draw(self, legend: bool) -> Any:
        """Draw the figure, with the legend of its group if `legend` is True."""
        return self.make(legend=legend) if self.shares_legend else self.make()


@dataclass(frozen=True)
class Group:
    """Panels of one kind.

    Args:
        kind: One word, such as "accuracy".
        title: The heading.
        caption: What the panels show and how to read them.
        panels: The panels.
        runs: The runs they are drawn from.
        names: Names of the lines and the index of their colours, if the panels share a legend.
        strong: Names of the lines that are emphasised; empty if all are equal.
        notes: What is not drawn, and why.
    """

    kind: str
    title: str
    caption: str
    panels: Sequence[Panel]
    runs: Sequence[Record]
    names: Mapping[str, int] = field(default_factory=dict)
    strong: Collection[str] = ()
    notes: Sequence[str] = ()


def figure_groups(
    results: Results,
    measure: Measure = "last",
    *,
    strong: Sequence[str] = (),
    differences: Sequence[Difference] = (),
) -> list[Group]:
    """Return every group of figures that the results have data for.

    Args:
        results: The runs.
        measure: Which accuracy of a run is compared.
        strong: Losses whose curves are emphasised; all if empty.
        differences: Paired differences to one loss, to be drawn with their intervals.
    """
    band = _seeds(results, "the band is one standard deviation")
    learning = partial(_curves, results, strong)
    found = [
        _ranks(results, measure),
        _forests(results, differences),
        learning("accuracy", "Accuracy during training", f"Top-1 test accuracy. {band}"),
        learning(
            "noise_fit",
            "Fitting wrong labels",
            "Share of mislabelled training samples predicted as their wrong label; lower is "
            f"better. {band}",
        ),
        learning(
            "noise_recovered",
            "Recovering true labels",
            "Share of mislabelled training samples predicted as their true class; higher is "
            f"better. {band}",
        ),
        _balance_curves(results),
        _ablation(results, measure),
        _parameters(results, measure),
        _heatmaps(results),
        _embeddings(results),
        _costs(results),
    ]
    return distinct_names([group for group in found if group.panels or group.notes])


def _curves(results: Results, strong: Sequence[str], kind: str, title: str, caption: str) -> Group:
    """Draw curves over the epochs, one panel per setting, on one scale.

    Args:
        results: The runs.
        strong: Losses to emphasise.
        kind: "accuracy", or the name of another metric of an epoch.
        title: The heading.
        caption: What the curves show.
    """
    columns = results.columns
    if kind != "accuracy":  # measured on training samples: the same for every test set
        columns = results.settings
    found: dict[tuple[str, str], Seeds] = {}  # by loss and setting
    used: set[str] = set()
    for column in columns:
        for loss in results.losses:
            runs = [run for run in results.runs(loss, column).values() if not run.failed]
            lines = {run.id: _line(run, kind, column.test) for run in runs}
            lines = {name: line for name, line in lines.items() if _is_curve(line)}
            if lines:
                found[loss, full_label(results, column)] = list(lines.values())
                used.update(lines)
    rows, titles = results.losses, [full_label(results, column) for column in columns]
    if len(results.losses) <= FEW_LOSSES < len(columns):
        rows, titles, strong = titles, rows, ()
        found = {(setting, loss): lines for (loss, setting), lines in found.items()}
    strong = strong if len(rows) > FEW_LINES else ()
    limits = shared_limits([end for lines in found.values() for end in _ends(lines)])
    panels = []
    for name in titles:
        drawn = {row: found[row, name] for row in rows if (row, name) in found}
        if drawn:
            unit = "accuracy (%)" if kind == "accuracy" else "share (%)"
            shared = partial(curves, names=rows, strong=strong, limits=limits)
            make = partial(shared, drawn, title=name, ylabel=unit)
            panels.append(Panel(file_stem(kind, name), f"{title}: {name}", make, True))
    shown = {row for row, _ in found}
    names = {row: place for place, row in enumerate(rows) if row in shown}
    sources = [record for record in results.records if record.id in used]
    return Group(kind, title, caption, panels, sources, names, strong)


def _ends(lines: Seeds) -> Iterator[float]:
    """Yield the ends of the band around the mean."""
    for mean, spread in zip(*mean_curve(lines)[1:], strict=True):
        yield from (mean - spread, mean + spread)


def _is_curve(line: Sequence[float | None]) -> bool:
    """Check whether there are several values, or one value of the only epoch.

    Of metrics that are not accuracies, archives of earlier versions keep the last value only.
    """
    known = [value for value in line if value is not None]
    return len(known) > 1 or (len(known) == 1 and len(line) == 1)


def _line(run: Record, kind: str, test: str) -> list[float | None]:
    if kind == "accuracy":
        return run.curve(test)
    return [epoch.get(kind) for epoch in run.metrics]


def _seeds(results: Results, spread: str = "") -> str:
    """Say what is drawn of several seeds; a single one has no mean and no spread."""
    if len(results.seeds) == 1:
        return "One seed."
    return f"Mean over seeds; {spread}." if spread else "Mean over seeds."


def _balance_curves(results: Results) -> Group:
    """Draw accuracy over the epochs, one panel per family and setting, one line per balance."""
    panels, runs = [], []
    for column in results.columns:
        families: dict[str, dict[tuple[float, float], list[Record]]] = {}
        for loss in results.losses:
            for run in results.runs(loss, column).values():
                if run.balance and not run.failed and _is_curve(run.curve(column.test)):
                    family, *point = run.balance
                    families.setdefault(family, {}).setdefault((point[0], point[1]), []).append(run)
        for family, points in families.items():
            if len(points) < LEAST_BALANCES:
                continue
            lines = {
                f"{lam:g} : {mu:g}": [run.curve(column.test) for run in points[lam, mu]]
                for lam, mu in sorted(points, key=lambda point: -point[0] / (sum(point) or 1))
            }
            label = f"{family}, {full_label(results, column)}"
            make = partial(curves, lines, title=label, ylabel="accuracy (%)")
            name = file_stem("balance", label)
            panels.append(Panel(name, f"Training by balance lam : mu: {label}", make))
            runs += [run for cell in points.values() for run in cell]
    caption = (
        "Top-1 test accuracy for balances lam : mu of target separation and binary reduction; "
        "1 : 0 is target separation alone, 0 : 1 binary reduction alone. "
        + _seeds(results, "the band is one standard deviation")
    )
    return Group("balance", "Training by balance", caption, panels, runs)


def _ablation(results: Results, measure: Measure) -> Group:
    panels, runs = [], []
    for column in results.columns:
        families: dict[str, dict[tuple[float, float], list[float]]] = {}
        used: dict[str, list[Record]] = {}
        for loss in results.losses:
            cell = list(results.runs(loss, column).values())
            found = cell[0].balance if cell else None
            values = list(results.values(loss, column, measure).values())
            if found and values:
                families.setdefault(found[0], {}).setdefault(found[1:], []).extend(values)
                used.setdefault(found[0], []).extend(run for run in cell if not run.failed)
        families = {
            name: points for name, points in families.items() if len(points) >= LEAST_BALANCES
        }
        runs += [run for name in families for run in used[name]]
        if families:
            label = full_label(results, column)
            make = partial(ablation, families, title=label)
            name = file_stem("ablation", label)
            panels.append(Panel(name, f"Balance of the two terms: {label}", make))
    bars = _seeds(results, "the bars are one standard deviation")
    caption = f"Accuracy against the balance lam : mu of the two terms. {bars}"
    return Group("ablation", "Balance of the two terms", caption, panels, runs)


def _parameters(results: Results, measure: Measure) -> Group:
    panels, runs = [], []
    for column in results.columns:
        for plane in find_planes(results, column):
            values = {
                place: list(results.values(loss, column, measure).values())
                for place, loss in plane.rows.items()
            }
            label = f"{plane.family}, {full_label(results, column)}"
            make = partial(parameter_heatmap, values, names=(plane.x, plane.y), title=label)
            name = file_stem("parameters", label)
            panels.append(Panel(name, f"Accuracy over two parameters: {label}", make))
            runs += [r for loss in plane.rows.values() for r in results.runs(loss, column).values()]
    what = "Accuracy (%) over two parameters of a loss; empty: not run or failed."
    caption = f"{what} {_seeds(results)}"
    return Group("parameters", "Parameters", caption, panels, runs)


def _ranks(results: Results, measure: Measure) -> Group:
    ranking = rank_losses(results, measure)
    caption = (
        "Mean ranks of the losses over the settings. Losses whose bars do not overlap differ "
        "significantly (Nemenyi's test, 5 %)."
    )
    panels = []
    if ranking:
        panels = [Panel("ranks", "Mean ranks of the losses", partial(ranks, ranking))]
    return Group("ranks", "Ranks", caption, panels, results.records)


def _forests(results: Results, differences: Sequence[Difference]) -> Group:
    """Draw the differences to one loss, one panel per setting, on one scale."""
    panels, runs = [], []
    ends = [end for one in differences for end in (one.mean, one.low, one.high) if end is not None]
    limits = shared_limits([0.0, *ends])
    means: dict[str, list[float]] = {}
    for one in differences:
        means.setdefault(one.loss, []).append(one.mean)
    best_first = sorted(means, key=lambda loss: -statistics.fmean(means[loss]))
    for column in results.columns:
        here = [one for one in differences if one.column == column]
        here.sort(key=lambda one: best_first.index(one.loss))
        if here:
            other, label = here[0].other, full_label(results, column)
            intervals = {one.loss: (one.mean, one.low, one.high) for one in here}
            xlabel = f"points above {shown_name(other)}"
            make = partial(forest, intervals, title=label, xlabel=xlabel, limits=limits)
            name = file_stem("difference", f"{other} {label}")
            panels.append(Panel(name, f"Differences to {other}: {label}", make))
            names = [other, *intervals]
            runs += [run for loss in names for run in results.runs(loss, column).values()]
    caption = (
        "For each seed, all losses had the same initial weights, noisy labels and batch order, so "
        "runs are compared in pairs: the mean difference and its 95 % interval. Green: the "
        "interval lies above 0; red: below; grey: it contains 0."
    )
    return Group("forest", "Differences", caption, panels, runs)


def _heatmaps(results: Results) -> Group:
    panels, runs = [], []
    for column in results.settings:
        cells = [run for loss in results.losses for run in results.runs(loss, column).values()]
        run = next((run for run in cells if run.transition and run.noise_rate), None)
        if run:
            label = setting_label(results, column)
            make = partial(_draw_heatmap, run.transition, label)
            name = file_stem("transition", label)
            panels.append(Panel(name, f"Transition matrix: {label}", make))
            runs.append(run)
    caption = "Labels given (columns) to the true classes (rows) in the training data of one run."
    return Group("transition", "Label noise", caption, panels, runs)


def _draw_heatmap(counts: Any, label: str) -> Any:
    matrix = torch.tensor(counts, dtype=torch.float64)
    with style():
        return transition_heatmaps({label: matrix / matrix.sum(1, keepdim=True).clamp(min=1)})


def _embeddings(results: Results) -> Group:
    panels, runs, notes = [], [], []
    for column in results.settings:
        for loss in results.losses:
            label = f"{loss}, {setting_label(results, column)}"
            run, points, refused = _first_embedding(results.runs(loss, column))
            notes += [f"Not drawn: {label}, {reason}" for reason in refused]
            if run:
                make = partial(scatter, *points, title=label)
                panels.append(Panel(file_stem("tsne", label), f"t-SNE of features: {label}", make))
                runs.append(run)
    caption = (
        "t-SNE of the features of test samples, coloured by true class; one seed. Distances "
        "between clusters mean little in such plots."
    )
    return Group("tsne", "Learnt features", caption, panels, runs, notes=notes)


def _first_embedding(cell: dict[int, Record]) -> tuple[Record | None, Any, list[str]]:
    """Return the first run, by seed, that can be embedded, its points, and why others cannot."""
    refused = []
    for seed, run in sorted(cell.items()):
        path = run.folder / "features.npz" if run.folder else None
        kept = path is not None and path.exists()
        if run.failed:  # its features are missing or meaningless
            if kept or run.spec.get("keep_features"):
                refused.append(f"seed {seed} failed: {run.failed}")
        elif path is not None and kept:
            try:
                return run, embed(path), refused
            except ValueError as error:
                refused.append(f"seed {seed}: {error}")
    return None, None, refused


def _costs(results: Results) -> Group:
    panels = []
    for data in results.data:
        seconds: dict[str, list[float]] = {}
        columns = [column for column in results.columns if column.data == data]
        for column in columns:
            for loss in results.losses:
                for run in results.runs(loss, column).values():
                    seconds.setdefault(loss, []).extend(run.about.get("epoch_seconds", []))
        seconds = {loss: seconds[loss] for loss in results.losses if seconds.get(loss)}
        if seconds:
            make = partial(cost, seconds, title=data)
            panels.append(Panel(file_stem("cost", data), f"Time per epoch on {data}", make))
    caption = (
        "Time per epoch, evaluation included, as measured in these runs; runs on one machine slow "
        "each other down."
    )
    return Group("cost", "Cost", caption, panels, results.records)


def full_label(results: Results, column: Column) -> str:
    """Label a column, with its data set if there are several."""
    return f"{column.data}, {column.label}" if len(results.data) > 1 else column.label


def setting_label(results: Results, column: Column) -> str:
    """Label a column's setting whatever the test set, with its data set if there are several."""
    return f"{column.data}, {column.setting}" if len(results.data) > 1 else column.setting


def file_stem(kind: str, label: str) -> str:
    """Make a file name without its ending."""
    words = f"{kind} {label}".lower().replace("+", " plus ")  # BEF+ is not BEF
    return re.sub(r"[^a-z0-9.]+", "-", words)[:LONGEST].strip("-.")


def distinct_names(groups: Sequence[Group]) -> list[Group]:
    """Number panels of equal names, so that no file is overwritten.

    Different labels may give one name: "a=8" and "a=-8" do.
    """
    taken = {panel.name for group in groups for panel in group.panels}
    used: set[str] = set()
    found = []
    for group in groups:
        panels = []
        for panel in group.panels:
            name, count = panel.name, 1
            while name in used or (count > 1 and name in taken):
                count += 1
                name = f"{panel.name}-{count}"
            used.add(name)
            panels.append(replace(panel, name=name))
        found.append(replace(group, panels=panels))
    return found

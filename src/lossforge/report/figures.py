"""Every figure that some results allow."""

from functools import partial
from typing import Any

import torch

from ..benchmark.records import Measure, Record
from .ablation import ablation, balance
from .bars import cost, ranks
from .embedding import embed, scatter
from .group import Group, Panel, distinct, full_label, setting_label, stem
from .heatmaps import transition_heatmaps
from .progress import curve_group
from .results import Results
from .statistics import rank_losses
from .style import style

BALANCES = 3  # of the two terms, from which on their figure says something


def figure_groups(results: Results, measure: Measure = "last") -> list[Group]:
    """All groups of figures that the results have the numbers for."""
    band = "Mean over seeds; the band is one standard deviation."
    found = [
        curve_group(results, "accuracy", "Accuracy while training", f"Top-1 test accuracy. {band}"),
        curve_group(
            results,
            "noise_fit",
            "Learning the noise",
            "Share of the mislabelled training samples that the network predicts as their wrong "
            f"label: lower is better. {band}",
        ),
        curve_group(
            results,
            "noise_recovered",
            "Seeing through the noise",
            "Share of the mislabelled training samples that the network predicts as their true "
            f"class: higher is better. {band}",
        ),
        _ablation(results, measure),
        _ranks(results, measure),
        _heatmaps(results),
        _embeddings(results),
        _costs(results),
    ]
    return distinct([group for group in found if group.panels or group.notes])


def _ablation(results: Results, measure: Measure) -> Group:
    panels, runs = [], []
    for column in results.columns:
        families: dict[str, dict[tuple[float, float], list[float]]] = {}
        for loss in results.losses:
            cell = list(results.runs(loss, column).values())
            found = balance(cell[0].spec["expression"], cell[0].classes) if cell else None
            values = list(results.values(loss, column, measure).values())
            if found and values:
                families.setdefault(found[0], {}).setdefault(found[1:], []).extend(values)
                runs += cell
        families = {name: points for name, points in families.items() if len(points) >= BALANCES}
        if families:
            label = full_label(results, column)
            draw = partial(lambda a, b, legend: ablation(a, title=b, legend=True), families, label)
            panels.append(Panel(stem("ablation", label), f"Balance of the terms: {label}", draw))
    caption = "Accuracy against the balance lam : mu of the two terms; bars: standard deviation."
    return Group("ablation", "Balance of the two terms", caption, panels, runs if panels else [])


def _ranks(results: Results, measure: Measure) -> Group:
    ranking = rank_losses(results, measure)
    caption = (
        "Mean ranks of the losses over the settings. Two losses whose bars do not overlap differ "
        "at 5 % by Nemenyi's test."
    )
    panels = []
    if ranking:
        panels = [Panel("ranks", "Mean ranks of the losses", lambda legend: ranks(ranking))]
    return Group("ranks", "Ranks", caption, panels, results.records)


def _heatmaps(results: Results) -> Group:
    panels, runs = [], []
    for column in {column.key: column for column in results.columns}.values():
        cells = [run for loss in results.losses for run in results.runs(loss, column).values()]
        run = next((run for run in cells if run.transition and run.noise_rate), None)
        if run:
            label = setting_label(results, column)
            draw = partial(_draw_heatmap, run.transition, label)
            panels.append(Panel(stem("transition", label), f"Transition matrix: {label}", draw))
            runs.append(run)
    caption = "How true classes (rows) were given labels (columns) in the training data of a run."
    return Group("transition", "The noise itself", caption, panels, runs)


def _draw_heatmap(counts: Any, label: str, legend: bool) -> Any:
    matrix = torch.tensor(counts, dtype=torch.float64)
    with style():
        return transition_heatmaps({label: matrix / matrix.sum(1, keepdim=True).clamp(min=1)})


def _embeddings(results: Results) -> Group:
    panels, runs, notes = [], [], []
    for column in {column.key: column for column in results.columns}.values():
        for loss in results.losses:
            label = f"{loss}, {setting_label(results, column)}"
            run, points, refused = _first_embedding(results.runs(loss, column))
            notes += [f"Not drawn: {label}, {reason}" for reason in refused]
            if run:
                draw = partial(_draw_embedding, points, label)
                panels.append(Panel(stem("tsne", label), f"t-SNE of features: {label}", draw))
                runs.append(run)
    caption = (
        "t-SNE of the features of test samples, coloured by their true class; one seed. "
        "Distances between clusters mean little in such pictures."
    )
    return Group("tsne", "Learnt features", caption, panels, runs, notes=notes)


def _first_embedding(cell: dict[int, Record]) -> tuple[Record | None, Any, list[str]]:
    """The first run by seed whose features can be drawn, their places, and why not those before."""
    refused = []
    for seed, run in sorted(cell.items()):
        path = run.folder / "features.npz" if run.folder else None
        kept = path is not None and path.exists()
        if run.failed:  # features that were asked for are missing, or mean nothing
            asked = kept or run.spec.get("keep_features")
            refused += [f"seed {seed} broke off: {run.failed}"] if asked else []
        elif path is not None and kept:
            try:
                return run, embed(path), refused
            except ValueError as error:
                refused.append(f"seed {seed}: {error}")
    return None, None, refused


def _draw_embedding(points: tuple[Any, Any], label: str, legend: bool) -> Any:
    return scatter(*points, title=label)


def _costs(results: Results) -> Group:
    panels = []
    for data in results.data:
        seconds: dict[str, list[float]] = {}
        for column in results.columns:
            for loss in results.losses if column.data == data else ():
                for run in results.runs(loss, column).values():
                    seconds.setdefault(loss, []).extend(_epoch_seconds(run))
        seconds = {loss: seconds[loss] for loss in results.losses if seconds.get(loss)}
        if seconds:
            draw = partial(lambda a, b, legend: cost(a, title=b), seconds, data)
            panels.append(Panel(stem("cost", data), f"Time per epoch on {data}", draw))
    caption = (
        "Time of an epoch, evaluation included, as it was in these runs: runs that shared a "
        "machine slow each other down."
    )
    return Group("cost", "Cost", caption, panels, results.records)


def _epoch_seconds(run: Record) -> list[float]:
    times = run.about.get("epoch_seconds") or []
    return list(times) if isinstance(times, list) else [float(times)]

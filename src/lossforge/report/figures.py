"""The figures of a report, each drawn from plain numbers."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import extra
from ..style import COLOURS, INK, MUTED, caption, look, new_figure, style
from .statistics import Ranking

Balance = tuple[float, float]
Seeds = Sequence[Sequence[float | None]]
Limits = tuple[float, float]
Interval = tuple[float, float | None, float | None]  # mean, low, high
MARGIN = 0.04  # of an axis, beyond its values
TONES = {"better": COLOURS[2], "worse": COLOURS[3]}
ROW_NAME = 30  # letters of a name beside its row, which leave half of a panel to the row
MOST_POINTS = 2000  # of an embedding: more take minutes and show no more


def curves(
    lines: Mapping[str, Seeds],
    *,
    title: str,
    ylabel: str,
    names: Sequence[str] | None = None,
    legend: bool = True,
    strong: Collection[str] = (),
    limits: Limits | None = None,
) -> Any:
    """Draw values over the epochs: per name a mean over seeds and a band of one deviation.

    Args:
        lines: Values after every epoch, for every seed, by name.
        title: Title of the panel.
        ylabel: Label of the values.
        names: All names of the report in order, so that each keeps its colour everywhere.
        legend: Whether to list the names below.
        strong: Names to emphasise: the others are faint, without a band. All are equal if empty.
        limits: Ends of the axis of values, shared by several panels.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    if not lines:
        raise ValueError("lines must hold at least one name, got none")
    with style():
        rows = math.ceil(len(lines) / 4) if legend else 0
        figure, axis = new_figure(height=1 + 0.07 * rows)
        for name, seeds in lines.items():
            faint = bool(strong) and name not in strong
            _draw_curve(axis, name, seeds, names or list(lines), faint)
        axis.set_title(caption(title))
        axis.set_xlabel("epoch")
        axis.set_ylabel(ylabel)
        axis.margins(x=0.01)
        if limits:
            axis.set_ylim(limits)
        axis.xaxis.get_major_locator().set_params(integer=True)
        if legend:
            figure.legend(loc="outside lower center", ncols=4, handlelength=1.6, columnspacing=1.2)
    return figure


def _draw_curve(axis: Any, name: str, seeds: Seeds, names: Sequence[str], faint: bool) -> None:
    looks, place = look(name, names), list(names).index(name)
    epochs, means, spreads = mean_curve(seeds)
    weight = {"alpha": 0.3, "linewidth": 1.0, "zorder": 1.9} if faint else {"linewidth": 1.5}
    marker = "o" if len(epochs) == 1 else None
    (line,) = axis.plot(epochs, means, marker=marker, label=caption(name), **weight, **looks)
    line.set_gid(f"series-{place}")  # lets the page highlight one
    if any(spreads) and not faint:
        low, high = (
            [m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1)
        )
        band = axis.fill_between(epochs, low, high, color=looks["color"], alpha=0.16, linewidth=0)
        band.set_gid(f"band-{place}")


def mean_curve(seeds: Seeds) -> tuple[list[int], list[float], list[float]]:
    """Return the epochs that have a value, the mean over seeds and the standard deviation."""
    epochs, means, spreads = [], [], []
    for epoch, values in enumerate(zip(*seeds, strict=False), start=1):
        known = [value for value in values if value is not None]
        if known:
            epochs.append(epoch)
            means.append(statistics.fmean(known))
            spreads.append(statistics.stdev(known) if len(known) > 1 else 0.0)
    return epochs, means, spreads


def shared_limits(values: Sequence[float]) -> Limits | None:
    """Return the ends of an axis that shows all values; None without values."""
    if not values:
        return None
    low, high = min(values), max(values)
    beyond = MARGIN * (high - low) or 1.0
    return low - beyond, high + beyond


def forest(
    intervals: Mapping[str, Interval], *, title: str, xlabel: str, limits: Limits | None = None
) -> Any:
    """Draw differences with their intervals, one row per name, and a line at no difference.

    Green intervals lie above 0, red ones below it.

    Args:
        intervals: Mean, low and high end by name; without an interval, the mean alone is drawn.
        title: Title of the panel.
        xlabel: Label of the differences.
        limits: Ends of the axis, shared by several panels.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=0.35 + 0.09 * len(intervals))
        axis.axvline(0, color=MUTED, linewidth=1)
        for place, (mean, low, high) in enumerate(intervals.values()):
            verdict = "better" if (low or 0) > 0 else "worse" if (high or 0) < 0 else ""
            colour = TONES.get(verdict, MUTED)
            if low is not None and high is not None:
                axis.plot([low, high], [place, place], color=colour, linewidth=1.6)
            axis.plot([mean], [place], "o", color=colour, markersize=5)
        axis.set_yticks(range(len(intervals)), [caption(name, ROW_NAME) for name in intervals])
        _plain(axis, caption(title), xlabel)
        axis.margins(y=0.08)
        if limits:
            axis.set_xlim(limits)
    return figure


def ablation(families: Mapping[str, Mapping[Balance, Sequence[float]]], *, title: str) -> Any:
    """Draw accuracy against the share of target separation, one line per family.

    Args:
        families: For every family, accuracies in % over seeds by (lam, mu).
        title: Title of the panel.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=1.07)
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
        axis.set_title(caption(title))
        axis.set_xlabel("lam : mu (target separation : binary reduction)")
        axis.set_ylabel("accuracy (%)")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def parameter_heatmap(
    values: Mapping[tuple[float, float], Sequence[float]], *, names: tuple[str, str], title: str
) -> Any:
    """Draw mean accuracy over two parameters, x to the right and y upwards, one cell per pair.

    Args:
        values: Accuracies in % over seeds by (x, y); a pair that is missing or has none is empty.
        names: Names of x and y.
        title: Title of the panel.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    means = {place: statistics.fmean(cell) for place, cell in values.items() if cell}
    xs, ys = (sorted(set(side)) for side in zip(*values, strict=True))
    table = [[means.get((x, y), math.nan) for x in xs] for y in ys]
    with style():
        figure, axis = new_figure(height=0.5 + 0.14 * len(ys))
        image = axis.imshow(table, cmap="Blues", origin="lower", aspect="auto")
        axis.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
        axis.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
        axis.set_xlabel(caption(names[0]))
        axis.set_ylabel(caption(names[1]))
        axis.set_title(caption(title))
        axis.grid(visible=False)
        for (x, y), mean in means.items():
            colour = "white" if image.norm(mean) > 0.6 else "black"
            place = xs.index(x), ys.index(y)
            axis.text(*place, f"{mean:.1f}", ha="center", va="center", fontsize=8, color=colour)
    return figure


def ranks(ranking: Ranking) -> Any:
    """Draw mean ranks with bars of half the critical difference to either side.

    Losses whose bars do not overlap differ significantly (Nemenyi, 5 %).

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=0.35 + 0.09 * len(ranking.ranks))
        names = [caption(name, ROW_NAME) for name in ranking.ranks]
        means = list(ranking.ranks.values())
        places = range(len(names))  # two long names may be cut to the same
        looks = {"color": COLOURS[0], "ecolor": MUTED, "elinewidth": 1.2, "capsize": 3}
        axis.errorbar(means, places, xerr=ranking.critical / 2, fmt="o", markersize=5, **looks)
        axis.set_yticks(places, names)
        _plain(axis, f"Mean rank over {ranking.settings} settings", "mean rank, 1 is best")
        axis.margins(y=0.08)
    return figure


def cost(seconds: Mapping[str, Sequence[float]], *, title: str) -> Any:
    """Draw the median time per epoch of every loss.

    Args:
        seconds: Times of epochs, by loss.
        title: Title of the panel.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=0.35 + 0.09 * len(seconds))
        medians = [statistics.median(times) for times in seconds.values()]
        places = range(len(seconds))  # two long names may be cut to the same
        bars = axis.barh(places, medians, color=COLOURS[0], height=0.6)
        axis.set_yticks(places, [caption(name, ROW_NAME) for name in seconds])
        axis.bar_label(bars, [f"{value:.3g}" for value in medians], padding=3, color=INK)
        _plain(axis, caption(title), "seconds per epoch, median")
        axis.margins(x=0.12)
    return figure


def _plain(axis: Any, title: str, xlabel: str) -> None:
    axis.set_title(title)
    axis.set_xlabel(xlabel)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)


def transition_heatmaps(
    matrices: Mapping[str, Tensor], classes: Sequence[str] | None = None
) -> Any:
    """Draw transition matrices side by side: rows are true labels, columns given labels.

    Args:
        matrices: The matrices by caption.
        classes: Class names for the axes; class numbers by default.

    Returns:
        A `matplotlib.figure.Figure`; save it with its `savefig`.
    """
    if not matrices:
        raise ValueError("matrices must hold at least one matrix, got none")
    figure = extra("matplotlib.figure", "bench").Figure(
        figsize=(3.6 * len(matrices) + 0.6, 4.2), layout="constrained"
    )
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axis, (name, T) in zip(axes, matrices.items(), strict=True):
        image = axis.imshow(T.numpy(force=True), cmap="Blues", vmin=0, vmax=1)
        axis.grid(visible=False)
        axis.set_title(caption(name), fontsize=11)
        axis.set_xlabel("given label")
        _name_classes(axis, len(T), classes)
        if len(T) <= 20:
            _write_percentages(axis, T)
    axes[0].set_ylabel("true label")
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02, label="share of the true class")
    return figure


def _name_classes(axis: Any, num_classes: int, classes: Sequence[str] | None) -> None:
    if num_classes > 20:
        return  # matplotlib chooses the ticks
    names = [caption(name) for name in classes or map(str, range(num_classes))]
    axis.set_xticks(range(num_classes), names, rotation=90 if classes else 0, fontsize=8)
    axis.set_yticks(range(num_classes), names, fontsize=8)


def _write_percentages(axis: Any, T: Tensor) -> None:
    for i, row in enumerate(T.tolist()):
        for j, share in enumerate(row):
            if share >= 0.005:
                colour = "white" if share > 0.5 else "black"
                text = f"{100 * share:.0f}"
                axis.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)


def embed(path: Path, most: int = MOST_POINTS) -> tuple[Any, Any]:
    """Embed stored features in the plane by t-SNE; the same file gives the same positions.

    Args:
        path: A file `features.npz` with the arrays `features` and `labels`.
        most: The most samples to use, spread evenly over the file.

    Returns:
        Positions of shape (N, 2), and the N labels.

    Raises:
        ValueError: If the file is damaged, or the features are not finite or all equal, as after
            divergence.
    """
    numpy = extra("numpy", "bench")
    try:
        with path.open("rb") as file, numpy.load(file) as arrays:
            features, labels = arrays["features"], arrays["labels"]
        if labels.shape != features.shape[:1]:
            raise ValueError(f"{len(features)} rows of features and {labels.shape} labels")
    except Exception as error:  # numpy.load raises anything on a damaged file
        raise ValueError(f"{path.name} is damaged: {error!r}") from error
    chosen = numpy.unique(numpy.linspace(0, len(features) - 1, min(most, len(features)), dtype=int))
    features = _scaled(features[chosen].reshape(len(chosen), -1))
    method = extra("sklearn.manifold", "bench").TSNE(
        init="pca" if features.shape[1] >= 2 else "random",
        perplexity=min(30.0, max(1.0, (len(chosen) - 1) / 3)),
        random_state=0,
    )
    # one thread: sums are the same everywhere, and cores are not oversubscribed
    with extra("threadpoolctl", "bench").threadpool_limits(1):
        return method.fit_transform(features), labels[chosen]


def _scaled(features: Any) -> Any:
    """Scale features to within 1 of the first; t-SNE depends on relative distances only."""
    numpy = extra("numpy", "bench")
    features = features.astype("float64")  # squares of huge float32 stay finite
    if not numpy.isfinite(features).all():
        raise ValueError("features must be finite, got NaN or infinity")
    features = features - features[0]
    largest = numpy.abs(features).max()
    if largest == 0:  # t-SNE would divide by zero and crash the process
        raise ValueError("features must differ between samples, got the same for all")
    return (features / largest).astype("float32")


def scatter(positions: Any, labels: Any, *, title: str) -> Any:
    """Draw points coloured by class.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=1.2)
        colours = [COLOURS[int(label) % len(COLOURS)] for label in labels]
        # thousands of points take less space as pixels than as shapes
        axis.scatter(
            positions[:, 0],
            positions[:, 1],
            s=7,
            c=colours,
            alpha=0.8,
            linewidths=0,
            rasterized=len(labels) > 300,
        )
        axis.set_title(caption(title))
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set_visible(False)
    return figure

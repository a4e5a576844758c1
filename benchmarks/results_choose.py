"""The table of docs/choose.md on frozen features, from results/cifar10.jsonl.gz."""

import statistics
from pathlib import Path

from results_choice import Behind, behind
from results_data import WHOLE, listed, provisional, read_archive, results_of

from lossforge.report.formats import markdown
from lossforge.report.results import Results
from lossforge.report.tables import Field, Sheet

PAGE, GRID = "choose.md", WHOLE
SHOWN = (
    *("clean", "symmetric:0.4", "symmetric:0.6", "symmetric:0.8"),
    *("asymmetric:0.4", "instance:0.4", "instance:0.6", "human:worst"),
)


def make_section(folder: Path) -> str:
    """Write the section; empty without an archive.

    Args:
        folder: The folder of the archives.
    """
    archive = read_archive(folder, GRID)
    if archive is None:
        return ""
    results = results_of(archive.records)
    noisy = behind(results.narrow(columns=[c for c in results.columns if c.noise != "clean"]))
    sheet = markdown(_accuracies(results, noisy)) if noisy else ""
    return "\n".join([*provisional(archive), sheet]).rstrip() + "\n"


def _accuracies(results: Results, noisy: Behind) -> Sheet:
    """Show some settings, and how far each loss is behind the best in all noisy ones."""
    shown = [column for column in results.columns if column.noise in SHOWN]
    found = [results.means(column) for column in shown]
    rows = []
    for loss in noisy.nearest:
        points = noisy.fixed[loss]
        fields = [_accuracy(cells.get(loss), max(cells.values(), default=0.0)) for cells in found]
        rows.append(
            [
                *fields,
                Field(f"{statistics.fmean(points):.1f}"),
                Field(f"{max(points):.1f}", aside=noisy.worst(points).setting),
            ]
        )
    seeds = listed([str(seed) for seed in results.seeds])
    return Sheet(
        f"A head on patch features of all of CIFAR-10: test accuracy (%), mean of seeds {seeds}",
        ["loss", *(column.setting for column in shown), "behind the best, mean", "at most"],
        noisy.nearest,
        rows,
        [
            "Last epoch; the smallest mean distance is first. Bold: the best. Behind the best: in "
            f"points, over all {len(noisy.columns)} kinds of noise."
        ],
    )


def _accuracy(value: float | None, best: float) -> Field:
    if value is None:
        return Field("–")
    return Field(f"{value:.1f}", bold=round(value, 1) == round(best, 1))

"""The section on tuned losses, from results/tuned.jsonl."""

import statistics
from pathlib import Path
from typing import Any

from results_data import OURS, bracketed, folded

from lossforge.benchmark.integrity import parse_object
from lossforge.benchmark.statistics import interval
from lossforge.report.formats import markdown
from lossforge.report.results import noise_label
from lossforge.report.tables import Field, Sheet

FILE = "tuned.jsonl"
FIELDS = ("data", "noise", "loss", "trials", "expression", "default", "tuned")


def read_tuned(path: Path) -> list[dict[str, Any]]:
    """Read one dictionary per loss and setting; nothing if the file does not exist."""
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = parse_object(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is damaged: {error}") from None
        missing = [name for name in FIELDS if name not in row]
        if missing:
            raise ValueError(f"{path}, line {number} has no {', '.join(missing)}")
        rows.append(row)
    return rows


def tuned_section(path: Path) -> list[str]:
    """Write the section; nothing without data."""
    rows = read_tuned(path)
    if not rows:
        return []
    settings = list(dict.fromkeys((row["data"], row["noise"]) for row in rows))
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    cells = {(row["loss"], row["data"], row["noise"]): row for row in rows}
    columns = []
    for data, noise in settings:
        found = [cells.get((loss, data, noise)) for loss in losses]
        means = [round(statistics.fmean(row["tuned"]), 1) if row else None for row in found]
        best = sorted((mean for mean in means if mean is not None), reverse=True)[:2]
        bold = [mean is not None and len(best) > 1 and mean >= best[-1] for mean in means]
        columns.append([_cell(row, marked) for row, marked in zip(found, bold, strict=True)])
    gains = [[row for row in rows if row["loss"] == loss] for loss in losses]
    columns.append([Field(_gain(found)) for found in gains])
    trials = sorted({row["trials"] for row in rows})
    budget = str(trials[0]) if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    names = [f"{loss} → {loss}+" if loss in OURS else loss for loss in losses]
    head = ["loss", *(f"{data}, {noise_label(noise)}" for data, noise in settings), "mean gain"]
    title = "Test accuracy (%) of the last epoch, default → tuned, mean over seeds"
    notes = [
        "Bold: the two best after tuning. Mean gain: tuned minus default, paired by seed, "
        "averaged over settings; the 95 % interval is over settings."
    ]
    sheet = Sheet(title, head, names, list(zip(*columns, strict=True)), notes)
    return [
        "## Tuned",
        "",
        f"Every loss had the same budget, {budget} trials per setting, scored on held-out noisy "
        "labels only; the test set was used once, at the end, on seeds that the search had not "
        "used. BEF+ and BQF+ are the tuned BEF and BQF.",
        "",
        *folded("All tuned accuracies", [markdown(sheet), ""]),
    ]


def _cell(row: dict[str, Any] | None, bold: bool) -> Field:
    if row is None:
        return Field("–")
    return Field(
        f"{statistics.fmean(row['default']):.1f} → {statistics.fmean(row['tuned']):.1f}", bold=bold
    )


def _gain(rows: list[dict[str, Any]]) -> str:
    means = [
        statistics.fmean(b - a for a, b in zip(row["default"], row["tuned"], strict=True))
        for row in rows
    ]
    return bracketed(statistics.fmean(means), *interval(means))

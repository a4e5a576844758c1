"""The section of docs/methods.md on methods with losses, from results/methods.jsonl.gz."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results_data import Archive, bracketed, listed, read_archive

from lossforge.benchmark.grid import read_grid
from lossforge.benchmark.records import Record
from lossforge.benchmark.statistics import interval, paired_differences
from lossforge.report.formats import markdown
from lossforge.report.results import noise_label
from lossforge.report.tables import Field, Sheet

GRID, COSTS = "methods", "methods-cost.json"
PAGE = "methods.md"
PLAIN, CE = "plain", "CE"
MEASURE = "last"
FEWEST = 3  # pairs that get an interval; of two it says nothing, or too much if they agree by luck
# settings whose forget rate was estimated; in others it is the default of Co-teaching's code
AUDITED = (
    ("digits", "symmetric:0.6"),
    ("digits", "asymmetric:0.4"),
    ("digits", "instance:0.4"),
    ("clinc150", "symmetric:0.6"),
    ("banking77", "symmetric:0.6"),
)


@dataclass(frozen=True)
class Runs:
    """Accuracies of the last epoch by data set, noise, method and loss, for each seed."""

    cells: dict[tuple[str, str, str, str], dict[int, float]]
    methods: list[str]
    losses: list[str]

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Runs":
        """Arrange records; a run that diverged has no accuracy."""
        cells: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for record in records:
            spec, value = record.spec, record.measure(MEASURE)
            key = spec["data"], spec["noise"], short_name(record), spec["loss"]
            if value is not None:
                cells.setdefault(key, {})[spec["seed"]] = value
        methods = list(dict.fromkeys(key[2] for key in cells))
        return cls(cells, methods, list(dict.fromkeys(key[3] for key in cells)))

    def settings(self, data: str) -> list[str]:
        """Noises of a data set with a finished run."""
        return list(dict.fromkeys(key[1] for key in self.cells if key[0] == data))

    def differences(
        self, one: tuple[str, str, str, str], other: tuple[str, str, str, str]
    ) -> list[float]:
        """Differences of two cells, seed by seed."""
        return paired_differences(self.cells.get(one, {}), self.cells.get(other, {}))


def short_name(record: Record) -> str:
    """Name of a record's method without its options."""
    return str(record.spec.get("method", PLAIN)).partition("(")[0]


def make_section(folder: Path) -> str:
    """Write the section; empty without an archive.

    Args:
        folder: The folder of the archives.
    """
    archive = read_archive(folder, GRID)
    if archive is None:
        return ""
    runs = Runs.of(archive.records)
    lines = [*_state(archive), markdown(_digest(runs)), "", *_protocol(archive)]
    for data in dict.fromkeys(key[0] for key in runs.cells):
        lines += [markdown(_accuracies(runs, data)), ""]
        lines += [markdown(_gains(runs, data)), "", *_verdict(runs, data)]
    return "\n".join([*lines, *_costs(folder / COSTS)]).rstrip() + "\n"


def _state(archive: Archive) -> list[str]:
    """Say what is missing, before anything else."""
    if not archive.unfinished:
        return []
    done = {record.id for record in archive.records}
    missing: dict[str, int] = {}
    planned: dict[str, int] = {}
    for spec in read_grid(f"results/{GRID}").runs():
        planned[spec.data] = planned.get(spec.data, 0) + 1
        missing[spec.data] = missing.get(spec.data, 0) + (spec.id not in done)
    parts = [f"{missing[data]} of {planned[data]} on {data}" for data in planned if missing[data]]
    return [
        f"**Unfinished: {archive.unfinished} are missing, {listed(parts)}.** "
        f'`make results ARGS="{GRID}"` goes on with them.',
        "",
    ]


def _digest(runs: Runs) -> Sheet:
    """The best of the losses alone, of the methods alone and of both, for each setting."""
    columns = {  # with a method, with a robust loss
        "plain, CE": (False, False),
        "a loss alone": (False, True),
        "a method alone": (True, False),
        "both": (True, True),
    }
    seeds = max(map(len, runs.cells.values()), default=0)
    names, rows = [], []
    for data, noise in dict.fromkeys(key[:2] for key in runs.cells):
        best: dict[tuple[bool, bool], tuple[float, str]] = {}
        for (where, what, method, loss), cell in runs.cells.items():
            if (where, what) == (data, noise) and len(cell) == seeds:
                name = " + ".join(one for one in (method, loss) if one not in (PLAIN, CE))
                kind, found = (method != PLAIN, loss != CE), (statistics.fmean(cell.values()), name)
                best[kind] = max(best.get(kind, found), found, key=lambda one: one[0])
        most = max((mean for mean, _ in best.values()), default=0.0)
        names.append(f"{data}, {noise_label(noise)}")
        rows.append([_named(best.get(kind), most) for kind in columns.values()])
    notes = [
        f"Bold: best of the setting. Means of {seeds} seeds, last epoch; combinations with fewer "
        "are left out. Each column shows its best combination, chosen by test accuracy afterwards, "
        "which favours the last two: they have the most combinations."
    ]
    return Sheet("In short: test accuracy (%)", ["setting", *columns], names, rows, notes)


def _named(found: tuple[float, str] | None, best: float) -> Field:
    """Format an accuracy with the combination that reached it."""
    if found is None:
        return Field("–")
    mean, name = found
    return Field(f"{mean:.1f} {name}".rstrip(), bold=round(mean, 1) == round(best, 1))


def _protocol(archive: Archive) -> list[str]:
    """Say how the runs were made, and what Co-teaching was told."""
    rates: dict[tuple[str, str], tuple[str, list[float]]] = {}
    for record in archive.records:
        spec = record.spec
        if short_name(record) == "coteaching" and record.noise_rate is not None:
            rate = str(spec["method"]).partition("forget_rate=")[2].partition(",")[0]
            rates.setdefault((spec["data"], spec["noise"]), (rate, []))[1].append(record.noise_rate)
    told = [
        f"{data}, {noise_label(noise)}: {rate}, "
        f"{'estimated' if (data, noise) in AUDITED else 'by default'} "
        f"({statistics.fmean(true):.2f})"
        for (data, noise), (rate, true) in rates.items()
    ]
    lines = [
        "Methods with their published options (on text, shares of the epochs), losses with their "
        "published parameters; data, networks and schedules are those of [results.md](results.md). "
        "All runs of a seed have the same noisy labels, initial weights and batch order. Where "
        "there are two networks, the first is tested.",
        "",
    ]
    if told:
        lines += [
            "Co-teaching's forget rate is written into the grid: an estimate of `lossforge audit` "
            "from noisy labels, or the default of the released code, and never the share that is "
            "really wrong, which is in parentheses: "
            f"{'; '.join(told)}.",
            "",
        ]
    failed = [record for record in archive.records if record.failed]
    if failed:
        lines += [f"{len(failed)} runs diverged and count nowhere.", ""]
    return lines


def _accuracies(runs: Runs, data: str) -> Sheet:
    names, rows = [], []
    for noise in runs.settings(data):
        block = [
            [runs.cells.get((data, noise, method, loss), {}) for loss in runs.losses]
            for method in runs.methods
        ]
        means = [statistics.fmean(cell.values()) for row in block for cell in row if cell]
        best = max(means, default=0.0)
        for method, row in zip(runs.methods, block, strict=True):
            names.append(f"{noise_label(noise)}, {method}")
            rows.append([_accuracy(cell, best) for cell in row])
    title = f"{data}: test accuracy (%), last epoch, mean ± std over seeds"
    return Sheet(title, ["noise, method", *runs.losses], names, rows, ["Bold: best of the noise."])


def _accuracy(cell: dict[int, float], best: float) -> Field:
    if not cell:
        return Field("–")
    mean = statistics.fmean(cell.values())
    spread = f" ± {statistics.stdev(cell.values()):.1f}" if len(cell) > 1 else ""
    return Field(f"{mean:.1f}{spread} ({len(cell)})", bold=round(mean, 1) == round(best, 1))


def _gains(runs: Runs, data: str) -> Sheet:
    """What a robust loss adds to a method that is trained with cross entropy."""
    robust = [loss for loss in runs.losses if loss != CE]
    names, rows = [], []
    for noise in runs.settings(data):
        for method in runs.methods:
            names.append(f"{noise_label(noise)}, {method}")
            rows.append([Field(_gain(runs, data, noise, method, loss)) for loss in robust])
    title = f"{data}: what the loss adds to cross entropy with the same method, points"
    notes = [f"Paired by seed, with the 95 % interval of the mean of {FEWEST} seeds or more."]
    return Sheet(title, ["noise, method", *robust], names, rows, notes)


def _gain(runs: Runs, data: str, noise: str, method: str, loss: str) -> str:
    found = runs.differences((data, noise, method, loss), (data, noise, method, CE))
    return bracketed(statistics.fmean(found), *_interval(found)) if found else "–"


def _interval(found: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    return interval(found) if len(found) >= FEWEST else (None, None)


def _verdict(runs: Runs, data: str) -> list[str]:
    """Count where a robust loss adds to a method, and a method to a robust loss."""
    noises = runs.settings(data)
    others = [method for method in runs.methods if method != PLAIN]
    robust = [loss for loss in runs.losses if loss != CE]
    by_loss = [
        runs.differences((data, noise, method, loss), (data, noise, method, CE))
        for noise in noises
        for method in others
        for loss in robust
    ]
    by_method = [
        runs.differences((data, noise, method, loss), (data, noise, PLAIN, loss))
        for noise in noises
        for method in others
        for loss in robust
    ]
    return [
        f"**On {data}, a robust loss in place of cross entropy, under a method other than the "
        f"plain loop, {_counted(by_loss)}. Such a method in place of the plain loop, under a "
        f"robust loss, {_counted(by_method)}.**",
        "",
    ]


def _counted(differences: Sequence[Sequence[float]]) -> str:
    """Say how many intervals lie above 0 and below; too few seeds have none."""
    found = [_interval(one) for one in differences]
    known = [(low, high) for low, high in found if low is not None and high is not None]
    better = sum(low > 0 for low, _ in known)
    worse = sum(high < 0 for _, high in known)
    return f"is better in {better} of {len(known)} comparisons and worse in {worse}"


def _costs(path: Path) -> list[str]:
    """Write the measured cost of a run; nothing without measurements."""
    if not path.is_file():
        return []
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = content["rows"]
    names = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["data"], row["method"]): row for row in rows}
    fields = [
        [field for data in names for field in _cost(cells[data, method], cells[data, PLAIN])]
        for method in methods
    ]
    head = ["method", *(f"{data}, {what}" for data in names for what in ("time", "state"))]
    title = "Cost of a run with CE: processor time (plain = 1), and bytes of a checkpoint"
    notes = [
        f"Time is processor time of one thread, the least of {content['rounds']} rounds in which "
        "the methods alternate, without loading data; the plain loop takes "
        + listed([f"{cells[data, PLAIN]['seconds']:.1f} s on {data}" for data in names])
        + ". The state is what a run keeps between epochs: networks, optimizers, memory. The peak "
        "of a process is mostly torch's own and was not compared."
    ]
    return [markdown(Sheet(title, head, methods, fields, notes)), ""]


def _cost(row: dict[str, Any], plain: dict[str, Any]) -> tuple[Field, Field]:
    ratio = row["seconds"] / plain["seconds"]
    return Field(f"{ratio:.2f}"), Field(f"{row['bytes'] / 1e6:.2f} MB")

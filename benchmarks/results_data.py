"""The archives in results/, and the groups in which their runs are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lossforge.benchmark.archive import unpack
from lossforge.benchmark.records import Measure, Record, paper_results
from lossforge.kernels import COMPOSED
from lossforge.report.results import Column, Results

ROOT = Path(__file__).resolve().parent.parent
ENDING = ".jsonl.gz"
MAIN = ("digits", "digits-pairs", "clinc150", "banking77")  # every loss under every noise
CIFAR, ABLATION, FLATNESS = "cifar10-mini", "ablation", "flatness"
# all of CIFAR-10 as patch features; a part of it at another learning rate, balances, parameters
WHOLE, RATE, BALANCE, PARAMETERS = (
    "cifar10",
    "cifar10-rate",
    "cifar10-balance",
    "cifar10-parameters",
)
EXTREMES = ("breast-cancer", "digits-triples")  # the fewest classes and the most
MANY, MANY_SEARCH = "many-classes", "many-classes-search"  # beyond 150 classes
OURS = ("BEF", "BQF")
# not used in any search for the defaults of BEF and BQF
HELD_OUT_DATA = ("banking77", "breast-cancer")
HELD_OUT_NOISE = ("asymmetric:0.3", "instance:0.6")
MARK = "†"
TEST = "test"
PAGE_MEASURES: tuple[Measure, ...] = ("last", "selected")
Figures = dict[str, Callable[[], Any]]  # functions that draw them, by file name
WORDS = {"last": "last epoch", "selected": "selected epoch"}


@dataclass(frozen=True)
class Archive:
    """The runs of one grid."""

    name: str
    header: dict[str, Any]
    records: list[Record]

    @property
    def command(self) -> str:
        return str(self.header["command"])

    @property
    def unfinished(self) -> str:
        """The number of missing runs in words; empty if none is missing."""
        missing = len(self.header["unfinished"])
        return f"{missing} of {missing + len(self.records)} runs" if missing else ""

    @property
    def core_hours(self) -> float:
        """Total time of the runs times the threads of one run."""
        threads = max(int(record.spec["threads"]) for record in self.records)
        return float(self.header["seconds"]) * threads / 3600


def read_archive(folder: Path, name: str) -> Archive | None:
    """Read the archive of a grid; None if there is none."""
    path = folder / f"{name}{ENDING}"
    return Archive(name, *unpack(path)) if path.is_file() else None


def read_archives(folder: Path) -> dict[str, Archive]:
    """Read all archives of a folder, by name."""
    found = {}
    for path in sorted(folder.glob(f"*{ENDING}")):
        name = path.name.removesuffix(ENDING)
        found[name] = Archive(name, *unpack(path))
    return found


def provisional(archive: Archive) -> list[str]:
    """Warn at the start of a section if runs are missing."""
    if not archive.unfinished:
        return []
    return [f"{archive.unfinished} are not finished: this section is provisional.", ""]


def folded(summary: str, lines: Sequence[str]) -> list[str]:
    """Hide lines until the reader opens them; GitHub and the site both obey."""
    return [f"<details><summary>{summary}</summary>", "", *lines, "</details>", ""]


def main_records(archives: dict[str, Archive]) -> list[Record]:
    """Return the runs by which the losses are ranked."""
    return [record for name in MAIN if name in archives for record in archives[name].records]


def depend_on_noise(records: Sequence[Record]) -> list[str]:
    """Name the losses whose parameters depend on the noise."""
    expressions: dict[tuple[str, int, str], set[str]] = {}
    for record in records:
        key = record.spec["data"], record.classes, record.spec["loss"]
        expressions.setdefault(key, set()).add(record.spec["expression"])
    return list(dict.fromkeys(loss for (*_, loss), found in expressions.items() if len(found) > 1))


def used_kernel(record: Record) -> bool:
    """Whether losses were computed by a kernel; records from before there was one do not say."""
    kernel = record.about.get("kernel")
    return kernel is not None and not kernel.startswith(COMPOSED)


def paper_rows() -> list[dict[str, Any]]:
    """Return the paper's numbers on CIFAR-10, of both of its tables."""
    sources = [found for name in ("cifar10", "idn-human") if (found := paper_results(name))]
    return [row for found in sources for row in found["rows"]]


def results_of(records: Sequence[Record]) -> Results:
    """Group runs, on the test set only, with held-out settings marked."""
    results = Results(records)
    columns = [replace(c, label=label(c)) for c in results.columns if c.test == TEST]
    return results.narrow(columns=columns)


def is_held_out(column: Column) -> bool:
    """Whether a setting was kept out of every search for defaults."""
    return column.data in HELD_OUT_DATA or column.noise in HELD_OUT_NOISE


def label(column: Column) -> str:
    """Label a column."""
    return f"{column.setting} {MARK}" if is_held_out(column) else column.setting


def subsets(results: Results) -> dict[str, Results]:
    """Split results into held-out settings, searched settings, and all."""
    held = [column for column in results.columns if is_held_out(column)]
    searched = [column for column in results.columns if not is_held_out(column)]
    parts = {"held-out": held, "searched": searched, "all": results.columns}
    return {name: results.narrow(columns=columns) for name, columns in parts.items() if columns}


def where(column: Column) -> str:
    """Name a setting in a sentence."""
    return f"{column.data}, {column.setting}"


def signed(value: float) -> str:
    """Format a difference with its sign and one decimal."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0 else text


def bracketed(mean: float, low: float | None, high: float | None) -> str:
    """Format a difference with its interval."""
    if low is None or high is None:
        return signed(mean)
    return f"{signed(mean)} [{signed(low)}, {signed(high)}]"


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

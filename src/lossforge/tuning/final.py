"""The end of a search: the one look at true labels and test sets."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from ..benchmark import RunFolder, RunSpec, execute
from ..benchmark.executors import run_all
from ..benchmark.records import Record, read_record
from ..data.source import PathLike
from ..errors import extra
from .plan import Plan
from .result import Comparison


def compare(
    plan: Plan,
    best: str,
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int = 1,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    on_run: Callable[[int], object] | None = None,
) -> tuple[Comparison, ...]:
    """Train with the best and with the published parameters, by the protocol of the search.

    Runs are those of a benchmark: paired by seed, kept in a folder, and not repeated.

    Args:
        plan: What was searched.
        best: The loss that was found.
        seeds: Of the runs.
        folder: Where they are kept.
        workers: How many are done at a time.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_run: Called with the number of runs done.
    """
    tuned = [_run(plan, f"{plan.loss} tuned", best, seed) for seed in seeds]
    default = [_run(plan, plan.loss, plan.spec.expression, seed) for seed in seeds]
    runs = [run for pair in zip(tuned, default, strict=True) for run in pair]
    if workers > 1:
        run_all("local", folder, runs, workers=workers, data_dir=data_dir)
    for count, run in enumerate(runs):
        if execute(folder, run, data_dir=data_dir, device=device) == "busy":
            path = RunFolder(folder, run).path
            raise ValueError(f"another process is at a final run; {path} shows how far it is")
        if on_run is not None:
            on_run(count + 1)
    records = [[_record(folder, run) for run in group] for group in (tuned, default)]
    tests = dict.fromkeys(test for group in records for one in group for test in one.tests)
    return tuple(_compare(test, seeds, *records) for test in tests)


def _run(plan: Plan, name: str, expression: str, seed: int) -> RunSpec:
    return plan.spec.model_copy(update={"loss": name, "expression": expression, "seed": seed})


def _record(folder: Path, run: RunSpec) -> Record:
    return read_record(RunFolder(folder, run).path)


def _compare(
    test: str, seeds: Sequence[int], tuned: list[Record], default: list[Record]
) -> Comparison:
    ours, theirs = ([record.last(test) for record in group] for group in (tuned, default))
    pairs = [a - b for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    mean = statistics.fmean(pairs) if pairs else None
    low, high = interval(pairs)
    return Comparison(test, tuple(seeds), tuple(ours), tuple(theirs), mean, low, high)


def interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % t interval of a mean; none for fewer than two values."""
    n = len(values)
    if n < 2:
        return None, None
    student = extra("scipy.stats", "bench").t
    half = float(student.ppf(0.975, n - 1)) * statistics.stdev(values) / n**0.5
    return statistics.fmean(values) - half, statistics.fmean(values) + half

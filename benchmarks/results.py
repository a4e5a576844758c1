"""The results of this project: run, pack, check and write them.

run    do all runs of the grids results/*, into runs/results/NAME; finished ones are not repeated
pack   write results/NAME.jsonl.gz from runs/results/NAME; keeps committed runs that are not there
check  compare runs/results/NAME with results/NAME.jsonl.gz
write  write docs/results.md and its figures, and a section each of docs/methods.md and
       docs/choose.md, from results/ only

With --sample N, run and check take N of the committed runs of each grid or a few more, with all
seeds of a setting, the same ones every time, in the folder runs/results/NAME-sample; remove it to
repeat them once more. Committed runs are repeated as they were made, by the C kernel or by torch
operations, since their bits depend on it; others use the kernel.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import results_choose
import results_methods
from results_check import compare
from results_data import ENDING, ROOT, used_kernel
from results_page import write_page
from results_section import replace_section

from lossforge.benchmark import GridSpec, Run, presets, read_grid
from lossforge.benchmark.archive import pack
from lossforge.benchmark.executors import run_all
from lossforge.benchmark.executors.local import processors
from lossforge.benchmark.grid import save_grid
from lossforge.benchmark.records import Grid, Record, read_records
from lossforge.benchmark.run import check_data
from lossforge.cli.bench import progress, say_waiting
from lossforge.kernels.native import SWITCH

PREFIX = "results/"
MOST_BYTES = 5_000_000  # of all archives together


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def committed(name: str, results: Path, sample: int | None) -> list[Record]:
    """Return the committed runs of a grid, or at least so many of them.

    A sample has all seeds of a setting: means can be compared where bits cannot.
    """
    path = results / f"{name}{ENDING}"
    records = read_records(path) if path.is_file() else []
    if sample is None:
        return records
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(str(record.spec | {"seed": None}), []).append(record)
    chosen: list[Record] = []
    # ids are hashes, so this order is random
    for cell in sorted(cells.values(), key=lambda cell: min(record.id for record in cell)):
        if len(chosen) < sample:
            chosen += cell
    return chosen


def store_of(name: str, runs: Path, sample: int | None) -> Path:
    """Return the folder of a grid's runs; a sample's own, as NAME may hold the committed runs."""
    return runs / (name if sample is None else f"{name}-sample")


class Plan(NamedTuple):
    """Runs of a grid to do, by the switch of the kernel."""

    grid: GridSpec
    store: Path
    parts: dict[str, list[Run]]

    @property
    def runs(self) -> list[Run]:
        """All of them."""
        return [run for part in self.parts.values() for run in part]


def make_plan(name: str, runs: Path, results: Path, sample: int | None) -> Plan:
    """Plan all runs of a grid, or some of the committed ones, each as it was made."""
    kept = {record.id: record for record in committed(name, results, sample)}
    grid = read_grid(PREFIX + name)
    parts: dict[str, list[Run]] = {"on": [], "off": []}
    for run in (run for part in grid.resolve() for run in part):
        before = kept.get(run.spec.id)
        if sample is None or before is not None:
            parts["on" if before is None or used_kernel(before) else "off"].append(run)
    return Plan(grid, store_of(name, runs, sample), parts)


def run_plan(plan: Plan, workers: int | None) -> None:
    """Do the runs of a plan."""
    if not plan.runs:
        say(f"{plan.grid.name}: nothing is committed")
        return
    save_grid(plan.store, plan.grid, [run.spec for run in plan.runs])
    failures = []
    for switch, part in plan.parts.items():
        if not part:
            continue
        title, specs = f"{plan.grid.name}, kernel {switch}", [run.spec for run in part]
        try:
            with (
                kernel(switch),
                progress(title, plan.store, specs, workers or processors()) as show,
            ):
                run_all(
                    "local",
                    plan.store,
                    part,
                    workers=workers,
                    on_progress=show,
                    on_wait=say_waiting,
                )
        except RuntimeError as error:
            failures.append(str(error))
    if failures:
        raise RuntimeError("\n".join(failures))


@contextmanager
def kernel(switch: str) -> Iterator[None]:
    """Switch the kernel on or off in worker processes."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = switch
    try:
        yield
    finally:
        del os.environ[SWITCH]
        if before is not None:
            os.environ[SWITCH] = before


def pack_all(names: Sequence[str], runs: Path, results: Path) -> int:
    """Pack every store that exists; return 1 if the archives grow too big."""
    results.mkdir(exist_ok=True)
    for name in names:
        if not (runs / name).is_dir():
            say(f"{name}: no runs in {runs / name}")
            continue
        preset = read_grid(PREFIX + name)
        wanted = [spec.id for spec in preset.runs()]
        done = {record.id for record in read_records(runs / name)}
        path = results / f"{name}{ENDING}"
        grid = Grid(preset.name, preset.title, preset.table, tuple(wanted))
        pack(runs / name, path, grid=grid, earlier=path if path.is_file() else None)
        count, size = len(read_records(path)), path.stat().st_size
        print(
            f"{path}: {count:,} of {len(wanted):,} runs, {size:,} bytes, {size / count:.0f} a run"
        )
        strangers = len(done - set(wanted))
        if strangers:
            say(f"{name}: left out {strangers} runs that are of another grid")
    total = sum(path.stat().st_size for path in results.glob(f"*{ENDING}"))
    print(f"{total:,} bytes in all, at most {MOST_BYTES:,}")
    return 0 if total <= MOST_BYTES else 1


def check(names: Sequence[str], runs: Path, results: Path, sample: int | None) -> int:
    """Compare runs with the committed ones; return 1 if something differs or is missing."""
    failed = False
    for name in names:
        kept = committed(name, results, sample)
        if not kept:
            say(f"{name}: nothing is committed")
            continue
        store = store_of(name, runs, sample)
        if not store.is_dir():
            some = "" if sample is None else f" --sample {sample}"
            print(f"{name}: no runs in {store}; `results.py run {name}{some}` makes them")
            failed = True
            continue
        found, ids = read_records(store), {record.id for record in kept}
        records = [record for record in found if record.id in ids]
        criterion, problems = compare(kept, records)
        failed |= bool(problems)
        verdict = f"{len(problems)} differences" if problems else "as committed"
        print(f"{name}: {verdict} ({len(records):,} runs; {criterion})")
        for problem in problems:
            print(f"  {problem}")
        if sample is None:
            others = {spec.id for spec in read_grid(PREFIX + name).runs()} - ids
            new = sum(record.id in others for record in found)
            if new:
                say(f"{name}: {new:,} more runs are not committed")
    return int(failed)


def write_all(results: Path, docs: Path) -> list[Path]:
    """Write the page, its figures and the sections of other pages; return what was written."""
    written = write_page(results, docs)
    for module in (results_methods, results_choose):
        section = module.make_section(results)
        written += replace_section(docs / module.PAGE, module.GRID, section)
    return written


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    names = [name.removeprefix(PREFIX) for name in presets() if name.startswith(PREFIX)]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/results", help="folder of stores")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of archives")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "pack", "check"):
        part = verbs.add_parser(verb)
        part.add_argument(
            "names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all if none"
        )
        if verb != "pack":
            part.add_argument(
                "--sample",
                type=int,
                metavar="N",
                help="only N of the committed runs, or a few more",
            )
            # for both, as `make results` hands its arguments to both
            part.add_argument(
                "--workers", type=int, help="runs at a time, of run; one per core by default"
            )
    verbs.add_parser("write")
    found = parser.parse_args(words)
    unknown = [name for name in getattr(found, "names", ()) if name not in names]
    if unknown:
        parser.error(f"unknown grid {unknown[0]!r}, known: {', '.join(names)}")
    if found.verb != "write":
        found.names = found.names or names
    sample = getattr(found, "sample", None)
    if sample is not None and sample < 1:
        parser.error(f"--sample must be 1 or more, got {sample}")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 on success, 1 if a run or a check fails, 2 without a file, 130 after Ctrl-C."""
    args = arguments(words)
    try:
        if args.verb == "run":
            plans = [make_plan(name, args.runs, args.results, args.sample) for name in args.names]
            check_data([run for plan in plans for run in plan.runs], None)
            for plan in plans:
                run_plan(plan, args.workers)
            return 0
        if args.verb == "pack":
            return pack_all(args.names, args.runs, args.results)
        if args.verb == "check":
            return check(args.names, args.runs, args.results, args.sample)
        for path in write_all(args.results, args.docs):
            print(path)
    except KeyboardInterrupt as stop:
        say(str(stop) or "stopped")
        return 130
    except RuntimeError as error:  # of runs that failed
        say(f"error: {error}")
        return 1
    except (OSError, ValueError) as error:
        say(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

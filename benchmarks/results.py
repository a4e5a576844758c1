"""The results of this project: run, pack, check and write them.

run    do all runs of the grids results/*, into runs/results/NAME; finished ones are not repeated
pack   write results/NAME.jsonl.gz from runs/results/NAME; keeps committed runs that are not there
check  compare runs/results/NAME with results/NAME.jsonl.gz
write  write docs/results.md and its figures, and the section of docs/methods.md, from results/ only

With --sample N, run and check take N of the committed runs of each grid, the same ones every time,
and the folder runs/results/NAME-sample. Committed runs are repeated as they were made, by the C
kernel or by torch operations, since their bits depend on it; others use the kernel.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from results_check import compare
from results_data import ENDING, ROOT, used_kernel
from results_methods import write_section
from results_page import write_page

from lossforge.benchmark import Run, presets, read_grid
from lossforge.benchmark.archive import pack
from lossforge.benchmark.executors import run_all
from lossforge.benchmark.grid import save_grid
from lossforge.benchmark.records import Grid, Record, read_records
from lossforge.benchmark.run import check_data
from lossforge.kernels.native import SWITCH

PREFIX = "results/"
MOST_BYTES = 5_000_000  # of all archives together


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def committed(name: str, results: Path, sample: int | None) -> list[Record]:
    """Return the committed runs of a grid, or some of them: all seeds of one setting, then others.

    Means over seeds can be compared where bits cannot.
    """
    path = results / f"{name}{ENDING}"
    if sample is None:
        return read_records(path) if path.is_file() else []
    cells: dict[str, list[Record]] = {}
    for record in read_records(path):
        cells.setdefault(str(record.spec | {"seed": None}), []).append(record)
    # ids are hashes, so this order is random
    ordered = sorted(cells.values(), key=lambda cell: min(record.id for record in cell))
    return [record for cell in ordered for record in cell][:sample]


def store_of(name: str, runs: Path, sample: int | None) -> Path:
    """Return the folder of a grid's runs; that of a sample never holds the committed runs."""
    return runs / (name if sample is None else f"{name}-sample")


def run(name: str, runs: Path, results: Path, sample: int | None, workers: int | None) -> None:
    """Do the runs of a grid, or repeat some of the committed ones."""
    kept = {record.id: record for record in committed(name, results, sample)}
    grid, store = read_grid(PREFIX + name), store_of(name, runs, sample)
    wanted = [
        run for part in grid.resolve() for run in part if sample is None or run.spec.id in kept
    ]
    check_data(wanted, None)
    save_grid(store, grid, [run.spec for run in wanted])
    parts: dict[str, list[Run]] = {"on": [], "off": []}
    for run in wanted:
        before = kept.get(run.spec.id)
        parts["on" if before is None or used_kernel(before) else "off"].append(run)
    failures = []
    for switch, part in parts.items():
        if part:
            show = progress(f"{name}, kernel {switch}")
            try:
                with kernel(switch):
                    run_all(
                        "local", store, part, workers=workers, on_progress=show, on_wait=say_waiting
                    )
            except RuntimeError as error:
                failures.append(str(error))
    if failures:
        raise RuntimeError("\n".join(failures))


def progress(title: str) -> Callable[[Mapping[str, str]], None]:
    """Return a function that reports every tenth of the runs."""
    before = -1

    def show(statuses: Mapping[str, str]) -> None:
        nonlocal before
        done = list(statuses.values()).count("finished")
        tenth = 10 * done // len(statuses)
        if tenth > before:
            before = tenth
            say(f"{title}: {done:,} of {len(statuses):,} runs")

    return show


def say_waiting(runs: Sequence[str]) -> None:
    """Say that only runs of other workers are left."""
    say(f"waiting for {len(runs):,} runs claimed by other workers")


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
            print(f"{name}: no runs in {store}; `results.py run {name}` makes them")
            failed = True
            continue
        wanted = {spec.id for spec in read_grid(PREFIX + name).runs()}
        found = [record for record in read_records(store) if record.id in wanted]
        ids = {record.id for record in kept}
        records = [record for record in found if record.id in ids]
        criterion, problems = compare(kept, records)
        failed |= bool(problems)
        verdict = f"{len(problems)} differences" if problems else "as committed"
        print(f"{name}: {verdict} ({len(records):,} runs; {criterion})")
        for problem in problems:
            print(f"  {problem}")
        if len(found) > len(records):
            say(f"{name}: {len(found) - len(records):,} more runs are not committed")
    return int(failed)


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
                "--sample", type=int, metavar="N", help="only N of the committed runs"
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
            for name in args.names:
                run(name, args.runs, args.results, args.sample, args.workers)
            return 0
        if args.verb == "pack":
            return pack_all(args.names, args.runs, args.results)
        if args.verb == "check":
            return check(args.names, args.runs, args.results, args.sample)
        for path in [*write_page(args.results, args.docs), *write_section(args.results, args.docs)]:
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

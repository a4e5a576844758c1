"""The results of this project: run, pack, check and write them.

run    do all runs of the grids results/*, into runs/results/NAME; finished ones are not repeated
pack   write results/NAME.jsonl.gz from runs/results/NAME; keeps committed runs that are not there
check  compare runs/results/NAME with results/NAME.jsonl.gz
write  write docs/results.md and its figures from results/*.jsonl.gz only
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from results_check import compare
from results_data import ENDING, ROOT
from results_page import write_page

from lossforge.benchmark import presets, read_grid
from lossforge.benchmark.archive import pack
from lossforge.benchmark.records import Grid, read_records

PREFIX = "results/"
MOST_BYTES = 5_000_000  # of all archives together


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def run(names: Sequence[str], runs: Path, options: Sequence[str]) -> int:
    """Do all runs, grid by grid; stop at the first failure."""
    for name in names:
        words = [sys.executable, "-m", "lossforge", "bench", PREFIX + name]
        status = subprocess.run([*words, "--store", str(runs / name), *options]).returncode
        if status:
            return status
    return 0


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


def check(names: Sequence[str], runs: Path, results: Path) -> int:
    """Compare runs with the committed ones; return 1 if something differs or is missing."""
    failed = False
    for name in names:
        path = results / f"{name}{ENDING}"
        if not path.is_file():
            say(f"{name}: nothing is committed")
            continue
        if not (runs / name).is_dir():
            print(f"{name}: no runs in {runs / name}; `results.py run {name}` makes them")
            failed = True
            continue
        wanted = {spec.id for spec in read_grid(PREFIX + name).runs()}
        records = [record for record in read_records(runs / name) if record.id in wanted]
        criterion, problems = compare(path, records)
        failed |= bool(problems)
        verdict = f"{len(problems)} differences" if problems else "as committed"
        print(f"{name}: {verdict} ({len(records):,} runs; {criterion})")
        for problem in problems:
            print(f"  {problem}")
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
        if verb == "run":
            part.add_argument("--workers", help="runs at a time; one per core by default")
    verbs.add_parser("write")
    found = parser.parse_args(words)
    unknown = [name for name in getattr(found, "names", ()) if name not in names]
    if unknown:
        parser.error(f"unknown grid {unknown[0]!r}, known: {', '.join(names)}")
    if found.verb != "write":
        found.names = found.names or names
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 on success, 1 if a check fails, 2 if a file is missing, 130 after Ctrl-C."""
    args = arguments(words)
    try:
        if args.verb == "run":
            return run(args.names, args.runs, ["--workers", args.workers] if args.workers else [])
        if args.verb == "pack":
            return pack_all(args.names, args.runs, args.results)
        if args.verb == "check":
            return check(args.names, args.runs, args.results)
        for path in write_page(args.results, args.docs):
            print(path)
    except KeyboardInterrupt:
        say("stopped")
        return 130
    except (OSError, ValueError) as error:
        say(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Attack the library with random problems.

    python tests/soak [ATTACK ...] [--seeds A:B:STEP] [--workers N]

Prints faults with the seeds that reproduce them: `python tests/soak losses --seeds 12:13` poses
problem 12 again. The exit status is 1 if there are faults, 130 if stopped by Ctrl-C without any.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests; workers inherit it
os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers inherit it before they import torch

import soak

SHOWN = 20  # faults of one attack that are printed
QUIET = 30.0  # seconds between lines of progress where they cannot be rewritten


class Tally:
    """What an attack has found so far: faults on stdout, progress on stderr."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.done = self.faults = 0
        self.start = self.shown = time.monotonic()
        self.rewrites = sys.stderr.isatty()

    def add(self, done: int, faults: list[tuple[int, str]]) -> None:
        """Count the problems of a chunk, and print its faults while they are few."""
        lines = [f"{self.name} {seed}: {line}" for seed, line in faults]
        if printed := lines[: max(0, SHOWN - self.faults)]:
            self.say("\n".join(printed))
        self.done, self.faults = self.done + done, self.faults + len(faults)
        now = time.monotonic()
        if now - self.shown >= (0.2 if self.rewrites else QUIET):
            self.shown = now
            left = (now - self.start) * (self.total - self.done) / self.done / 60
            line = f"{self.name}: {self.done:,} of {self.total:,}, about {left:.0f} min left"
            sys.stderr.write(f"\r\033[K{line}" if self.rewrites else f"{line}\n")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        if self.rewrites:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def close(self) -> None:
        shown = f", the first {SHOWN} of them shown" if self.faults > SHOWN else ""
        seconds = time.monotonic() - self.start
        counts = f"{self.done:,} problems, {self.faults} faults{shown}"
        self.say(f"{self.name}: {counts}, {seconds:.0f} s")


def run(name: str, seeds: range, workers: int) -> tuple[int, bool]:
    """Run an attack; return the number of faults, and whether Ctrl-C ended it."""
    tally, stopped = Tally(name, len(seeds)), False
    step = min(200, max(1, len(seeds) // (1000 * workers)))
    quiet = soak.leave_interrupts_to_the_parent
    with ProcessPoolExecutor(workers, get_context("spawn"), quiet) as pool:
        chunks = (seeds[i : i + step] for i in range(0, len(seeds), step))
        pending = {pool.submit(soak.solve, name, chunk) for chunk in chunks}
        try:
            for future in as_completed(list(pending)):
                pending.remove(future)
                tally.add(*future.result())
        except KeyboardInterrupt:
            stopped = True
            pool.shutdown(cancel_futures=True)
            for future in pending:
                if not future.cancelled():
                    tally.add(*future.result())
    tally.close()
    return tally.faults, stopped


def slice_of_seeds(text: str) -> slice:
    """Read A:B or A:B:STEP, each of which may be missing."""
    start, stop, *step = (int(part) if part else None for part in text.split(":"))
    return slice(start, stop, *step)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(soak.ATTACKS))
    parser.add_argument(
        "--seeds", type=slice_of_seeds, default=":", metavar="A:B:STEP", help="default: all"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N")
    args = parser.parse_args()
    if unknown := [name for name in args.attacks if name not in soak.ATTACKS]:
        parser.error(f"ATTACK must be one of {', '.join(soak.ATTACKS)}, got {', '.join(unknown)}")
    faults, stopped = 0, False
    for name in args.attacks or soak.ATTACKS:
        stop = soak.load(name).SIZE if args.seeds.stop is None else args.seeds.stop
        seeds = range(args.seeds.start or 0, stop, args.seeds.step or 1)
        found, stopped = run(name, seeds, args.workers)
        faults += found
        if stopped:
            break
    return 1 if faults else 130 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())

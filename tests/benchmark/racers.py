"""Two processes try for the same claims, time after time; prints how many had each."""

import json
import multiprocessing
import os
import sys
from pathlib import Path

from lossforge.benchmark.claim import claimed


def race(folder: Path, rounds: int, barrier, wins) -> None:
    for number in range(rounds):
        barrier.wait()
        with claimed(folder / str(number) / "claim") as ours:
            wins[number] += ours  # each racer has an array of its own
            barrier.wait()  # held until all have tried


def main() -> None:
    folder, rounds, racers = Path(sys.argv[1]), int(sys.argv[2]), 2
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(racers)
    counts = [context.Array("i", rounds, lock=False) for _ in range(racers)]
    processes = [
        context.Process(target=race, args=(folder, rounds, barrier, wins)) for wins in counts
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    holders = [sum(wins[number] for wins in counts) for number in range(rounds)]
    sys.stdout.write(json.dumps([holders, [sum(wins) for wins in counts]]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

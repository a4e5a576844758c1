"""Time and state of a run of every method of results/methods, written to results/methods-cost.json.

One thread, processor time: what else the machine does changes it little. Methods alternate within a
round, so that slow drifts hit all of them alike; the least time of a method counts.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from results_data import ROOT
from results_methods import COSTS, GRID

from lossforge.benchmark.grid import read_grid
from lossforge.benchmark.run import prepare_data, prepare_networks, samples
from lossforge.benchmark.spec import Run
from lossforge.training import train

NOISE, LOSS = "symmetric:0.6", "CE"


def measure(run: Run, dataset: Any) -> tuple[float, int]:
    """Return the processor seconds of a run, and the bytes of its last checkpoint."""
    model, *peers = prepare_networks(run.spec, dataset, run.method)
    torch.set_num_threads(run.spec.threads)
    start = time.process_time()
    state = train(
        model,
        run.loss,
        samples(dataset, dataset.train),
        {},
        run.spec.settings,
        seed=run.spec.seed,
        method=run.method,
        peers=peers,
    )
    return time.process_time() - start, len(state.to_bytes())


def main() -> int:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / COSTS)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for part in read_grid(f"results/{GRID}").parts:
        if part.noise != [NOISE]:
            continue
        narrowed = part.model_copy(update={"losses": [LOSS], "seeds": [0]})
        runs = narrowed.resolve()
        dataset = prepare_data(runs[0].spec)
        found: dict[str, list[tuple[float, int]]] = {run.method.name: [] for run in runs}
        for number in range(args.rounds):
            for run in runs:
                found[run.method.name].append(measure(run, dataset))
            print(f"{part.data}: round {number + 1} of {args.rounds}", file=sys.stderr)
        for name, values in found.items():
            seconds = round(min(one for one, _ in values), 3)
            rows.append(
                {"data": part.data, "method": name, "seconds": seconds, "bytes": values[0][1]}
            )
            print(rows[-1])
        # after every data set, so that an interruption loses one at the most
        text = json.dumps({"rounds": args.rounds, "rows": rows}, indent=1)
        args.out.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

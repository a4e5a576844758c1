"""Tune every loss of the tables with the same budget; write results/tuned.jsonl.

Each loss gets 20 trials of `lossforge tune` on noisy labels only and five pairs of final runs, on
digits under three types of noise. Losses that are in the file are not tuned again.
"""

import argparse
import json
import sys
from pathlib import Path

from lossforge.benchmark import read_grid
from lossforge.benchmark.integrity import sealed
from lossforge.tuning import tune

ROOT = Path(__file__).parent.parent
NOISES = ("symmetric:0.6", "asymmetric:0.4", "instance:0.4")
WITHOUT_PARAMETERS = ("CE",)
TRIALS, SEED, FINAL_SEEDS = 20, 10, 5
SETTINGS = {"epochs": 25}  # half of the demo's, for 48 searches


def main() -> None:
    """Tune the losses that are not in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", type=Path, default=ROOT / "results" / "tuned.jsonl")
    parser.add_argument("--store", type=Path, default=ROOT / "runs" / "tuned")
    parser.add_argument("--loss", help="only these, separated by commas")
    options = parser.parse_args()
    options.file.parent.mkdir(exist_ok=True)
    text = options.file.read_text() if options.file.exists() else ""
    done = {(row["noise"], row["loss"]) for row in map(json.loads, text.splitlines())}
    rows = [str(loss) for loss in read_grid("results/digits").parts[0].losses]
    losses = options.loss.split(",") if options.loss else rows
    wanted = [
        (noise, loss) for noise in NOISES for loss in losses if loss not in WITHOUT_PARAMETERS
    ]
    for place, (noise, loss) in enumerate(wanted, start=1):
        if (noise, loss) in done:
            continue
        print(f"{place} of {len(wanted)}: {loss}, {noise}", file=sys.stderr, flush=True)
        found = tune(
            "digits",
            noise,
            loss,
            trials=TRIALS,
            seed=SEED,
            settings=SETTINGS,
            final_seeds=FINAL_SEEDS,
            store=options.store,
        )
        (final,) = found.final
        row = {"data": "digits", "noise": noise, "loss": loss, "trials": len(found.trials)}
        row |= {"expression": found.best, "default": final.default, "tuned": final.tuned}
        with options.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(sealed(row)) + "\n")


if __name__ == "__main__":
    main()

"""Does `lossforge audit` find the noise, and a loss for it? Digits, where the truth is known.

Each audit sees noisy labels alone. Its rate is then compared with the true one, and the loss that
it recommends with the loss of the catalogue that turns out best in that setting: both trained as in
the grid results/digits on the same labels, judged by test accuracy after the last epoch. Runs are
taken from results/digits.jsonl.gz where they are there. What was done before is not done again.
"""

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from lossforge.audit import audit, read_subject
from lossforge.benchmark import RunSpec, execute, narrow, read_grid
from lossforge.benchmark.archive import unpack
from lossforge.benchmark.records import Record, read_record
from lossforge.benchmark.statistics import interval

ROOT = Path(__file__).resolve().parent.parent
GRID = read_grid("results/digits")
NOISES = ("symmetric:0.2", "symmetric:0.4", "asymmetric:0.2", "asymmetric:0.4")
SEEDS = (0, 1, 2, 3, 4)
RATE, ACCURACY = 5.0, 1.0  # points that the rate may be off, and the loss behind the best


def say(text: str) -> None:
    """Tell what is being done, on stderr."""
    print(text, file=sys.stderr, flush=True)


class Runs:
    """Test accuracies by setting, from the archive or else trained now."""

    def __init__(self, store: Path, archive: Path) -> None:
        self.store = store
        self.known = {record.id: record for record in unpack(archive)[1]}

    def accuracy(self, spec: RunSpec) -> float:
        """In %; a run that broke off has none right."""
        return self._record(spec).last() or 0.0

    def _record(self, spec: RunSpec) -> Record:
        if spec.id not in self.known:
            if execute(self.store, spec) == "done":
                say(f"trained {spec.loss}, {spec.noise}, seed {spec.seed}")
            self.known[spec.id] = read_record(self.store / spec.id)
        return self.known[spec.id]


def runs_of(noise: str, seed: int, losses: Sequence[str] = ()) -> list[RunSpec]:
    """The grid's runs of one setting."""
    return narrow(GRID, losses=losses, noise=[noise], seeds=[seed]).runs()


def audits(path: Path, noises: Iterable[str], seeds: Iterable[int]) -> Iterator[dict[str, Any]]:
    """What the audits found; those in the file are not done again."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    done = {(row["noise"], row["seed"]): row for row in map(json.loads, text.splitlines())}
    for noise in noises:
        for seed in seeds:
            if (noise, seed) not in done:
                row = audit_once(noise, seed)
                say(f"audited {noise}, seed {seed} in {row['seconds']:.0f} s: {row['loss']}")
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                done[noise, seed] = row
            yield done[noise, seed]


def audit_once(noise: str, seed: int) -> dict[str, Any]:
    """One audit in plain values."""
    found = audit(read_subject("digits", noise=noise, seed=seed), seed=seed)
    rate = found.noise.rate
    chosen = next(one for one in found.candidates if one.name == found.recommended.name)
    return {
        "noise": noise,
        "seed": seed,
        "truth": found.subject.injected,
        "rate": rate.value,
        "low": rate.low,
        "high": rate.high,
        "loss": chosen.name,
        "expression": chosen.expression,
        "held_out": {one.name: one.accuracy for one in found.candidates},
        "seconds": found.method.seconds,
    }


def accuracy_of(row: dict[str, Any], runs: Runs) -> float:
    """Test accuracy of the loss that an audit recommends, with the parameters it recommends."""
    (spec,) = runs_of(row["noise"], row["seed"], [row["loss"]])
    if spec.expression != row["expression"]:  # the grid has it with published settings
        (spec,) = runs_of(row["noise"], row["seed"], [row["expression"]])
    return runs.accuracy(spec)


def best_of(noise: str, seeds: Sequence[int], runs: Runs) -> tuple[str, list[float]]:
    """The loss of the grid with the best mean, and its accuracy for each seed."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for spec in runs_of(noise, seed):
            found.setdefault(spec.loss, []).append(runs.accuracy(spec))
    return max(found.items(), key=lambda item: statistics.fmean(item[1]))


def compare(noise: str, rows: Sequence[dict[str, Any]], runs: Runs) -> dict[str, Any]:
    """One line of the table."""
    errors = [100 * (row["rate"] - row["truth"]) for row in rows]
    ours = [accuracy_of(row, runs) for row in rows]
    name, best = best_of(noise, [row["seed"] for row in rows], runs)
    differences = [a - b for a, b in zip(ours, best, strict=True)]
    low, high = interval(differences)
    return {
        "noise": noise,
        "truth": 100 * statistics.fmean(row["truth"] for row in rows),
        "error": max(errors, key=abs),
        "covered": sum(row["low"] <= row["truth"] <= row["high"] for row in rows),
        "losses": Counter(row["loss"] for row in rows),
        "accuracy": statistics.fmean(ours),
        "best": name,
        "best_accuracy": statistics.fmean(best),
        "difference": statistics.fmean(differences),
        "low": low,
        "high": high,
        "seconds": statistics.fmean(row["seconds"] for row in rows),
    }


def verdicts(line: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Rate near enough; loss not shown to be worse by more than a point; shown not to be."""
    return (
        abs(line["error"]) <= RATE,
        line["high"] >= -ACCURACY,
        line["low"] >= -ACCURACY,
    )


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The lines as Markdown."""
    head = ("noise", "wrong", "largest error", "in interval", "recommended", "accuracy", "best")
    head += ("difference", "not shown worse", "shown not worse", "time")
    rows = [head, ("---",) * len(head)]
    for line in lines:
        _, lenient, strict = verdicts(line)
        n = sum(line["losses"].values())
        rows.append(
            (
                line["noise"],
                f"{line['truth']:.1f} %",
                f"{line['error']:+.1f}",
                f"{line['covered']} of {n}",
                ", ".join(f"{loss} {count}" for loss, count in line["losses"].most_common()),
                f"{line['accuracy']:.1f}",
                f"{line['best']} {line['best_accuracy']:.1f}",
                f"{line['difference']:+.1f} [{line['low']:+.1f}, {line['high']:+.1f}]",
                "yes" if lenient else "no",
                "yes" if strict else "no",
                f"{line['seconds']:.0f} s",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(words: Sequence[str] | None = None) -> int:
    """0 if every rate is near enough and no loss is shown to be worse by more than a point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", default=",".join(NOISES), help="separated by commas")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="two or more")
    parser.add_argument("--store", type=Path, default=ROOT / "runs" / "audit-benchmark")
    parser.add_argument("--archive", type=Path, default=ROOT / "results" / "digits.jsonl.gz")
    options = parser.parse_args(words)
    noises, typed = options.noise.split(","), options.seeds.split(",")
    if not all(word.isdecimal() for word in typed):
        parser.error(f"--seeds must be whole numbers such as 0,1,2, got {options.seeds!r}")
    seeds = [int(word) for word in typed]
    if len(seeds) < 2:
        parser.error("--seeds must be two or more, for an interval")
    torch.set_num_threads(1)  # as in the runs of the archive; small networks gain nothing by more
    options.store.mkdir(parents=True, exist_ok=True)
    runs = Runs(options.store, options.archive)
    rows = list(audits(options.store / "audits.jsonl", noises, seeds))
    lines = [
        compare(noise, [row for row in rows if row["noise"] == noise], runs) for noise in noises
    ]
    print(table(lines))
    return 0 if all(all(verdicts(line)[:2]) for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())

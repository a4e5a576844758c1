"""How many random problems stay undecided just below the rate at which a claim breaks.

A problem is a loss and a row of label weights, drawn as the tests draw them (`tests/theory`): for
the claim "global" a sum of target separation and binary reduction, for "monotone" any of these
constructions by itself or in a sum. Its edge is the rate from which on a counterexample is found,
by bisection, or the one at which a wrong label becomes as frequent as the true one. Printed are the
shares that `certify` (and, for "monotone", `certify_instances`) does not prove at 0.9, 0.95 and
0.99 of the edge, and how many are proved beyond it: there must be none.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossforge.loss import Loss
from lossforge.theory import Claim, certify, certify_instances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "theory"))
from problems import draw_confusion, draw_loss, highest_rate, row_at

BELOW, BEYOND = (0.9, 0.95, 0.99), (1.002, 1.01, 1.05)
WIDTH = 1e-3  # of the edge, relative


def draw(seed: int, claim: Claim) -> tuple[Loss, Tensor]:
    """A loss, and where the labels of class 0 go."""
    for number in range(100):
        random = np.random.default_rng((77, seed, number))
        classes = round(float(np.exp(random.uniform(np.log(2), np.log(20)))))
        loss, separated, _, reduced = draw_loss(random, classes)
        if claim == "monotone" or (separated is not None and reduced is not None):
            return loss, draw_confusion(random, classes)[1][0]
    raise RuntimeError("no sum among a hundred losses")


def edge(loss: Loss, confusion: Tensor, claim: Claim) -> tuple[float, bool]:
    """The largest rate at which nothing was found, and whether anything was beyond it."""
    low, high = 0.0, highest_rate(confusion)
    if certify(loss, row_at(high, confusion), claim=claim).status != "REFUTED":
        return high, False
    while high - low > WIDTH * high:
        middle = (low + high) / 2
        refuted = certify(loss, row_at(middle, confusion), claim=claim).status == "REFUTED"
        low, high = (low, middle) if refuted else (middle, high)
    return low, True


def measure(claim: Claim, count: int) -> bool:
    """Print the shares; return whether nothing was proved beyond an edge."""
    left = dict.fromkeys(BELOW, 0)
    rows_left = dict.fromkeys(BELOW, 0)
    wrong = 0
    for seed in range(count):
        loss, confusion = draw(seed, claim)
        rate, broke = edge(loss, confusion, claim)
        for factor in BELOW:
            row = row_at(factor * rate, confusion)
            left[factor] += certify(loss, row, claim=claim, refute=False).status != "PROVED"
            rows_left[factor] += not bool(certify_instances(loss, row[None], claim=claim).proved)
        for factor in BEYOND if broke else ():
            row = row_at(min(factor * rate, highest_rate(confusion)), confusion)
            wrong += certify(loss, row, claim=claim, refute=False).status == "PROVED"
    for factor in BELOW:
        shares = f"{left[factor] / count:.1%} of certify, {rows_left[factor] / count:.1%} of rows"
        print(f"{claim}, at {factor:g} of the edge: {shares} undecided ({count} problems)")
    print(f"{claim}, proved beyond the edge: {wrong}")
    return not wrong


def main() -> int:
    """Measure; 1 if something false was proved."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claim", choices=("global", "monotone"), default="global")
    parser.add_argument("--count", type=int, default=100, help="problems (default: %(default)s)")
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    return 0 if measure(args.claim, args.count) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Milliseconds of one call of certify, on one thread.

The two balanced losses of the paper with 1,000 classes, and target separation plus binary reduction
of two arbitrary base functions, enclosed in 4,000 cells, with 10, 100 and 1,000 classes; each under
symmetric noise, pair flips and a random transition matrix. The second base function is one whose
ratio of densities does not decide. Every call gets a loss with parameters
of its own, so that no call profits from what an earlier one has computed about a base function.
Making the loss is not part of the time. A figure is the median over calls.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import torch
from loading import rounds, say
from torch import Generator, Tensor

import lossforge
from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import from_derivative
from lossforge.loss import Loss
from lossforge.theory import certify

CELLS = 4000
MOST_BALANCED, MOST_ARBITRARY = 0.050, 1.0  # promised: seconds
BALANCED_CLASSES, ARBITRARY_CLASSES = (1000,), (10, 100, 1000)
RATES = {"symmetric": 0.4, "pair": 0.2, "random": 0.3}


def balanced_exponential(x: float) -> Loss:
    return lossforge.BEF(beta=-8 + x, br_gamma=0.5 + 0.01 * x)


def balanced_quadratic(x: float) -> Loss:
    return lossforge.BQF(alpha=12 + x, br_gamma=0.5 + 0.01 * x)


def arbitrary(x: float) -> Loss:
    """A wave times a slope, from 0.4 to 2: neither monotone nor symmetric."""
    base = from_derivative(lambda p: -torch.exp(0.5 * torch.sin((5 + x) * p) - 0.4 * p))
    return 0.9 * TargetSeparation(base, tau=1) + 0.1 * BinaryReduction(base)


def peaked(x: float) -> Loss:
    """Nearly a bell, from 0.1 to 1: under pair flips mass moved may hurt, not a raised logit."""
    base = from_derivative(lambda p: -torch.exp(-8 * (p - 0.5) ** 2 + 0.1 * torch.sin((5 + x) * p)))
    return 0.9 * TargetSeparation(base, tau=1) + 0.1 * BinaryReduction(base)


def transition(kind: str, classes: int) -> Tensor:
    """A (K, K) transition matrix."""
    if kind == "symmetric":
        confusion = torch.full((classes, classes), 1 / (classes - 1), dtype=torch.float64)
    elif kind == "pair":
        confusion = torch.eye(classes, dtype=torch.float64).roll(1, 1)
    else:
        generator = Generator().manual_seed(0)
        confusion = torch.rand(classes, classes, dtype=torch.float64, generator=generator)
    confusion.fill_diagonal_(0)
    confusion /= confusion.sum(1, keepdim=True)
    return (1 - RATES[kind]) * torch.eye(classes, dtype=torch.float64) + RATES[kind] * confusion


def seconds(make: Callable[[float], Loss], noise: Tensor, repeats: int) -> tuple[float, str]:
    """The median time of a call, and the verdict most calls came to."""
    times, verdicts = [], Counter[str]()
    for number in range(repeats + 1):
        loss = make(number / (repeats + 1))
        start = time.perf_counter()
        verdict = certify(loss, noise, cells=CELLS)
        times.append(time.perf_counter() - start)
        verdicts[verdict.status] += 1
    return statistics.median(times[1:]), verdicts.most_common(1)[0][0]


def measure(repeats: int) -> bool:
    """Print the figures; return whether every promise is kept."""
    cases = [
        ("BEF", balanced_exponential, BALANCED_CLASSES, MOST_BALANCED),
        ("BQF", balanced_quadratic, BALANCED_CLASSES, MOST_BALANCED),
        ("arbitrary", arbitrary, ARBITRARY_CLASSES, MOST_ARBITRARY),
        ("peaked", peaked, ARBITRARY_CLASSES, MOST_ARBITRARY),
    ]
    print(f"{CELLS:,} cells, threads: {torch.get_num_threads()}, torch {torch.__version__}.\n")
    print(f"{'ms':<12}{'classes':>8}  {'noise':<12}{'median':>10}  verdict")
    promises = {}
    for name, make, sizes, most in cases:
        for classes in sizes:
            worst = 0.0
            for kind in RATES:
                say(f"{name}: {classes} classes, {kind}")
                taken, verdict = seconds(make, transition(kind, classes), repeats)
                print(f"{name:<12}{classes:>8,}  {kind:<12}{1000 * taken:>10.1f}  {verdict}")
                worst = max(worst, taken)
            text = f"{name}, {classes:,} classes: {1000 * worst:.1f} ms, under {1000 * most:.0f}"
            promises[text] = worst < most
    print()
    for promise, met in promises.items():
        print(f"{'met   ' if met else 'MISSED'}  {promise}")
    return all(promises.values())


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=rounds, default=1, help="of the CPU (default: 1)")
    parser.add_argument(
        "--repeats", type=rounds, default=25, help="calls per figure (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="5 calls: a look, not a result")
    return parser.parse_args()


def main() -> int:
    """Measure; 0 if every promise is kept, 1 if one is missed, 130 if stopped by Ctrl-C."""
    try:
        args = arguments()
        torch.set_num_threads(args.threads)
        return 0 if measure(5 if args.quick else args.repeats) else 1
    except KeyboardInterrupt:
        say("stopped")
        return 130


if __name__ == "__main__":
    sys.exit(main())

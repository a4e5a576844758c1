"""Cross entropy against a robust loss on handwritten digits whose training labels are wrong.

Of scikit-learn's 1,797 digits 500 are held out with their true labels; the labels of the others
are corrupted, in two ways. For one seed every loss sees the same split, wrong labels, initial
weights and batch order: the loss is all that differs. The figure is the accuracy on the held-out
digits after the last epoch, so no true label is used to choose anything.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import lossforge

HELD_OUT = 500
HIDDEN = 256
BATCH = 128
LEARNING_RATE = 1e-3
LOOKALIKES = {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}

EPILOG = """\
A loss is a name or an expression; --losses takes several, separated by commas outside brackets:

  %(prog)s --losses "CE, BEF, BQF"
  %(prog)s --losses "CE, TS(exponential(alpha=-8, beta=-8), tau=1), BR(exponential(beta=-8))"
  %(prog)s --losses "0.5*TS(linear, tau=0) + 0.5*CE" --epochs 50

The table goes to standard output and progress to standard error: `%(prog)s > table.txt` keeps the
table alone. Ctrl-C stops early and prints what is done.
"""


class Noise(NamedTuple):
    """A way to corrupt labels: `wrong` draws the label a flipped sample receives."""

    name: str
    rate: float
    wrong: Callable[[Tensor, torch.Generator], Tensor]

    def corrupt(self, true: Tensor, generator: torch.Generator) -> Tensor:
        """Flip each label with probability `rate`."""
        flipped = torch.rand(true.shape, generator=generator) < self.rate
        return torch.where(flipped, self.wrong(true, generator), true)


def any_other(true: Tensor, generator: torch.Generator) -> Tensor:
    """One of the nine other digits, each as likely."""
    return (true + torch.randint(1, 10, true.shape, generator=generator)) % 10


def lookalike(true: Tensor, _: torch.Generator) -> Tensor:
    """The digit it resembles: 7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8; the other five stay."""
    return torch.tensor([LOOKALIKES.get(digit, digit) for digit in range(10)])[true]


NOISES = (Noise("symmetric 0.6", 0.6, any_other), Noise("asymmetric 0.4", 0.4, lookalike))


class Problem(NamedTuple):
    """One seed's training images with wrong labels, and held-out images with true ones."""

    images: Tensor
    given: Tensor
    test_images: Tensor
    test_true: Tensor

    @classmethod
    def draw(cls, noise: Noise, seed: int) -> "Problem":
        """Split the digits and corrupt the training labels."""
        generator = torch.Generator().manual_seed(seed)
        digits = load_digits()
        images = torch.tensor(digits.data / 16, dtype=torch.float32)
        true = torch.tensor(digits.target)
        test, train = torch.randperm(len(true), generator=generator).tensor_split([HELD_OUT])
        return cls(images[train], noise.corrupt(true[train], generator), images[test], true[test])


def network(seed: int) -> nn.Module:
    """Two hidden layers, initialised from the seed without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(64, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, 10),
        )


def train(criterion: nn.Module, problem: Problem, seed: int, epochs: int) -> float:
    """Train on the given labels; return the accuracy in percent on the true ones."""
    model = network(seed)
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for _ in range(epochs):
        for batch in torch.randperm(len(problem.given), generator=order).split(BATCH):
            optimizer.zero_grad()
            criterion(model(problem.images[batch]), problem.given[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        hits = model(problem.test_images).argmax(1) == problem.test_true
    return 100 * hits.double().mean().item()


def split_losses(text: str) -> list[str]:
    """Split at the commas that are outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def losses(text: str) -> dict[str, lossforge.Loss]:
    """Parse --losses, keeping each expression as it was written as the row's name."""
    try:
        return {part: lossforge.parse(part) for part in split_losses(text)}
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return int(text)


class Progress:
    """A line that rewrites itself on a terminal, one line per step elsewhere."""

    def __init__(self, total: int) -> None:
        self.done, self.total, self.start = 0, total, time.perf_counter()

    def step(self, text: str) -> None:
        """Report one more finished run."""
        self.done += 1
        line = f"[{self.done}/{self.total}] {time.perf_counter() - self.start:4.0f} s  {text}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the terminal's line."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


Accuracies = dict[tuple[str, str], list[float]]  # (loss, noise) -> one accuracy per seed


def runs(
    criteria: dict[str, lossforge.Loss], seeds: int, epochs: int
) -> Iterator[tuple[str, str, float]]:
    """Train every loss on every problem, seed by seed, so that an early stop is still paired."""
    for seed in range(seeds):
        for noise in NOISES:
            problem = Problem.draw(noise, seed)
            for name, criterion in criteria.items():
                yield name, noise.name, train(criterion, problem, seed, epochs)


def cell(accuracies: list[float]) -> str:
    """Format mean and standard deviation over the seeds that ran."""
    if not accuracies:
        return "-"
    if len(accuracies) == 1:
        return f"{accuracies[0]:.1f}"
    return f"{statistics.mean(accuracies):.1f} ± {statistics.stdev(accuracies):.1f}"


def table(results: Accuracies, names: list[str]) -> str:
    """Lay out one row per loss and one column per noise."""
    columns = [noise.name for noise in NOISES]
    rows = [["loss", *columns]]
    rows += [[name, *(cell(results[name, column]) for column in columns)] for name in names]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--losses", type=losses, default="CE, BEF", help="what to compare (default: %(default)s)"
    )
    parser.add_argument(
        "--seeds", type=positive, default=3, help="how many seeds, from 0 (default: %(default)s)"
    )
    parser.add_argument(
        "--epochs", type=positive, default=100, help="passes over the data (default: %(default)s)"
    )
    return parser.parse_args()


def main() -> int:
    """Run the comparison and print its table."""
    args = arguments()
    torch.set_num_threads(1)  # the matrices are too small to share
    results: Accuracies = {(name, noise.name): [] for name in args.losses for noise in NOISES}
    progress = Progress(len(results) * args.seeds)
    stopped = False
    try:
        for name, noise, accuracy in runs(args.losses, args.seeds, args.epochs):
            results[name, noise].append(accuracy)
            progress.step(f"{noise}, {name}: {accuracy:.1f} %")
    except KeyboardInterrupt:
        stopped = True
    progress.close()
    if progress.done:
        print(f"Test accuracy in % after {args.epochs} epochs, mean ± std, seeds: {args.seeds}\n")
        print(table(results, list(args.losses)))
    if stopped:
        print(f"Stopped after {progress.done} of {progress.total} runs.")
    return 130 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())

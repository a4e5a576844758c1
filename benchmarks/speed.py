"""Time and memory of forward + backward, in units of torch's eager cross entropy.

Candidates are lossforge's losses and naive versions of them (softmax, one-hot labels, the formulas
as papers print them, differentiated by autograd), eager and, a few of them, compiled with
torch.compile(fullgraph=True, dynamic=False); first they must agree on the gradient. The unit has as
many threads as the candidates.

Time: the candidates take turns, round after round, and a figure is the median over rounds of the
ratio to cross entropy in the same round, so that a slow moment of the machine falls on both.

Memory: the peak of what one step allocates, the gradient included, in logit-sized tensors (4 N K
bytes), leaving out vectors of a number a row. Eager cross entropy needs 3: log-probabilities, their
gradient and the logits' gradient.

`--write docs/contract.md` replaces the tables of that page; do so on a machine that is idle.
"""

import argparse
import os
import platform
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler announces itself otherwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from twins import Criterion, twin

import lossforge
from lossforge import kernels
from lossforge.benchmark.run import device_name
from lossforge.catalog.entry import TABLES
from lossforge.loss import Loss

SHAPES = [(128, 10), (128, 100), (256, 1000), (64, 32000)]
UNIT = "F.cross_entropy"
SECONDS_PER_TURN = 0.004  # a candidate repeats its step until a turn is long enough to time
COMPILED = ("BEF", "BQF", "JAL-CE")  # of the losses, with the unit
DENSITIES: dict[str, Callable[[Tensor], Tensor]] = {  # of `from_derivative`, and what they are
    "even density": lambda x: torch.exp(-4 * (x - 0.5) ** 2),
    "tilted density": lambda x: (1 + x) * torch.exp(-2 * (x - 0.5) ** 2),
}
BALANCED = ("BEF", "BQF", *DENSITIES)
MOST_SMALL, MOST_LARGE, LARGE = 2.0, 1.1, 1000  # eager BEF and BQF, below and from so many classes
BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"  # of the tables on a page
FEWEST_ROUNDS = 30  # of a table that is written

MOST_CE, MOST_OF_NAIVE, MOST_MEMORY = 1.3, 1.05, 3.0  # eager CE, others by naive ones, memory


class Candidate(NamedTuple):
    """One row of the table."""

    name: str
    mode: str
    criterion: Criterion


class Measured(NamedTuple):
    """A candidate's time over cross entropy's, and its peak memory in logit-sized tensors."""

    time: float
    memory: float


Results = dict[tuple[str, str], Measured]  # (name, mode) -> figures


def step(criterion: Criterion, logits: Tensor, target: Tensor) -> None:
    """Run one forward and backward pass."""
    logits.grad = None
    criterion(logits, target).backward()


def peak_memory(criterion: Criterion, logits: Tensor, target: Tensor) -> float:
    """Follow the allocator's events through one step; compiled kernels' buffers are among them."""
    logits.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        criterion(logits, target).backward()
    row_vector = 8 * logits.shape[0]
    events = [
        event
        for event in profiler.profiler.kineto_results.events()
        if event.name() == "[memory]" and abs(event.nbytes()) > row_vector
    ]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak / (logits.numel() * logits.element_size())


def turn(candidate: Candidate, logits: Tensor, target: Tensor, steps: int) -> float:
    """Time one turn, in seconds per step."""
    start = time.perf_counter()
    for _ in range(steps):
        step(candidate.criterion, logits, target)
    return (time.perf_counter() - start) / steps


def loss_of(name: str) -> Loss:
    """The loss of an expression, or lam TS + mu BR as in BEF with one of the densities."""
    if name not in DENSITIES:
        return lossforge.parse(name)
    base = lossforge.base.from_derivative(lambda x: -DENSITIES[name](x))
    separation = lossforge.TargetSeparation(base, tau=1)
    return 0.9 * separation + 0.1 * lossforge.BinaryReduction(base)


def candidates(names: list[str], compiled: bool) -> list[Candidate]:
    """List what is timed: the unit first."""
    eager = [(name, loss_of(name)) for name in names]
    twins = [(f"naive {name}", twin(loss)) for name, loss in eager if name != "CE"]
    eager += [(name, criterion) for name, criterion in twins if criterion is not None]
    rows = []
    for name, criterion in [(UNIT, F.cross_entropy), *eager]:
        rows.append(Candidate(name, "eager", criterion))
        if compiled and name in (UNIT, *COMPILED):
            graph = torch.compile(criterion, fullgraph=True, dynamic=False)
            rows.append(Candidate(name, "compiled", graph))
    return rows


def check_same_gradient(rows: list[Candidate], logits: Tensor, target: Tensor) -> None:
    """Refuse to compare functions that are not the same."""
    gradients: dict[str, Tensor] = {}
    for row in rows:
        step(row.criterion, logits, target)
        assert logits.grad is not None
        loss = "CE" if row.name == UNIT else row.name.removeprefix("naive ")
        expected = gradients.setdefault(loss, logits.grad)
        torch.testing.assert_close(
            logits.grad,
            expected,
            rtol=1e-3,
            atol=1e-5 * expected.abs().max().item(),
            msg=lambda text, row=row: f"gradient of {row.name}, {row.mode}: {text}",
        )


def measure(shape: tuple[int, int], names: list[str], rounds: int, compiled: bool) -> Results:
    """Measure every candidate on random logits of one shape."""
    torch.compiler.reset()
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator).requires_grad_()
    target = torch.randint(shape[1], shape[:1], generator=generator)
    rows = candidates(names, compiled)
    say(
        f"{shape[0]} x {shape[1]}: compiling, checking gradients"
        if compiled
        else f"{shape[0]} x {shape[1]}"
    )
    check_same_gradient(rows, logits, target)
    memory = [peak_memory(row.criterion, logits, target) for row in rows]
    steps = [max(1, round(SECONDS_PER_TURN / turn(row, logits, target, 3))) for row in rows]
    ratios: list[list[float]] = [[] for _ in rows]
    say(f"{shape[0]} x {shape[1]}: {rounds} rounds of {len(rows)} candidates")
    for _ in range(rounds):
        times = [turn(row, logits, target, n) for row, n in zip(rows, steps, strict=True)]
        for ratio, seconds in zip(ratios, times, strict=True):
            ratio.append(seconds / times[0])
    return {
        (row.name, row.mode): Measured(statistics.median(ratio), peak)
        for row, ratio, peak in zip(rows, ratios, memory, strict=True)
    }


def table(results: dict[tuple[int, int], Results]) -> str:
    """Lay out one row per candidate; per shape its time and memory."""
    keys = list(next(iter(results.values())))
    name_width = max(len(name) for name, _ in keys)
    lines = [
        " " * (name_width + 10) + "".join(f"{f'{n} x {k}':>17}" for n, k in results),
        f"{'loss':<{name_width}}  {'mode':<8}" + f"{'time':>10}{'memory':>7}" * len(results),
    ]
    for name, mode in keys:
        figures = (result[name, mode] for result in results.values())
        lines.append(
            f"{name:<{name_width}}  {mode:<8}"
            + "".join(f"{m.time:10.2f}{m.memory:7.2f}" for m in figures)
        )
    return "\n".join(lines)


def verdicts(results: dict[tuple[int, int], Results]) -> list[str]:
    """Hold eager losses against their targets, shape by shape."""
    lines = []
    for (n, k), result in results.items():
        checks: list[tuple[str, str, float, float]] = []
        for name, mode in result:
            if mode == "compiled" or name == UNIT or name.startswith("naive "):
                continue
            time, memory = result[name, mode]
            checks.append((name, "logit tensors of memory", memory, MOST_MEMORY))
            if name in BALANCED:
                most = MOST_LARGE if k >= LARGE else MOST_SMALL
                checks.append((name, "x cross entropy's time", time, most))
            if name == "CE":
                checks.append((name, "x cross entropy's time", time, MOST_CE))
            if (naive := result.get((f"naive {name}", "eager"))) is not None:
                checks.append((name, "x naive time", time / naive.time, MOST_OF_NAIVE))
        missed = [check for check in checks if check[2] > check[3]]
        lines.append(f"{n} x {k}: {len(checks) - len(missed)} of {len(checks)} targets met")
        for name, what, value, most in missed:
            lines.append(f"  MISSED  {name}: {value:.2f} {what}, at most {most}")
    return lines


def page(figures: dict[int, dict[tuple[int, int], Results]], rounds: int) -> str:
    """The tables for a page of the documentation, one for each number of threads."""
    machine = f"{device_name('cpu')}, {os.cpu_count()} cores, Python {platform.python_version()}"
    path = f"torch {torch.__version__}, losses by {kernels.describe()}"
    lines = [f"{machine}, {path}, {rounds} rounds.", ""]
    for threads, results in figures.items():
        shapes = "".join(f" ({n}, {k}) |" for n, k in results)
        lines += [f"| {threads} thread{'s' * (threads > 1)} | |{shapes} memory |"]
        lines += ["|---|---|" + "---:|" * (len(results) + 1)]
        for name, mode in next(iter(results.values())):
            found = [result[name, mode] for result in results.values()]
            times = "".join(f" {one.time:.2f} |" for one in found)
            lines.append(f"| {name} | {mode} |{times} {max(m.memory for m in found):.1f} |")
        lines.append("")
    return "\n".join(lines)


def write(file: Path, text: str) -> None:
    """Replace what stands between the two marks of a page."""
    before, begin, rest = file.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def shape(text: str) -> tuple[int, int]:
    """Read NxK."""
    n, _, k = text.partition("x")
    if not (n.isdecimal() and k.isdecimal() and int(n) >= 1 and int(k) >= 2):
        raise argparse.ArgumentTypeError(f"must be samples x classes such as 256x1000, got {text}")
    return int(n), int(k)


def loss_name(text: str) -> str:
    """Check that the text is a loss."""
    try:
        loss_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def rounds(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return int(text)


def marked(text: str) -> Path:
    """Check that a page has a place for the tables."""
    file = Path(text)
    if not file.is_file() or not re.search(f"{BEGIN}.*{END}", file.read_text(), re.S):
        raise argparse.ArgumentTypeError(f"must be a file with {BEGIN} and {END}, got {text}")
    return file


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shapes", nargs="+", type=shape, default=SHAPES, metavar="NxK", help="samples x classes"
    )
    parser.add_argument(
        "--loss",
        nargs="+",
        type=loss_name,
        default=[*TABLES, *DENSITIES],
        metavar="LOSS",
        help="names or expressions; a naive version comes along (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats", type=rounds, default=100, help="rounds per shape (default: %(default)s)"
    )
    parser.add_argument(
        "--threads", nargs="+", type=rounds, default=[1, 2], metavar="N", help="default: 1 2"
    )
    parser.add_argument("--quick", action="store_true", help="15 rounds: a look, not a result")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument(
        "--write",
        type=marked,
        metavar="PAGE",
        help=f"replace the tables of a page such as docs/contract.md; from {FEWEST_ROUNDS} rounds",
    )
    args = parser.parse_args()
    args.repeats = 15 if args.quick else args.repeats
    if args.write and args.repeats < FEWEST_ROUNDS:
        parser.error(f"--write must have at least {FEWEST_ROUNDS} rounds, got {args.repeats}")
    return args


def main() -> int:
    """Measure and print."""
    args = arguments()
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    compiled = not args.eager and shutil.which(compiler) is not None
    print(f"Forward + backward, float32, torch {torch.__version__}, {args.repeats} rounds.")
    print(f"Losses by: {kernels.describe()}.")
    print("time: median over rounds of the ratio to eager cross entropy in the same round;")
    print("memory: peak extra memory in logit-sized tensors, the gradient included.")
    figures = {}
    for threads in args.threads:
        torch.set_num_threads(threads)
        say(f"threads: {threads}")
        results = figures[threads] = {
            shape: measure(shape, args.loss, args.repeats, compiled) for shape in args.shapes
        }
        print(f"\n{threads} thread{'s' * (threads > 1)}\n\n{table(results)}\n")
        print(*verdicts(results), sep="\n")
    if not compiled and not args.eager:
        print(f"\nNo C++ compiler ({compiler}) on the PATH: nothing compiled.")
    if args.write:
        write(args.write, page(figures, args.repeats))
        print(f"\nWritten to {args.write}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Time and memory of forward + backward, in units of torch's eager cross entropy, on one thread.

Candidates are lossforge's losses and naive versions of them (softmax, one-hot labels, the formulas
as papers print them, differentiated by autograd), each eager and compiled with
torch.compile(fullgraph=True, dynamic=False); first they must agree on the gradient.

Time: the candidates take turns, round after round, and a figure is the median over rounds of the
ratio to cross entropy in the same round, so that a slow moment of the machine falls on both.

Memory: the peak of what one step allocates, the gradient included, in logit-sized tensors (4 N K
bytes), leaving out vectors of a number a row. Eager cross entropy needs 3: log-probabilities, their
gradient and the logits' gradient.
"""

import argparse
import os
import shutil
import statistics
import sys
import time
from typing import NamedTuple

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler announces itself otherwise

import torch
import torch.nn.functional as F
from naive import Criterion, twin
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import lossforge

SHAPES = [(128, 10), (128, 100), (256, 1000), (64, 32000)]
UNIT = "F.cross_entropy"
SECONDS_PER_TURN = 0.004  # a candidate repeats its step until a turn is long enough to time
MOST_TIME, MOST_OF_NAIVE, MOST_MEMORY = 4.5, 0.5, 3.0  # what compiled BEF may take
LARGE = 1000  # classes from which compiled BEF may take half of naive BEF
HALVED = ("ANL-CE", "JAL-CE", "NCE+AGCE")  # compiled, these may take half of naive at any size


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


def candidates(names: list[str], compiled: bool) -> list[Candidate]:
    """List what is timed: the unit first."""
    eager = [(name, lossforge.parse(name)) for name in names]
    twins = [(f"naive {name}", twin(loss)) for name, loss in eager if name != "CE"]
    eager += [(name, criterion) for name, criterion in twins if criterion is not None]
    rows = []
    for name, criterion in [(UNIT, F.cross_entropy), *eager]:
        rows.append(Candidate(name, "eager", criterion))
        if compiled:
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
    """Hold compiled losses against their targets, shape by shape."""
    lines = []
    for (n, k), result in results.items():
        checks: list[tuple[str, str, float, float]] = []
        bef = result.get(("BEF", "compiled"))
        if bef is not None:
            checks.append(("BEF", "x cross entropy's time", bef.time, MOST_TIME))
            checks.append(("BEF", "logit tensors of memory", bef.memory, MOST_MEMORY))
        for name in (*HALVED, *(["BEF"] if k >= LARGE else [])):
            if (name, "compiled") in result:
                share = result[name, "compiled"].time / result[f"naive {name}", "eager"].time
                checks.append((name, "x eager naive time", share, MOST_OF_NAIVE))
        for name, what, value, most in checks:
            word = "met   " if value <= most else "MISSED"
            lines.append(f"{word}  compiled {name}, {n} x {k}: {value:.2f} {what}, at most {most}")
    return lines


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
        lossforge.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def rounds(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return int(text)


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
        default=["CE", "BEF", "BQF", *HALVED],
        metavar="LOSS",
        help="names or expressions; a naive version comes along (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats", type=rounds, default=100, help="rounds per shape (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="15 rounds: a look, not a result")
    parser.add_argument("--eager", action="store_true", help="compile nothing, judge no target")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    args = arguments()
    torch.set_num_threads(1)
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    compiled = not args.eager and shutil.which(compiler) is not None
    repeats = 15 if args.quick else args.repeats
    results = {shape: measure(shape, args.loss, repeats, compiled) for shape in args.shapes}
    print(f"Forward + backward, float32, one thread, torch {torch.__version__}, {repeats} rounds.")
    print("time: median over rounds of the ratio to eager cross entropy in the same round;")
    print("memory: peak extra memory in logit-sized tensors, the gradient included.\n")
    print(table(results))
    if compiled:
        print("", *verdicts(results), sep="\n")
    elif not args.eager:
        print(f"\nNo C++ compiler ({compiler}) on the PATH: nothing compiled, no target judged.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

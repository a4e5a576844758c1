"""Peak memory and time of a last linear layer with its loss, in chunks of rows and plain.

Plain is `loss(F.linear(hidden, weight), target)`, which holds the logits of all rows; chunked is
`LinearLoss`. Forward and backward pass, float32, random inputs, all three gradients but no bias.
Memory is the peak of what the allocator hands out during a step, gradients included; time is that
of the CPU, which other programs on the machine disturb less. Before they are timed, value and
gradients of both are compared.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from loading import rounds, say
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

import lossforge
from lossforge import LinearLoss

ROWS, CLASSES, WIDTH = 2048, 128_256, 512
Step = Callable[[], Tensor]


def inputs(rows: int, classes: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, weights that make logits of about the size of trained ones, labels."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(rows, width, generator=generator)
    weight = torch.randn(classes, width, generator=generator) / width**0.5
    target = torch.randint(classes, (rows,), generator=generator)
    return hidden.requires_grad_(), weight.requires_grad_(), target


def gradients(step: Step, parts: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Run a step; return its value and its gradients."""
    for part in parts:
        part.grad = None
    value = step()
    value.backward()
    found = [part.grad for part in parts]
    return [value.detach(), *(gradient for gradient in found if gradient is not None)]


def peak_memory(step: Step, parts: tuple[Tensor, Tensor]) -> tuple[int, list[Tensor]]:
    """Follow the allocator's events through one step; in bytes, with what the step found."""
    for part in parts:
        part.grad = None  # or it would be freed during the step
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        found = gradients(step, parts)
    events = profiler.profiler.kineto_results.events()
    live = peak = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak, found


def check_same(name: str, found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference relative to a tensor's largest entry; refuse a large one."""
    pairs = zip(found, expected, strict=True)
    error = max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)
    if error > 1e-4:
        raise ValueError(f"chunked {name} must equal plain {name}, got a difference of {error:.1e}")
    return error


def measure(name: str, sizes: tuple[int, int, int], repeats: int) -> list[str]:
    """Measure one loss, chunked and plain; return the rows of the table."""
    hidden, weight, target = inputs(*sizes)
    loss = lossforge.parse(name)
    chunked = LinearLoss(loss)
    steps: dict[str, Step] = {
        "plain": lambda: loss(F.linear(hidden, weight), target),
        "chunked": lambda: chunked(hidden, weight, target),
    }
    parts = (hidden, weight)
    say(f"{name}: memory")
    first = {kind: peak_memory(step, parts) for kind, step in steps.items()}
    memory = {kind: peak for kind, (peak, _) in first.items()}
    error = check_same(name, first["chunked"][1], first["plain"][1])
    del first
    times: dict[str, list[float]] = {kind: [] for kind in steps}
    for number in range(repeats):
        say(f"{name}: round {number + 1} of {repeats}")
        for kind, step in steps.items():
            start = time.process_time()
            gradients(step, parts)
            times[kind].append(time.process_time() - start)
    lines = []
    for kind in steps:
        ratios = [taken / whole for taken, whole in zip(times[kind], times["plain"], strict=True)]
        figures = (
            memory[kind] / 1e9,
            statistics.median(times[kind]),
            memory[kind] / memory["plain"],
            statistics.median(ratios),
        )
        row = f"{name + ' ' + kind:<20}" + "".join(f"{figure:10.2f}" for figure in figures)
        lines.append(row + (f"{error:12.0e}" if kind == "chunked" else ""))
    return lines


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=rounds, default=ROWS, help="default: %(default)s")
    parser.add_argument("--classes", type=rounds, default=CLASSES, help="default: %(default)s")
    parser.add_argument("--width", type=rounds, default=WIDTH, help="default: %(default)s")
    parser.add_argument("--loss", nargs="+", default=["CE", "BEF"], metavar="LOSS")
    parser.add_argument("--threads", type=rounds, default=1, help="of the CPU (default: 1)")
    parser.add_argument("--repeats", type=rounds, default=3, help="rounds (default: %(default)s)")
    return parser.parse_args()


def main() -> int:
    """Measure and print; 130 if stopped by Ctrl-C."""
    try:
        args = arguments()
        torch.set_num_threads(args.threads)
        sizes = args.rows, args.classes, args.width
        print(f"{sizes[0]:,} rows, {sizes[1]:,} classes, width {sizes[2]:,}, ", end="")
        print(f"threads: {args.threads}, torch {torch.__version__}, {args.repeats} rounds.\n")
        print(f"{'':<20}{'GB':>10}{'seconds':>10}{'x memory':>10}{'x time':>10}{'difference':>12}")
        for name in args.loss:
            print(*measure(name, sizes, args.repeats), sep="\n", flush=True)
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

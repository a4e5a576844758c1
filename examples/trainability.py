"""Where descent ends under label noise when nothing but the loss is in the way.

Logits without a network follow the gradient of the expected loss (Adam) from random starts; the
share that ends with the true class on top is printed. Losses whose minimum is at the true class
("global") lose starts to local minima; those that are proved "monotone" lose none.

    python examples/trainability.py [--starts 400] [--steps 3000]
"""

import argparse

import torch
from torch import Tensor

from lossforge import BinaryReduction, Loss, TargetSeparation, base
from lossforge.theory import certify

CLASSES, TRUE, LR = 5, 0, 0.05
SPREADS = (1.0, 3.0)  # of the first logits
FALLING, RISING = base.Exponential(beta=2.0, gamma=1.0), base.Exponential(beta=2.0, gamma=0.0)


def weights(rate: float, *, pair: bool) -> Tensor:
    """Labels of an instance of class 0: wrong ones spread evenly, or all in class 1."""
    row = torch.full((CLASSES,), rate / (CLASSES - 1), dtype=torch.float64)
    if pair:
        row[:] = 0.0
        row[1] = rate
    row[TRUE] = 1 - rate
    return row


def descend(
    loss: Loss, labels: Tensor, spread: float, starts: int, steps: int
) -> tuple[float, float]:
    """The share of starts that end at the true class, and the median of its probability."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(starts, CLASSES, generator=generator, dtype=torch.float64)
    logits = (spread * first).requires_grad_()
    targets = labels.expand(starts, -1)
    optimizer = torch.optim.Adam([logits], lr=LR)
    for _ in range(steps):
        optimizer.zero_grad()
        (loss(logits, targets) * starts).backward()
        optimizer.step()
    probs = logits.detach().softmax(1)
    return float((probs.argmax(1) == TRUE).double().mean()), float(probs[:, TRUE].median())


def main() -> None:
    """Print the table of docs/theory.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=400)
    parser.add_argument("--steps", type=int, default=3000)
    args = parser.parse_args()
    even, flips = weights(0.6, pair=False), weights(0.4, pair=True)
    cases = {
        "rising density, TS, tau 0, symmetric 0.6": (TargetSeparation(RISING, tau=0.0), even),
        "rising density, TS, tau 0, pair 0.4": (TargetSeparation(RISING, tau=0.0), flips),
        "rising density, BR, symmetric 0.6": (BinaryReduction(RISING), even),
        "rising density, BR, pair 0.4": (BinaryReduction(RISING), flips),
        "falling density, TS, a 1, symmetric 0.6": (TargetSeparation(FALLING, a=1.0), even),
        "falling density, TS, tau 0, symmetric 0.6": (TargetSeparation(FALLING, tau=0.0), even),
        "falling density, TS, tau 1, symmetric 0.6": (TargetSeparation(FALLING, tau=1.0), even),
        "even density, BR, symmetric 0.6": (BinaryReduction(base.Exponential(beta=-1.0)), even),
    }
    torch.set_num_threads(1)
    for name, (loss, labels) in cases.items():
        found = [descend(loss, labels, spread, args.starts, args.steps) for spread in SPREADS]
        shares = "  ".join(f"{100 * share:3.0f} % (u_t {median:.2f})" for share, median in found)
        proved = [certify(loss, labels, claim=claim).status for claim in ("monotone", "global")]
        print(f"{name:<42}{shares}   monotone {proved[0]}, global {proved[1]}", flush=True)


if __name__ == "__main__":
    main()

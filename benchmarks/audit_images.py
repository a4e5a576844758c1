"""How `lossforge audit` finds images in wrong folders: patch features against the small CNN.

The 1,797 digits of scikit-learn are written as PNG files into class folders, a fifth of them drawn
at random into a wrong one. Each audit sees the folder alone. Prints the table of docs/audit.md; the
seconds are those of the processor, so that other work on the machine matters little.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits

from lossforge.audit import audit, read_subject
from lossforge.noise import corrupt, symmetric

RATE = 0.2
FEATURES = ("patches:100", "patches:400", "pixels")


def write_folders(root: Path, seed: int) -> int:
    """Write digits as <given>/<number>-<true>.png; return how many lie in a wrong folder."""
    digits = load_digits()
    true = torch.from_numpy(digits.target).to(torch.int64)
    generator = torch.Generator().manual_seed(seed)
    given = corrupt(true, symmetric(10, RATE), generator=generator, exact=True).labels
    for number, pixels in enumerate(digits.images):
        path = root / f"{given[number]}" / f"{number:04d}-{true[number]}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.round(pixels * 255 / 16).astype(np.uint8)).save(path)
    return int((given != true).sum())


def is_wrong(where: str) -> bool:
    """Whether an image lies in a wrong folder."""
    path = Path(where)
    return path.parent.name != path.stem.partition("-")[2]


def line(features: str, seed: int) -> str:
    """Audit one folder; a line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        wrong, start = write_folders(Path(folder), seed), time.process_time()
        found = audit(read_subject(folder, features=features), seed=seed, trials=False)
        seconds = time.process_time() - start
        hits = sum(is_wrong(one.where) for one in found.suspects)
    rate, count = found.noise.rate, len(found.suspects)
    cells = [f"`{features}`", found.method.network, f"{seconds:.0f}", f"{count}"]
    cells += [f"{100 * hits / count:.1f} %", f"{100 * hits / wrong:.1f} %"]
    cells.append(f"{100 * rate.value:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f} %)")
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", default=",".join(FEATURES), help="separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="of the wrong folders and the audit")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    head = ("`--features`", "network", "seconds", "suspects", "of these wrong", "of all wrong")
    print(f"| {' | '.join((*head, 'estimated rate'))} |")
    print(f"|{' --- |' * (len(head) + 1)}")
    for features in options.features.split(","):
        print(line(features, options.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

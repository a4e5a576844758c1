"""Draw the transition matrices of four noises on CIFAR-10: the label noise of the literature.

    python examples/transitions.py [--data-dir DIR] [--out transitions.png]

Needs the label files of CIFAR-10N (`lossforge data fetch cifar-n`) and the frozen
instance-dependent labels (`lossforge data doctor cifar10-idn`); no image is read.
"""

import argparse
import sys

import torch

from lossforge import noise
from lossforge.data import human_labels, instance_labels
from lossforge.report import transition_heatmaps

CLASSES = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def main() -> int:
    """Measure the four matrices, print their rates, draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with the label files (default: LOSSFORGE_DATA)")
    parser.add_argument("--out", default="transitions.png", help="picture to write, PNG or SVG")
    options = parser.parse_args()
    try:
        worst = human_labels("cifar10", "worst", data_dir=options.data_dir)
        dependent = instance_labels("cifar10", 0.6, data_dir=options.data_dir)
    except (FileNotFoundError, ValueError) as error:  # a file is missing, or not what it should be
        print(f"error: {error}", file=sys.stderr)
        return 2

    def synthetic(T: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return noise.corrupt(worst.true, T, generator=generator).labels

    settings = {
        "symmetric 0.8": synthetic(noise.symmetric(10, 0.8)),
        "asymmetric 0.4": synthetic(noise.asymmetric("cifar10", 0.4)),
        "instance-dependent 0.6": dependent,
        "CIFAR-10N worst": worst.given,
    }
    matrices = {}
    for name, given in settings.items():
        print(f"{name:24}{100 * noise.noise_rate(worst.true, given):6.2f} % of labels are wrong")
        matrices[name] = noise.empirical_transition(worst.true, given, 10)
    transition_heatmaps(matrices, CLASSES).savefig(options.out, dpi=150)
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

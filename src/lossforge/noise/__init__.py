"""Label noise: transition matrices, injection, and measuring what is there."""

from . import published
from .inject import Corruption, corrupt
from .instance import InstanceNoise, instance_dependent, instance_rows, part_dependent
from .measure import (
    NoiseEstimate,
    confusion_counts,
    empirical_transition,
    estimate_noise,
    noise_rate,
)
from .spec import NoiseSpec
from .transition import CLASS_MAPS, asymmetric, flips, pair, symmetric, transition

__all__ = [
    "CLASS_MAPS",
    "Corruption",
    "InstanceNoise",
    "NoiseEstimate",
    "NoiseSpec",
    "asymmetric",
    "confusion_counts",
    "corrupt",
    "empirical_transition",
    "estimate_noise",
    "flips",
    "instance_dependent",
    "instance_rows",
    "noise_rate",
    "pair",
    "part_dependent",
    "published",
    "symmetric",
    "transition",
]

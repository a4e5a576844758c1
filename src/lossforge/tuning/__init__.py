"""Search over a loss's parameters on noisy labels only."""

from .result import Comparison, Trial, Tuned
from .spaces import Space, space
from .tuner import Progress, tune

__all__ = ["Comparison", "Progress", "Space", "Trial", "Tuned", "space", "tune"]

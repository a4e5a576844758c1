"""Search over a loss's parameters on noisy labels only."""

from .spaces import Space, space
from .tune import Comparison, SearchProgress, Trial, Tuned, tune

__all__ = ["Comparison", "SearchProgress", "Space", "Trial", "Tuned", "space", "tune"]

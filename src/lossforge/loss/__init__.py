"""The `Loss` contract and the algebra of losses."""

from .linear import LinearLoss
from .loss import Loss, ProbabilityLoss, WeightedSum
from .policy import Policy
from .scores import Scores

__all__ = [
    "LinearLoss",
    "Loss",
    "Policy",
    "ProbabilityLoss",
    "Scores",
    "WeightedSum",
]

"""The `Loss` contract and the algebra of losses."""

from .loss import Loss, ProbabilityLoss, WeightedSum
from .policy import Policy
from .scores import Scores

__all__ = [
    "Loss",
    "Policy",
    "ProbabilityLoss",
    "Scores",
    "WeightedSum",
]

"""The `Loss` contract and the algebra of losses."""

from .loss import Loss, ProbabilityLoss, WeightedSum
from .policy import Policy, no_parameter, parameters_of
from .scores import Rivalry, Scores

__all__ = [
    "Loss",
    "Policy",
    "ProbabilityLoss",
    "Rivalry",
    "Scores",
    "WeightedSum",
    "no_parameter",
    "parameters_of",
]

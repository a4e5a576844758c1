"""Constructions: from univariate base functions to multiclass losses, and wrappers of losses."""

from .classes import ClassMean, PowerDistance, Sparsity
from .correction import BackwardCorrection, ForwardCorrection
from .negative import Emphasised, Negative, complementary_labels
from .normalised import Normalised, NormalisedNegative
from .pairs import BALANCE, MANY_RIVALS, BinaryReduction, default_mu
from .target import TargetLoss, TargetSeparation
from .views import ViewsDivergence, check_weights
from .wrappers import EpsSoftmax, LogitClip, Sharpened, Wrapper

__all__ = [
    "BALANCE",
    "MANY_RIVALS",
    "BackwardCorrection",
    "BinaryReduction",
    "ClassMean",
    "Emphasised",
    "EpsSoftmax",
    "ForwardCorrection",
    "LogitClip",
    "Negative",
    "Normalised",
    "NormalisedNegative",
    "PowerDistance",
    "Sharpened",
    "Sparsity",
    "TargetLoss",
    "TargetSeparation",
    "ViewsDivergence",
    "Wrapper",
    "check_weights",
    "complementary_labels",
    "default_mu",
]

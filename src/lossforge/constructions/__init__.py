"""Constructions: from univariate base functions to multiclass losses, and wrappers of losses."""

from .classes import ClassMean, PowerDistance, Sparsity
from .correction import BackwardCorrection, ForwardCorrection
from .cosine import BoundedCosine
from .negative import Emphasised, Negative, complementary_labels
from .normalised import Normalised, NormalisedNegative
from .pairs import BinaryReduction
from .parts import Declared, Part
from .rivals import ByRivals
from .target import TargetLoss, TargetSeparation
from .views import ViewsDivergence
from .wrappers import EpsSoftmax, LogitClip, Sharpened, Wrapper

__all__ = [
    "BackwardCorrection",
    "BinaryReduction",
    "BoundedCosine",
    "ByRivals",
    "ClassMean",
    "Declared",
    "Emphasised",
    "EpsSoftmax",
    "ForwardCorrection",
    "LogitClip",
    "Negative",
    "Normalised",
    "NormalisedNegative",
    "Part",
    "PowerDistance",
    "Sharpened",
    "Sparsity",
    "TargetLoss",
    "TargetSeparation",
    "ViewsDivergence",
    "Wrapper",
    "complementary_labels",
]

"""Theory that runs: the noise a loss tolerates, proved or refuted, and losses made for a noise."""

from .certify import InstanceVerdict, certify, certify_instances
from .design import Design, curvature_interval, design
from .enclosure import Table, enclose, from_intervals
from .frontier import Frontier, frontier, rate_text, wrong_labels
from .ratio_tests import Allowed, allowed_ratio, coefficient_interval, threshold_interval
from .ratios import Ratios, ratios
from .symmetry import Symmetry, is_symmetric
from .verdict import CLAIMS, Claim, Level, Status, Verdict, Witness
from .weights import Rows, read_noise

__all__ = [
    "CLAIMS",
    "Allowed",
    "Claim",
    "Design",
    "Frontier",
    "InstanceVerdict",
    "Level",
    "Ratios",
    "Rows",
    "Status",
    "Symmetry",
    "Table",
    "Verdict",
    "Witness",
    "allowed_ratio",
    "certify",
    "certify_instances",
    "coefficient_interval",
    "curvature_interval",
    "design",
    "enclose",
    "from_intervals",
    "frontier",
    "is_symmetric",
    "rate_text",
    "ratios",
    "read_noise",
    "threshold_interval",
    "wrong_labels",
]

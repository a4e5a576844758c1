"""What noise is in labels of unknown quality, and which loss fits it."""

from .auditor import Progress, audit, read_subject
from .estimate import Confusion, Estimated, Interval, estimate
from .judge import CANDIDATES, Candidate, Recommendation
from .result import Audit, Method
from .subject import Subject
from .suspects import Suspect

__all__ = [
    "CANDIDATES",
    "Audit",
    "Candidate",
    "Confusion",
    "Estimated",
    "Interval",
    "Method",
    "Progress",
    "Recommendation",
    "Subject",
    "Suspect",
    "audit",
    "estimate",
    "read_subject",
]

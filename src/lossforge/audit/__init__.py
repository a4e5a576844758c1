"""Estimate the noise in labels of unknown quality, and recommend a loss for it."""

from .audit import Audit, Method, Suspect, audit
from .candidates import CANDIDATES, Candidate, Recommendation
from .noise import Confusion, Estimated, Interval, estimate
from .read import Progress, read_subject
from .subject import Subject

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

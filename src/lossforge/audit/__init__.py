"""Estimate the noise in labels of unknown quality, and recommend how to train on them."""

from .audit import audit
from .candidates import CANDIDATES, Candidate, Recommendation
from .findings import Audit, Method, Suspect
from .folder import check_folder, default_folder
from .noise import Confusion, Estimated, Interval, estimate
from .progress import Progress
from .read import read_subject
from .recipes import PROCEDURES, Recipe
from .subject import Subject

__all__ = [
    "CANDIDATES",
    "PROCEDURES",
    "Audit",
    "Candidate",
    "Confusion",
    "Estimated",
    "Interval",
    "Method",
    "Progress",
    "Recipe",
    "Recommendation",
    "Subject",
    "Suspect",
    "audit",
    "check_folder",
    "default_folder",
    "estimate",
    "read_subject",
]

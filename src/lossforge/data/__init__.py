"""Data sets in one shape, with the noise that people and papers put into their labels."""

from . import augment, own
from .dataset import Dataset, Inputs, Split, Transform, subset
from .doctor import Finding, diagnose
from .folders import load as folder
from .human import HumanLabels, human_labels, instance_labels
from .images import ImageFiles
from .labels import check_noise, label_files, noisy_labels
from .patches import patch_features, with_patches
from .registry import fetch, find, load, names
from .source import Source
from .tables import load as table

__all__ = [
    "Dataset",
    "Finding",
    "HumanLabels",
    "ImageFiles",
    "Inputs",
    "Source",
    "Split",
    "Transform",
    "augment",
    "check_noise",
    "diagnose",
    "fetch",
    "find",
    "folder",
    "human_labels",
    "instance_labels",
    "label_files",
    "load",
    "names",
    "noisy_labels",
    "own",
    "patch_features",
    "subset",
    "table",
    "with_patches",
]

"""The list of all data sets, and look-up by name.

To add one, write a module with its `SOURCES`, import it here and add it to `MODULES`.
"""

from pathlib import Path
from typing import Any

from ..errors import unknown
from . import cifar, clothing, embedded, human, intents, webvision
from .dataset import Dataset
from .source import PathLike, Source

MODULES = (embedded, cifar, human, intents, webvision, clothing)
SOURCES: dict[str, Source] = {
    source.name: source for module in MODULES for source in module.SOURCES
}


def find(name: str) -> Source:
    """Look up what is known of a data set without loading it; the name may be in any case.

    >>> find("digits").num_classes, find("digits").class_map
    (10, 'mnist')
    """
    try:
        return SOURCES[name.lower()]
    except KeyError:
        raise unknown("data set", name, SOURCES) from None


def load(name: str, *, data_dir: PathLike | None = None, **options: Any) -> Dataset:
    """Load a data set by name.

    Args:
        name: One of `names()`; "digits" and its relatives need no download.
        data_dir: The folder to search, instead of those of LOSSFORGE_DATA or the user's cache.
        options: Passed to the function that reads it, such as `features` of texts and images.

    Example:
        >>> load("digits").num_classes
        10
    """
    source = find(name)
    if source.load is None:
        raise ValueError(f"{source.name} is not a data set of its own: {source.summary}")
    if source.layout:
        options["data_dir"] = data_dir
    return source.load(**options)


def names() -> list[str]:
    """List the names that `load` takes."""
    return [name for name, source in SOURCES.items() if source.load is not None]


def fetch(name: str, *, data_dir: PathLike | None = None) -> list[Path]:
    """Download the files of a data set and check them; keep those that exist.

    Returns:
        The files of the data set, none for data that need no download.
    """
    return find(name).fetch(data_dir)

"""Pictures that belong together, with what a reader needs to trust them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..benchmark.records import Record
from .results import Column, Results


@dataclass(frozen=True)
class Panel:
    """One picture.

    Args:
        name: Of its files.
        label: What it shows, for those who cannot see it.
        draw: Makes the figure, with its legend or without.
    """

    name: str
    label: str
    draw: Callable[[bool], Any]


@dataclass(frozen=True)
class Group:
    """Pictures of one kind.

    Args:
        kind: One word.
        title: Its heading.
        caption: What the pictures show and how to read them.
        panels: The pictures.
        runs: The runs that they are made of.
        names: What the lines are called and which colour each has, where the legend is shared.
    """

    kind: str
    title: str
    caption: str
    panels: Sequence[Panel]
    runs: Sequence[Record]
    names: Mapping[str, int] = field(default_factory=dict)


def full_label(results: Results, column: Column) -> str:
    """What a column is called where the data set is not said."""
    return f"{column.data}, {column.label}" if len(results.data) > 1 else column.label


def stem(kind: str, label: str) -> str:
    """The name of a file without its ending."""
    words = f"{kind} {label}".lower().replace("+", " plus ")  # BEF+ is not BEF
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")

"""Pictures that belong together, with what a reader needs to trust them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..benchmark.records import Record
from .results import Column, Results

LONGEST = 150  # letters of a file's name, which systems limit to 255 bytes


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
        notes: What is not drawn, and why.
    """

    kind: str
    title: str
    caption: str
    panels: Sequence[Panel]
    runs: Sequence[Record]
    names: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def full_label(results: Results, column: Column) -> str:
    """What a column is called where the data set is not said."""
    return f"{column.data}, {column.label}" if len(results.data) > 1 else column.label


def setting_label(results: Results, column: Column) -> str:
    """What a column's setting is called where neither the data set nor the test matters."""
    return f"{column.data}, {column.setting}" if len(results.data) > 1 else column.setting


def stem(kind: str, label: str) -> str:
    """The name of a file without its ending."""
    words = f"{kind} {label}".lower().replace("+", " plus ")  # BEF+ is not BEF
    return re.sub(r"[^a-z0-9.]+", "-", words)[:LONGEST].strip("-.")


def distinct(groups: Sequence[Group]) -> list[Group]:
    """The groups with a name for every panel that no other has, so no file is overwritten.

    Labels that differ may make one name: "a=8" and "a=-8" do.
    """
    taken = {panel.name for group in groups for panel in group.panels}
    used: set[str] = set()
    found = []
    for group in groups:
        panels = []
        for panel in group.panels:
            name, count = panel.name, 1
            while name in used or (count > 1 and name in taken):
                count += 1
                name = f"{panel.name}-{count}"
            used.add(name)
            panels.append(replace(panel, name=name))
        found.append(replace(group, panels=panels))
    return found

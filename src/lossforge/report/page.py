"""The report as one page that needs nothing else: no network, no other file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ..benchmark.records import Grid, Measure, Record
from ..errors import extra
from .group import Group
from .results import Results
from .sheets import Sheet
from .style import COLOURS, DASHES, inline_svg

PROTOCOLS = {
    "reduced": "follow a reduced protocol (less data, a smaller network or a shorter schedule)",
    "own": "follow a protocol of their own",
}


@dataclass(frozen=True)
class Section:
    """Tables under one heading.

    Args:
        id: For links to it.
        title: Its heading.
        text: A sentence before the tables.
        sheets: The tables.
        folded: Tables that are shown when asked for.
    """

    id: str
    title: str
    text: str
    sheets: Sequence[Sheet]
    folded: Sequence[Sheet] = field(default_factory=list)


def page(
    results: Results,
    sections: Sequence[Section],
    groups: Sequence[Group],
    *,
    command: str,
    grids: Sequence[Grid] = (),
    measure: Measure = "last",
    source: str = "",
) -> str:
    """Write the page.

    Args:
        results: The runs.
        sections: The tables.
        groups: The figures.
        command: The command that makes this report.
        grids: The grids that the runs belong to.
        measure: Which accuracy of a run the list of runs shows.
        source: Where the paper's numbers come from, if there are any.
    """
    jinja = extra("jinja2", "bench")
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    environment.filters["fine"] = _fine
    template = environment.from_string(
        (resources.files(__package__) / "page.html.jinja").read_text(encoding="utf-8")
    )
    titles = [grid.title or grid.name for grid in grids]
    markup = extra("markupsafe", "bench").Markup
    text: str = template.render(
        title=titles[0] if len(titles) == 1 else f"Noisy labels on {', '.join(results.data)}",
        facts=_facts(results, grids),
        banner=_banner(results.records),
        sections=sections,
        figures=[_figure(group, i, markup) for i, group in enumerate(groups)],
        command=command,
        benches=[f"lossforge bench {grid.name}" for grid in grids],
        environment=_environment(results.records),
        runs=[_run(record, measure) for record in results.records],
        source=source,
    )
    return text


def _figure(group: Group, place: int, markup: Any) -> dict[str, Any]:
    panels = []
    for i, panel in enumerate(group.panels):
        svg = inline_svg(panel.draw(False), f"f{place}-{i}", panel.label)
        panels.append({"name": panel.name, "svg": markup(svg)})
    legend = [
        {
            "name": name,
            "place": i,
            "colour": COLOURS[i % len(COLOURS)],
            "dashes": _dashes(DASHES[i // len(COLOURS) % len(DASHES)]),
        }
        for name, i in group.names.items()
    ]
    commands = [run.about["command"] for run in group.runs if run.about.get("command")]
    return {
        "id": group.kind,
        "title": group.title,
        "caption": group.caption,
        "notes": group.notes,
        "panels": panels,
        "legend": legend,
        "commands": list(dict.fromkeys(commands)),
    }


def _dashes(style: Any) -> str:
    return "" if style == "-" else " ".join(f"{length:g}" for length in style[1])


def _facts(results: Results, grids: Sequence[Grid]) -> list[tuple[str, str]]:
    planned = len({run for grid in grids for run in grid.runs} | {r.id for r in results.records})
    done = len(results.records)
    seconds = sum(record.about.get("seconds", 0) for record in results.records)
    settings = len({column.key for column in results.columns})
    return [
        ("runs", f"{done:,}" if done == planned else f"{done:,} of {planned:,}"),
        ("losses", str(len(results.losses))),
        ("settings", str(settings)),
        ("seeds", str(len(results.seeds))),
        ("training", _duration(seconds)),
    ]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _banner(records: Sequence[Record]) -> str:
    """What to say if not every run follows the paper's protocol."""
    parts = []
    for name, text in PROTOCOLS.items():
        count = sum(record.spec.get("protocol") == name for record in records)
        if count:
            share = "all" if count == len(records) else f"{count} of the"
            parts.append(f"{share} {len(records)} runs {text}")
    if not parts:
        return ""
    joined = ", and ".join(parts)
    return f"{joined[0].upper()}{joined[1:]}. These are not the published conditions."


def _environment(records: Sequence[Record]) -> list[tuple[str, list[str]]]:
    """Everything the runs say of where they were made, each value once."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        about = record.about
        known = {**about.get("versions", {}), "device": about.get("device")}
        commit = about.get("commit")
        if commit:
            changed = "" if about.get("clean_tree", True) else " (with changes)"
            known["commit"] = f"{commit}{changed}"
        known |= {"machine": about.get("host"), "threads": record.spec.get("threads")}
        for name, value in known.items():
            if value is not None:
                found.setdefault(name, {})[str(value)] = None
    return [(name, list(values)) for name, values in found.items()]


def _run(record: Record, measure: Measure) -> dict[str, Any]:
    tests = record.tests
    value = record.measure(measure, tests[0]) if tests else None
    return {
        "id": record.id,
        "spec": record.spec,
        "value": value,
        "seconds": record.about.get("seconds"),
        "command": record.about.get("command", ""),
        "failed": record.failed,
    }


def _fine(text: str) -> Any:
    """A number with what follows it set smaller, and with true minus signs."""
    markupsafe = extra("markupsafe", "bench")
    first, _, rest = re.sub(r"-(?=[\d.])", "\u2212", text).partition(" ")
    tail = markupsafe.Markup(" <small>{}</small>").format(rest) if rest else ""
    return markupsafe.escape(first) + tail

"""Self-contained pages, without network or other files: of a report and of an audit."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ..benchmark.records import Grid, Measure, Record
from ..errors import extra
from ..style import COLOURS, DASHES, inline_svg
from ..text import duration, printable
from .finding import Finding, seeds_text
from .panels import Group
from .results import Results
from .review import pairs, review_data
from .tables import Sheet

PROTOCOLS = {
    "reduced": "follow a reduced protocol (less data, a smaller network or a shorter schedule)",
    "own": "follow a protocol of their own",
}
MOST_CLASSES = 20  # of a transition matrix that is shown in full
VERDICTS = {
    "PROVED": "proved",
    "REFUTED": "no guarantee for this noise",
    "HOPELESS": "no loss can have a guarantee for this noise",
    "UNDECIDED": "not decided",
    "UNCERTIFIED": "not covered by the theory",
}
TOPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # ends of the line that a share is drawn on
AUDIT_FILES = (
    ("suspects.csv", "all suspects"),
    ("transition.csv", "the matrix"),
    ("audit.json", "everything"),
)


@dataclass(frozen=True)
class Section:
    """Tables under one heading.

    Args:
        id: Target of links.
        title: The heading.
        text: A sentence before the tables.
        sheets: The tables.
        folded: Tables that are hidden until the reader opens them, by what the reader presses.
        figure: The kind of the group of figures above the tables, if any.
    """

    id: str
    title: str
    text: str
    sheets: Sequence[Sheet]
    folded: Mapping[str, Sequence[Sheet]] = field(default_factory=dict)
    figure: str = ""


def page(
    results: Results,
    finding: Finding,
    sections: Sequence[Section],
    groups: Sequence[Group],
    *,
    command: str,
    files: Sequence[str] = (),
    grids: Sequence[Grid] = (),
    measure: Measure = "last",
    source: str = "",
) -> str:
    """Write the page of a report.

    Args:
        results: The runs.
        finding: What the runs show, in sentences.
        sections: The tables.
        groups: The figures.
        command: The command that makes this report.
        files: Names of the files with the tables, beside the page.
        grids: The grids that the runs belong to.
        measure: Which accuracy of a run the list of runs shows.
        source: The source of the paper's numbers, if there are any.
    """
    titles = [grid.title or grid.name for grid in grids]
    markup = extra("markupsafe", "bench").Markup
    figures = {group.kind: _figure(group, i, markup) for i, group in enumerate(groups)}
    taken = {section.figure for section in sections}
    text: str = _template("page.html.jinja").render(
        title=titles[0] if len(titles) == 1 else f"Noisy labels on {', '.join(results.data)}",
        facts=_facts(results, grids),
        finding=finding,
        seeds=seeds_text(finding.seeds),
        protocol=_protocol(results.records),
        sections=sections,
        figures=figures,
        rest=[figure for kind, figure in figures.items() if kind not in taken],
        files=files,
        command=command,
        benches=[shlex.join(["lossforge", "bench", grid.name]) for grid in grids],
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
            "strong": name in group.strong,
        }
        for name, i in sorted(group.names.items(), key=lambda item: item[0] not in group.strong)
    ]
    runs = {run.id: run.about.get("command") for run in group.runs}
    return {
        "id": group.kind,
        "title": group.title,
        "caption": group.caption,
        "notes": group.notes,
        "panels": panels,
        "legend": legend,
        "runs": len(runs),
        "commands": list(dict.fromkeys(filter(None, runs.values()))),
    }


def _dashes(style: Any) -> str:
    return "" if style == "-" else " ".join(f"{length:g}" for length in style[1])


def _facts(results: Results, grids: Sequence[Grid]) -> list[tuple[str, str]]:
    planned = len({run for grid in grids for run in grid.runs} | {r.id for r in results.records})
    done = len(results.records)
    times = [one.about["seconds"] for one in results.records if "seconds" in one.about]
    facts = [
        ("runs", f"{done:,}" if done == planned else f"{done:,} of {planned:,}"),
        ("losses", str(len(results.losses))),
        ("settings", str(len(results.settings))),
        ("seeds", str(len(results.seeds))),
    ]
    if len(times) == done:  # packed runs do not say theirs
        facts.append(("training", duration(sum(times))))
    return facts


def _protocol(records: Sequence[Record]) -> str:
    """Say how many runs do not follow the paper's protocol; nothing if all do."""
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
    """Collect versions, machines and commits of the runs, each value once."""
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
    """Set what follows a number smaller, and write true minus signs."""
    markupsafe = extra("markupsafe", "bench")
    first, _, rest = re.sub(r"-(?=[\d.])", "\u2212", printable(text)).partition(" ")
    tail = markupsafe.Markup(" <small>{}</small>").format(rest) if rest else ""
    return markupsafe.escape(first) + tail


def audit_page(
    found: Mapping[str, Any],
    *,
    command: str,
    pictures: Mapping[int, str] | None = None,
    cleaning: str = "",
) -> str:
    """Write the page of an audit, on which its suspects are reviewed.

    Args:
        found: The result of `lossforge.audit.Audit.to_dict`.
        command: The command that repeats the audit.
        pictures: Images of suspects by index, as data URLs.
        cleaning: The command that applies exported decisions, if the data can be cleaned.
    """
    classes, markup = found["data"]["classes"], extra("markupsafe", "bench").Markup
    text: str = _template("audit.html.jinja").render(
        found=found,
        command=command,
        cleaning=cleaning,
        facts=_audit_facts(found),
        files=AUDIT_FILES,
        top=_top(found["noise"]["high"]),
        most=_top(max([one["high"] for one in found["confusions"]], default=1.0)),
        pictures=pictures or {},
        review=markup(review_data(found, pictures or {})),
        pairs=pairs(found),
        places={name: place for place, name in enumerate(classes)},
        matrix=len(classes) <= MOST_CLASSES,
        verdicts=VERDICTS,
    )
    return text


def _top(share: float) -> float:
    """Return where the line ends that a share is drawn on."""
    return next(top for top in TOPS if share <= top)


def _audit_facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    data, noise = found["data"], found["noise"]
    what = "images" if data["kind"] == "images" else "rows"
    return [
        (what, f"{data['rows']:,}"),
        ("classes", f"{len(data['classes']):,}"),
        ("labels wrong", f"{100 * noise['rate']:.1f} %"),
        ("suspicious", f"{len(found['suspects']):,}"),
        ("train with", found["recommended"]["name"]),
    ]


def _template(name: str) -> Any:
    jinja = extra("jinja2", "bench")
    environment = jinja.Environment(
        loader=jinja.FunctionLoader(_source),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {"fine": _fine, "percent": lambda share: f"{100 * share:.1f} %"}
    return environment.get_template(name)


def _shown(value: Any) -> Any:
    """Show control characters of a text; markup is the page's own."""
    return printable(value, "\n") if type(value) is str else value


def _source(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")

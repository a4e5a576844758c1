"""An audit as one page that needs nothing else: no network, no other file."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ..errors import extra

SHOWN = 60  # suspects; the table beside the page has all
MATRIX = 20  # classes, at most, whose matrix is shown whole
VERDICTS = {
    "PROVED": "better",
    "REFUTED": "worse",
    "HOPELESS": "worse",
    "UNDECIDED": "",
    "UNCERTIFIED": "",
}


def audit_page(
    found: Mapping[str, Any], *, command: str, pictures: Mapping[int, str] | None = None
) -> str:
    """Write the page of an audit.

    Args:
        found: What `lossforge.audit.Audit.to_json` gives.
        command: The command that does the audit again.
        pictures: Small images of suspects by their index, as data addresses.
    """
    jinja = extra("jinja2", "bench")
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    markup = extra("markupsafe", "bench").Markup
    report = _template("page.html.jinja")
    text: str = environment.from_string(_template("audit.html.jinja")).render(
        found=found,
        command=command,
        facts=_facts(found),
        pictures=pictures or {},
        suspects=found["suspects"][:SHOWN],
        matrix=len(found["data"]["classes"]) <= MATRIX,
        verdicts=VERDICTS,
        # the look of the report and its sorting of tables, written once
        style=markup(_between(report, "style")),
        script=markup(_sorting(_between(report, "script"))),
    )
    return text


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    data, noise = found["data"], found["noise"]
    what = "images" if data["kind"] == "images" else "rows"
    return [
        (what, f"{data['rows']:,}"),
        ("classes", f"{len(data['classes']):,}"),
        ("labels wrong", f"{100 * noise['rate']:.1f} %"),
        ("95 % interval", f"{100 * noise['low']:.1f} to {100 * noise['high']:.1f} %"),
        ("suspicious", f"{len(found['suspects']):,}"),
        ("loss", found["recommended"]["name"]),
    ]


def _template(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _between(source: str, element: str) -> str:
    """What an element of a template holds."""
    found = re.search(rf"<{element}>\n(.*?)</{element}>", source, re.S)
    assert found is not None
    return found[1]


def _sorting(script: str) -> str:
    """The part of the report's script that sorts tables."""
    return script.partition("for (const section of")[0]

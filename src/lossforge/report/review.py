"""The suspects of an audit, as the script of its page reads them."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..text import csv_cell, printable


def review_data(found: Mapping[str, Any], pictures: Mapping[int, str]) -> str:
    """Write the suspects as JSON that can stand inside a script element.

    Args:
        found: The result of `lossforge.audit.Audit.to_dict`.
        pictures: Images of suspects by index, as data URLs.
    """
    data = found["data"]
    places = {name: place for place, name in enumerate(data["classes"])}
    suspects = [
        {
            "index": one["index"],
            "given": places[one["given"]],
            "suggested": places[one["suggested"]],
            "confidence": [one["confidence"], one["suggested_confidence"]],
            "where": printable(one["where"], "\n"),
            "ids": [printable(f"{name} {value}", "\n") for name, value in one["ids"].items()],
            "text": printable(one["text"], "\n"),
            "picture": pictures.get(one["index"], ""),
        }
        for one in found["suspects"]
    ]
    classes = [{"name": printable(name, "\n"), "cell": csv_cell(name)} for name in data["classes"]]
    content = {"key": _key(data), "classes": classes, "suspects": suspects}
    return json.dumps(content).replace("<", "\\u003c")  # no text can end the element


def _key(data: Mapping[str, Any]) -> str:
    """Name what decisions are about: a decision on the same labels outlives another audit."""
    content = data["sha256"] or json.dumps([data["name"], data["rows"], data["notes"]])
    return f"lossforge review {content} {data['label'] or ''}"


def pairs(found: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """Count the suspects by suggested and given class."""
    return Counter((one["suggested"], one["given"]) for one in found["suspects"])

"""How damage is noticed: seals, strict JSON, and the shape of a record.

A seal is the hash of the content that it is stored with. It shows accidents (a flipped bit, a file
that was cut, an edit), not forgery: a hash without a key can be computed by anybody.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .spec import HASHED, RunSpec

SHOWN = 40  # characters of a wrong value


class Damaged(ValueError):  # noqa: N818
    """A file that is not as it was written."""


# Seals

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def seal(content: Mapping[str, Any]) -> str:
    """Return the hash of an object without its seal, whatever the order of its keys."""
    own = {key: value for key, value in content.items() if key != "seal"}
    return hashlib.sha256(_CANONICAL.encode(own).encode()).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its seal."""
    return {**content, "seal": seal(content)}


# Strict JSON


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; raise `Damaged` unless its seal, if any, matches it."""
    if path.exists() and not path.is_file():  # a pipe would block
        raise Damaged(f"{path} is damaged: it is not a file")
    content = path.read_bytes()
    try:
        return parse_object(content)
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}") from None


def parse_object(text: bytes) -> dict[str, Any]:
    """Parse a JSON object; raise ValueError unless it is valid and its seal, if any, matches.

    Keys that occur twice, numbers that are not finite and lone surrogates are refused.
    """
    try:
        content = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
        if not isinstance(content, dict):
            raise ValueError(f"expected an object, got {type(content).__name__}")
        digest = seal(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if content.get("seal", digest) != digest:
        raise ValueError("its content does not match its seal")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"numbers must be finite, got {text}")


# Shapes

Count = Annotated[int, Field(ge=1, le=10**9)]
Percent = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(ge=0)]


class Shape(BaseModel):
    """Base of the shapes: what they do not name is not checked."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")


class Accuracies(Shape):
    """Accuracies on a test set."""

    top1: Percent | None
    top5: Percent | None = None


class Epoch(Shape):
    """The metrics of an epoch, as `lossforge.training.train` returns them."""

    epoch: Count
    tests: dict[str, Accuracies]
    lr: Positive | None = None
    loss: float | None = None
    accuracy: Percent | None = None
    validation: Percent | None = None
    noise_fit: Percent | None = None
    noise_recovered: Percent | None = None
    clean_fit: Percent | None = None


class RecordShape(Shape):
    """The content of a record. Unknown keys are refused: one may be a seal with a flipped bit."""

    model_config = ConfigDict(extra="forbid")

    id: str
    spec: dict[str, Any]
    classes: Count
    noise_rate: Share | None
    metrics: list[Epoch]
    parameters: str
    transition: list[list[Positive]] | None = None
    failed: str | None = None
    loss_parameters: dict[str, Any] | None = None
    tested_as_given: bool = False
    seal: str | None = None


class AboutShape(Shape):
    """The circumstances of a run, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = None
    seconds: Positive = 0
    epoch_seconds: list[float] = []
    versions: dict[str, str] = {}
    commit: str | None = None
    clean_tree: bool | None = None
    host: str | None = None
    device: str | None = None
    instructions: str | None = None
    kernel: str | None = None
    processes: Count | None = None
    command: str = ""
    seal: str | None = None


class GridShape(Shape):
    """The description that a grid leaves in its store."""

    name: str | None = None
    title: str | None = None
    table: str | None = None
    runs: list[str]


def check_shape(shape: type[Shape], content: Mapping[str, Any]) -> None:
    """Raise ValueError unless an object has a shape, with values in their ranges."""
    try:
        shape.model_validate(content)
    except ValidationError as error:
        raise ValueError(first_line(error)) from None


def first_line(error: ValidationError) -> str:
    """Describe the first of the wrong values in one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {shorten(first['input'])}"


def shorten(value: object) -> str:
    """Write a wrong value for a message."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def check_record(content: Mapping[str, Any], run: str) -> None:
    """Raise ValueError unless an object can be the record of a run, whose id is its spec's hash."""
    check_shape(RecordShape, content)
    spec = content["spec"]
    if missing := [name for name in HASHED if name not in spec]:
        raise ValueError(f"its spec has no {', '.join(missing)}")
    try:
        found = RunSpec.model_validate(spec).id
    except ValidationError as error:
        raise ValueError(f"its spec cannot be read: {first_line(error)}") from None
    if found != content["id"]:
        raise ValueError(f"its spec is that of run {found}, its id {content['id']}")
    if found != run:
        raise ValueError(f"it is a copy of run {found}, in a folder of another name")

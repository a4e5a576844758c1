"""Grids of runs, from TOML: shipped presets and the user's own files."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..errors import SpecError
from .spec import Frozen, PartSpec, RunSpec, check

PART_FIELDS = set(PartSpec.model_fields)


class GridSpec(Frozen):
    """A named experiment: one or more grids that belong to one table or figure."""

    name: str = Field(pattern=r"^\w[\w.+-]*(/\w[\w.+-]*)*$")
    title: str = ""
    table: str | None = None
    figure: str | None = None
    parts: list[PartSpec]

    def runs(self) -> list[RunSpec]:
        """Every run of every part, checked."""
        runs = [run for part in self.parts for run in part.runs()]
        for run in runs:
            check(run)
        return runs


def presets() -> list[str]:
    """Names of the grids that come along."""
    root = Path(str(resources.files(__package__) / "presets"))
    return sorted(
        path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.toml")
    )


def read_grid(name: str) -> GridSpec:
    """Read a shipped grid by its name, or a TOML file by its path."""
    if name in presets():
        path = Path(str(resources.files(__package__) / "presets" / f"{name}.toml"))
    else:
        path = Path(name)
        if not path.is_file():
            raise SpecError(f"no preset and no file {name!r}; presets: {', '.join(presets())}")
    try:
        return make_grid(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from None


def _table(found: Any) -> dict[str, Any]:
    if found is not None and not isinstance(found, dict):
        raise SpecError(f"training must be a table, [training], got {found!r}")
    return found or {}


def make_grid(table: dict[str, Any]) -> GridSpec:
    """Check a table of settings; what stands outside the parts holds for all of them."""
    shared = {key: value for key, value in table.items() if key in PART_FIELDS}
    own = {key: value for key, value in table.items() if key not in PART_FIELDS | {"part"}}
    parts = []
    given = table.get("part", [{}])
    if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
        raise SpecError(f"part must be tables, [[part]], got {given!r}")
    for part in given:
        training = {**_table(shared.get("training")), **_table(part.get("training"))}
        parts.append({**shared, **part, "training": training})
    try:
        return GridSpec.model_validate({**own, "parts": parts})
    except ValidationError as error:
        first = error.errors()[0]
        steps = [str(step) for step in first["loc"] if step != "parts"]
        place = ".".join(steps[1:] if len(parts) == 1 and steps[0] == "0" else steps)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise SpecError(f"{place}: {first['msg']}{more}") from None

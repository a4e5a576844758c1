"""Putting runs together from what a user says: a data set, some names, `key=value` settings."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ..data import registry
from ..data.source import PathLike
from ..errors import SpecError
from ..training import Settings
from .grid import GridSpec, make_grid, presets, read_grid
from .spec import PartSpec, RunSpec

SETTINGS = {field.name for field in fields(Settings)}
ELSEWHERE = "digits"  # whose protocol data take that no preset is about


def protocol(data: str) -> PartSpec:
    """The grid of the shipped presets that is about a data set, its published one first."""
    for name in sorted(presets(), key=lambda name: not name.startswith("paper/")):
        for part in read_grid(name).parts:
            if part.data == data:
                return part
    return protocol(ELSEWHERE)


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` texts; a value is JSON, or else text as it stands."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise SpecError(f"a setting must be key=value, got {text!r}")
        try:
            found[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            found[key.strip()] = value.strip()
    return found


def change(table: dict[str, Any], settings: dict[str, Any], allowed: set[str]) -> dict[str, Any]:
    """A table of a grid or run with other settings, those of training in their place."""
    unknown = sorted(set(settings) - allowed - SETTINGS)
    if unknown:
        known = ", ".join(sorted(allowed | SETTINGS))
        raise SpecError(f"unknown setting {unknown[0]!r}, known: {known}")
    training = {key: value for key, value in settings.items() if key in SETTINGS}
    own = {key: value for key, value in settings.items() if key not in SETTINGS}
    if training.keys() & {"l1_decay", "weight_decay"}:
        own["published_decay"] = False  # what the user says holds for every loss
    return {**table, **own, "training": {**table["training"], **training}}


def one_run(
    data: str, noise: str, loss: str, *, seed: int = 0, settings: dict[str, Any] | None = None
) -> RunSpec:
    """A run by the protocol of its data set, but for the settings given."""
    part = protocol(data)
    settings = dict(settings or {})
    table = part.model_dump(exclude_none=True)
    if part.data != data:
        table |= {"data": data, "data_options": {}, "subset": None, "protocol": "own"}
    if settings:
        table["protocol"] = "own"
    allowed = set(RunSpec.model_fields) - {"loss", "expression", "seed", "noise", "training"}
    table = change(table, settings, allowed | {"preset", "published_decay"})
    table |= {"noise": [noise], "losses": [loss], "seeds": [seed]}
    (run,) = make_grid({"name": "train", **table}).runs()
    return run


def narrow(
    grid: GridSpec,
    *,
    losses: Sequence[str] = (),
    noise: Sequence[str] = (),
    seeds: Sequence[int] = (),
    settings: dict[str, Any] | None = None,
) -> GridSpec:
    """A grid with other losses, noise or seeds, and other settings; a changed protocol is noted."""
    parts = []
    for part in grid.parts:
        table = part.model_dump()
        if settings:
            allowed = set(PartSpec.model_fields) - {"losses", "noise", "seeds", "training"}
            table = {**change(table, settings, allowed), "protocol": "reduced"}
        named = {row if isinstance(row, str) else row["name"]: row for row in table["losses"]}
        if losses:
            table["losses"] = [named.get(loss, loss) for loss in losses]
        table["noise"] = list(noise) or table["noise"]
        table["seeds"] = list(seeds) or table["seeds"]
        parts.append(table)
    own = grid.model_dump(exclude={"parts"}, exclude_none=True)
    return make_grid({**own, "part": parts})


def check_data(specs: Sequence[RunSpec], data_dir: PathLike | None) -> None:
    """Raise FileNotFoundError if a file that a run needs is not there, before anything trains."""
    needed = {spec.data for spec in specs}
    for spec in specs:
        kind = spec.noise.partition(":")[0]
        if kind == "human":
            needed.add("cifar-n")
        if kind == "instance" and f"{spec.data}-idn" in registry.SOURCES:
            needed.add(f"{spec.data}-idn")
    for name in sorted(needed):
        missing = registry.find(name).missing(data_dir)
        if missing:
            remedy = f"`lossforge data doctor {name}` says how to get it"
            raise FileNotFoundError(f"{name}: {missing[0]} is missing; {remedy}")

"""Losses that differ in two parameters, as a plane of cells."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..benchmark.records import Record
from .results import Column, Results

Values = tuple[float, ...]  # of one parameter, a value for each loss


@dataclass(frozen=True)
class Plane:
    """Losses of one family in one setting, all alike but for two parameters.

    Args:
        family: Name of the loss, such as "BEF".
        x: Name of the parameter that changes along a row.
        y: Name of the other.
        rows: Names of the losses by the values of x and y.
    """

    family: str
    x: str
    y: str
    rows: Mapping[tuple[float, float], str]

    @property
    def sides(self) -> tuple[list[float], list[float]]:
        """The values of x and of y in increasing order."""
        first, second = (sorted(set(values)) for values in zip(*self.rows, strict=True))
        return first, second


def find_planes(results: Results, column: Column) -> list[Plane]:
    """Find losses of a setting that differ in two parameters and fill most of a rectangle.

    Parameters that always change together, as `br_beta` follows `beta`, count as one.
    """
    alike: dict[tuple[str, str], dict[str, Mapping[str, float]]] = {}
    for loss in results.losses:
        run = next(iter(results.runs(loss, column).values()), None)
        if run is not None and run.family:
            numbers = _numbers(run)
            others = {k: v for k, v in (run.loss_parameters or {}).items() if k not in numbers}
            key = run.family, json.dumps([sorted(numbers), others], sort_keys=True, default=str)
            alike.setdefault(key, {})[loss] = numbers
    found = [_plane(family, losses) for (family, _), losses in alike.items()]
    return [plane for plane in found if plane]


def _numbers(run: Record) -> dict[str, float]:
    given = run.loss_parameters or {}
    return {
        name: float(value)
        for name, value in given.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _plane(family: str, losses: Mapping[str, Mapping[str, float]]) -> Plane | None:
    names: dict[Values, list[str]] = {}
    for name in next(iter(losses.values())):
        values = tuple(numbers[name] for numbers in losses.values())
        if len(set(values)) > 1:
            names.setdefault(values, []).append(name)
    if len(names) != 2:
        return None
    (xs, x), (ys, y) = names.items()
    rows = dict(zip(zip(xs, ys, strict=True), losses, strict=True))
    plane = Plane(family, _joined(x), _joined(y), rows)
    first, second = plane.sides
    return plane if 2 * len(rows) > len(first) * len(second) else None


def _joined(names: Sequence[str]) -> str:
    return " = ".join(names)

"""Records in order: which losses met which settings, with which seeds."""

import copy
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..benchmark.records import K, Measure, Record

# A loss may bring its own decay (as published), so these do not make another setting.
OF_THE_LOSS = ("l1_decay", "weight_decay")
MANY_CLASSES = 10  # up to here top-5 says little


@dataclass(frozen=True)
class Column:
    """A setting that losses are compared in, seen through one test set.

    Args:
        key: Everything of the specs but the loss and the seed, as text.
        data: Name of the data set.
        noise: As in the spec, e.g. "symmetric:0.4".
        test: Name of the test set.
        label: What tells it from the other columns of its data set.
        setting: The same whatever the test: what tells its setting from the others.
    """

    key: str
    data: str
    noise: str
    test: str
    label: str
    setting: str


class Results:
    """A table of runs: losses in rows, settings in columns, seeds in each cell.

    Rows and columns are in the order in which the records show them first.

    Args:
        records: Finished runs, in the order of their grid.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        if not records:
            raise ValueError("there is no finished run to report")
        self.records = list(records)
        labels = _row_labels(self.records)
        self.losses = list(dict.fromkeys(labels))
        self.seeds = sorted({record.spec["seed"] for record in self.records})
        self.columns = _columns(self.records)
        self._cells: dict[tuple[str, str], dict[int, Record]] = {}
        for label, record in zip(labels, self.records, strict=True):
            cell = self._cells.setdefault((label, setting_key(record)), {})
            other = cell.setdefault(record.spec["seed"], record)
            if other is not record:
                raise ValueError(
                    f"{other.id} and {record.id} are both {label} with seed {record.spec['seed']} "
                    f"under {record.spec['noise']}, but differ in their training; report them "
                    "from two folders"
                )

    def narrow(
        self, *, losses: Sequence[str] | None = None, columns: Sequence[Column] | None = None
    ) -> "Results":
        """The same runs, seen through some rows and columns alone."""
        part = copy.copy(self)
        part.losses = list(self.losses if losses is None else losses)
        part.columns = list(self.columns if columns is None else columns)
        return part

    @property
    def data(self) -> list[str]:
        """Names of the data sets."""
        return list(dict.fromkeys(column.data for column in self.columns))

    def ks(self, data: str) -> list[K]:
        """Which accuracies are worth a table: top-5 where there are many classes."""
        classes = {record.classes for record in self.records if record.spec["data"] == data}
        many = max(classes) > MANY_CLASSES
        return ["top1", "top5"] if many else ["top1"]

    def runs(self, loss: str, column: Column) -> dict[int, Record]:
        """Records by seed."""
        return self._cells.get((loss, column.key), {})

    def values(
        self, loss: str, column: Column, measure: Measure = "last", k: K = "top1"
    ) -> dict[int, float]:
        """Accuracies in % by seed."""
        found = {
            seed: record.measure(measure, column.test, k)
            for seed, record in self.runs(loss, column).items()
        }
        return {seed: found[seed] for seed in sorted(found) if found[seed] is not None}  # type: ignore[misc]


def setting_key(record: Record) -> str:
    """What must be equal for two losses to be compared, as text."""
    spec = {k: v for k, v in record.spec.items() if k not in ("loss", "expression", "seed")}
    training = spec.get("training", {})
    spec["training"] = {k: v for k, v in training.items() if k not in OF_THE_LOSS}
    return json.dumps(spec, sort_keys=True)


def noise_label(text: str) -> str:
    """The noise for people: "symmetric 0.4"."""
    return text.replace(":", " ")


def _row_labels(records: list[Record]) -> list[str]:
    """The loss's name; with its parameters if one setting has it with several of them."""
    seen: dict[tuple[str, str], set[str]] = {}
    for record in records:
        key = record.spec["loss"], setting_key(record)
        seen.setdefault(key, set()).add(record.spec["expression"])
    several = {loss for (loss, _), expressions in seen.items() if len(expressions) > 1}
    return [
        record.spec["expression" if record.spec["loss"] in several else "loss"]
        for record in records
    ]


def _knows_tests(record: Record) -> bool:
    return bool(record.tests)


def _columns(records: list[Record]) -> list[Column]:
    # the last one stays, and a run that broke off may know no test
    first = {setting_key(record): record for record in sorted(records, key=_knows_tests)}
    keys = list(dict.fromkeys(setting_key(record) for record in records))
    details = _details({key: first[key].spec for key in keys})
    columns = []
    for key in keys:
        spec, tests = first[key].spec, first[key].tests or ["test"]
        for test in tests:
            setting = ", ".join([noise_label(spec["noise"]), *details[key]])
            label = f"{setting}, {test}" if len(tests) > 1 else setting
            columns.append(Column(key, spec["data"], spec["noise"], test, label, setting))
    return columns


def _details(specs: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """What tells settings apart that have the same data and noise."""
    flat = {key: {**spec, **spec.get("training", {})} for key, spec in specs.items()}
    counts = Counter((spec["data"], spec["noise"]) for spec in flat.values())
    found: dict[str, list[str]] = {}
    for key, spec in flat.items():
        twins = [
            other
            for other in flat.values()
            if (other["data"], other["noise"]) == (spec["data"], spec["noise"])
        ]
        skipped = {"training", "loss", "expression", "seed", *OF_THE_LOSS}
        found[key] = [
            f"{name} {value}"
            for name, value in spec.items()
            if counts[spec["data"], spec["noise"]] > 1
            and name not in skipped
            and any(other.get(name) != value for other in twins)
        ]
    return found

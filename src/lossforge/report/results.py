"""Finished runs grouped by loss, setting and seed."""

import copy
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..benchmark.records import FEW_CLASSES, K, Measure, Record

# Some losses are published with their own decay, so these do not make another setting.
OF_THE_LOSS = ("l1_decay", "weight_decay")


@dataclass(frozen=True)
class Column:
    """A setting in which losses are compared, on one test set.

    Args:
        key: The specs without loss and seed, as text.
        data: Name of the data set.
        noise: As in the spec, e.g. "symmetric:0.4".
        test: Name of the test set.
        label: Distinguishes it from the other columns of its data set.
        setting: Distinguishes its setting from the others, whatever the test set.
    """

    key: str
    data: str
    noise: str
    test: str
    label: str
    setting: str


class Results:
    """Runs arranged as a table: losses in rows, settings in columns, seeds in each cell.

    Rows and columns are in the order of their first records.

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
            if other is not record and other.id == record.id:
                raise ValueError(f"{record.id} must be there once, got two records of that run")
            if other is not record:
                raise ValueError(
                    f"{other.id} and {record.id} are both {label} with seed {record.spec['seed']} "
                    f"under {record.spec['noise']}, but differ in their training; report them "
                    "from two folders"
                )

    def narrow(
        self, *, losses: Sequence[str] | None = None, columns: Sequence[Column] | None = None
    ) -> "Results":
        """Select rows and columns of the same runs."""
        part = copy.copy(self)
        part.losses = list(self.losses if losses is None else losses)
        part.columns = list(self.columns if columns is None else columns)
        return part

    @property
    def data(self) -> list[str]:
        """Names of the data sets."""
        return list(dict.fromkeys(column.data for column in self.columns))

    @property
    def settings(self) -> list[Column]:
        """One column of each setting, that of its first test set."""
        first: dict[str, Column] = {}
        for column in self.columns:
            first.setdefault(column.key, column)
        return list(first.values())

    def ks(self, data: str) -> list[K]:
        """Return the accuracies that get a table: top-5 only if there are many classes."""
        classes = {record.classes for record in self.records if record.spec["data"] == data}
        return ["top1", "top5"] if max(classes) > FEW_CLASSES else ["top1"]

    def runs(self, loss: str, column: Column) -> dict[int, Record]:
        """Return the records of a cell by seed."""
        return self._cells.get((loss, column.key), {})

    def complete(self, measure: Measure = "last") -> "Results":
        """Select the losses that have a value in every setting."""
        whole = [
            loss
            for loss in self.losses
            if all(self.values(loss, column, measure) for column in self.columns)
        ]
        return self.narrow(losses=whole)

    def means(self, column: Column, measure: Measure = "last") -> dict[str, float]:
        """Average losses over the seeds that all of them have; leave out losses without a value."""
        cells = {loss: self.values(loss, column, measure) for loss in self.losses}
        cells = {loss: values for loss, values in cells.items() if values}
        seeds = set.intersection(*map(set, cells.values())) if cells else set()
        if not seeds:
            return {}
        return {loss: statistics.fmean(found[s] for s in seeds) for loss, found in cells.items()}

    def values(
        self, loss: str, column: Column, measure: Measure = "last", k: K = "top1"
    ) -> dict[int, float]:
        """Return the accuracies of a cell in % by seed."""
        found = {
            seed: record.measure(measure, column.test, k)
            for seed, record in self.runs(loss, column).items()
        }
        return {seed: found[seed] for seed in sorted(found) if found[seed] is not None}  # type: ignore[misc]


def setting_key(record: Record) -> str:
    """Return everything that must be equal for two losses to be compared, as text.

    That is neither the user's own code, which belongs to the loss, nor where data lie: their hash
    is among the options.
    """
    apart = ("loss", "expression", "code", "seed", "place")
    spec = {k: v for k, v in record.spec.items() if k not in apart}
    training = spec.get("training", {})
    spec["training"] = {k: v for k, v in training.items() if k not in OF_THE_LOSS}
    return json.dumps(spec, sort_keys=True)


def noise_label(text: str) -> str:
    """Format a noise for people: "symmetric 0.4"."""
    return text.replace(":", " ")


def _row_labels(records: list[Record]) -> list[str]:
    """Name the row of every record: the loss, or its text if a setting has several of them."""
    seen: dict[tuple[str, str], set[str]] = {}
    for record in records:
        key = record.spec["loss"], setting_key(record)
        seen.setdefault(key, set()).add(record.spec["expression"])
    several = {loss for (loss, _), expressions in seen.items() if len(expressions) > 1}
    return [
        record.spec["expression" if record.spec["loss"] in several else "loss"]
        for record in records
    ]


def _columns(records: list[Record]) -> list[Column]:
    keys = list(dict.fromkeys(setting_key(record) for record in records))
    # runs with tests last, so that they win: a failed run may have none
    ordered = sorted(records, key=lambda record: bool(record.tests))
    examples = {setting_key(record): record for record in ordered}
    details = _details({key: examples[key].spec for key in keys})
    columns = []
    for key in keys:
        spec, tests = examples[key].spec, examples[key].tests or ["test"]
        for test in tests:
            setting = ", ".join([noise_label(spec["noise"]), *details[key]])
            label = f"{setting}, {test}" if len(tests) > 1 else setting
            columns.append(Column(key, spec["data"], spec["noise"], test, label, setting))
    return columns


def _details(specs: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the fields that distinguish settings of the same data and noise."""
    flat = {key: {**spec, **spec.get("training", {})} for key, spec in specs.items()}
    skipped = {"training", "loss", "expression", "seed", *OF_THE_LOSS}
    found: dict[str, list[str]] = {}
    for key, spec in flat.items():
        twins = [
            other
            for other in flat.values()
            if (other["data"], other["noise"]) == (spec["data"], spec["noise"])
        ]
        found[key] = [
            f"{name} {value}"
            for name, value in spec.items()
            if name not in skipped and any(other.get(name) != value for other in twins)
        ]
    return found

"""One finished run, and what its grid says of itself: plain data."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Measure = Literal["last", "mean10", "selected"]
K = Literal["top1", "top5"]


@dataclass(frozen=True)
class Record:
    """One finished run.

    Args:
        id: The hash of the spec, which is also the name of the run's folder.
        spec: What was run, see `lossforge.benchmark.spec.RunSpec`.
        metrics: One dictionary for every epoch.
        classes: How many there are.
        noise_rate: Share of the training labels that are wrong.
        parameters: SHA-256 of the final weights.
        about: When, where and how it was run; nothing that the result depends on.
        transition: How many samples of each true class (rows) were given each label, if kept.
        failed: Why training broke off, if it did; such a run has no accuracy.
        folder: Where the record lies, and beside it what else the run kept.
    """

    id: str
    spec: dict[str, Any]
    metrics: list[dict[str, Any]]
    classes: int
    noise_rate: float | None
    parameters: str
    about: dict[str, Any] = field(default_factory=dict)
    transition: list[list[float]] | None = None
    failed: str | None = None
    folder: Path | None = None

    @property
    def tests(self) -> list[str]:
        """Names of the test sets."""
        return list(self.metrics[-1]["tests"]) if self.metrics else []

    @property
    def selected_epoch(self) -> int | None:
        """The first epoch that is best on held-out noisy labels; None if none were held out."""
        held_out = [epoch.get("validation") for epoch in self.metrics]
        known = [value for value in held_out if value is not None]
        return 1 + held_out.index(max(known)) if known else None

    def curve(self, test: str = "test", k: K = "top1") -> list[float | None]:
        """Accuracy after every epoch in %."""
        return [epoch["tests"].get(test, {}).get(k) for epoch in self.metrics]

    def last(self, test: str = "test", k: K = "top1") -> float | None:
        """Accuracy after the last epoch in %; None if this test or k is not there."""
        return self.mean_last(1, test, k)

    def mean_last(self, epochs: int = 10, test: str = "test", k: K = "top1") -> float | None:
        """Mean accuracy of the last epochs in %, of all if there are fewer."""
        curve = [] if self.failed else self.curve(test, k)[-epochs:]
        known = [value for value in curve if value is not None]
        return math.fsum(known) / len(known) if known else None

    def selected(self, test: str = "test", k: K = "top1") -> float | None:
        """Accuracy after the epoch that held-out noisy labels select."""
        epoch = self.selected_epoch
        return None if epoch is None or self.failed else self.curve(test, k)[epoch - 1]

    def measure(self, name: Measure, test: str = "test", k: K = "top1") -> float | None:
        """One of the three accuracies that are reported."""
        if name == "mean10":
            return self.mean_last(10, test, k)
        return self.last(test, k) if name == "last" else self.selected(test, k)


@dataclass(frozen=True)
class Grid:
    """What a grid wrote down about itself: the order of its rows, and the table it makes.

    Args:
        name: As `lossforge bench` takes it.
        title: One line for people.
        table: The table of the paper that it repeats, if it does.
        runs: The ids of its runs, in the order of the spec.
    """

    name: str
    title: str = ""
    table: str | None = None
    runs: tuple[str, ...] = ()

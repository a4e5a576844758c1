"""One finished run and the description of its grid: plain data."""

import ast
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..constructions import default_mu

Measure = Literal["last", "mean10", "selected"]
K = Literal["top1", "top5"]
BALANCED = ("BEF", "BQF")  # lam * target separation + mu * binary reduction


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
        folder: The run's folder, with the record and the run's other files.
        loss_parameters: Numbers and other settings of the loss by name. Records of earlier
            versions lack them; those are read from the loss's text.
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
    loss_parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.loss_parameters is None:
            given = _read_call(self.spec.get("expression", ""))[1]
            object.__setattr__(self, "loss_parameters", given)

    @property
    def balance(self) -> tuple[str, float, float] | None:
        """The family, lam and mu if the loss is BEF or BQF with a known lam."""
        family, given = _read_call(self.spec.get("expression", ""))[0], self.loss_parameters or {}
        if family not in BALANCED or given.get("lam") is None:
            return None
        mu = default_mu(self.classes) if given.get("mu") is None else given["mu"]
        return family, float(given["lam"]), float(mu)

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


def _read_call(expression: str) -> tuple[str, dict[str, Any]]:
    """Read the name and the literal arguments of a text such as "BEF(lam=0.9, mu=0.1)".

    A sum of losses has neither.
    """
    try:
        call = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        return "", {}
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return "", {}
    given = {}
    for argument in call.keywords:
        try:
            given[str(argument.arg)] = ast.literal_eval(argument.value)
        except ValueError:  # a loss or a base function
            continue
    return call.func.id, given


@dataclass(frozen=True)
class Grid:
    """The description a grid leaves in its store: the order of its runs, and its table.

    Args:
        name: As `lossforge bench` takes it.
        title: One line for people.
        table: The table of the paper that it repeats, if any.
        runs: The ids of its runs, in the order of the spec.
    """

    name: str
    title: str = ""
    table: str | None = None
    runs: tuple[str, ...] = ()

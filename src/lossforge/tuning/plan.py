"""The plan of a search: the loss, the data, and how a trial is done."""

import hashlib
import inspect
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import torch

from ..benchmark.grid import one_run, protocol
from ..benchmark.run import check_data, prepare_data
from ..benchmark.spec import Frozen, RunSpec, has_preset, hashes
from ..catalog import find, read, select, spell
from ..data.own import OwnData
from ..data.source import PathLike
from ..errors import SpecError
from ..noise import NoiseSpec
from ..theory import read_noise
from .spaces import Numbers, Parameters, Space, space

HOLD_OUT = 0.1
ESTIMATE = "estimate"


class Plan(Frozen):
    """All that determines a search, except its number of trials.

    Args:
        loss: A name of the catalogue, or of a loss in the user's own code.
        spec: The run of a trial, with the published parameters of the loss.
        num_classes: Of the data.
        fixed: Parameters that are not tuned.
        start: The published parameters as a point of the search space.
        splits: The number of held-out parts that score a trial.
        admit: A noise for which every loss tried must be proved robust: a matrix or the weights of
            one instance; "estimate" to estimate it from the labels; None for no such condition.
        noise: The numbers of the transition matrix that `spec.noise` names; None for other noise.
    """

    loss: str
    spec: RunSpec
    num_classes: int
    fixed: dict[str, Any]
    start: dict[str, float]
    splits: int = 1
    admit: list[Any] | str | None = None
    noise: list[Any] | None = None

    @property
    def name(self) -> str:
        """The loss and a hash of the plan: the same search always has the same name."""
        # `spec.noise` has a hash of the numbers, and data that were moved are the same
        content = self.model_dump(exclude={"noise": True, "spec": {"place"}})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        loss = self.loss.replace(":", "-")  # the name of a folder
        return f"{loss}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def label_noise(self) -> NoiseSpec:
        """Return the noise of the labels; a transition matrix without reading its file."""
        if self.noise is None:
            return NoiseSpec.parse(self.spec.noise)
        rows = torch.tensor(self.noise, dtype=torch.float64)
        return NoiseSpec("matrix", None, self.spec.noise, rows)

    def space(self, *points: Mapping[str, float]) -> Space:
        """Return the search space, extended to hold the published parameters and other points."""
        return space(self.loss, self.num_classes).including(self.start, *points)

    def expression(self, parameters: Parameters) -> str:
        """Return the loss with these parameters, as `lossforge.parse` reads it."""
        return spell(self.loss, {**self.fixed, **parameters})


def make_plan(
    data: str | OwnData,
    noise: str,
    loss: str,
    *,
    method: str = "plain",
    splits: int = 1,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    admit: object = None,
    data_dir: PathLike | None = None,
) -> Plan:
    """Make the plan of a search; see `lossforge.tuning.tune`."""
    if loss.rstrip().endswith(")"):
        raise SpecError(f"the search sets the parameters: name the loss alone, got {loss!r}")
    name = find(loss).name
    space(name, 2)  # rejects a loss without parameters before any data are read
    settings = {"hold_out": HOLD_OUT, **(settings or {})}
    run = one_run(data, noise, "CE", method=method, seed=seed, changes=settings)
    usual = run.spec
    if not usual.hold_out:
        raise SpecError("hold_out must be positive: the held-out labels score a trial")
    if not usual.settings.epochs:
        raise SpecError("epochs must be 1 or more, got 0")
    check_data([run], data_dir)
    num_classes = prepare_data(usual, data_dir, noise=run.noise).num_classes
    parameters, start = _published(data, run.noise, name, settings, num_classes)
    tuned = space(name, num_classes).make(start)
    fixed = {key: value for key, value in parameters.items() if key not in tuned}
    expression = spell(name, {**parameters, **tuned})
    code = hashes(read(expression))
    spec = usual.model_copy(update={"loss": name, "expression": expression, "code": code})
    if inspect.Parameter.empty not in find(name).parameters().values():
        # the protocol of the loss may add settings, such as its decay
        whole = one_run(data, noise, name, method=method, seed=seed, changes=settings).spec
        spec = spec.model_copy(update={"training": whole.training})
    return Plan(
        loss=name,
        spec=spec,
        num_classes=num_classes,
        fixed=fixed,
        start=start,
        splits=splits,
        admit=_read_admitted(admit, num_classes),
        noise=_rows(run.noise),
    )


def _published(
    data: str | OwnData, noise: NoiseSpec, name: str, settings: dict[str, Any], num_classes: int
) -> tuple[Parameters, Numbers]:
    """Return the parameters of a loss by the protocol of the data, and their point in the space."""
    found = space(name, num_classes)
    parameters = {
        key: value
        for key, value in find(name).parameters().items()
        if value is not inspect.Parameter.empty
    }
    usual = protocol(data).preset if isinstance(data, str) else None
    preset = settings.get("preset", usual)
    if preset is not None and has_preset(name, preset):
        parameters |= select(preset, name, noise).parameters
    if found.start is not None:
        return parameters, dict(found.start)
    return parameters, found.point(parameters)


def _rows(noise: NoiseSpec) -> list[Any] | None:
    """Return the numbers of a transition matrix; None for other noise."""
    if noise.kind != "matrix" or noise.weights is None:
        return None
    rows: list[Any] = noise.weights.tolist()
    return rows


def _read_admitted(admit: object, num_classes: int) -> list[Any] | str | None:
    if admit is None or (isinstance(admit, str) and admit == ESTIMATE):
        return admit
    if isinstance(admit, str | os.PathLike):
        raise TypeError(f"admit must be a matrix, weights or {ESTIMATE!r}, got {admit!r}")
    rows = read_noise(admit, num_classes)
    plain: list[Any] = rows.weights.tolist()
    assert all(math.isfinite(weight) for row in plain for weight in row)
    return plain

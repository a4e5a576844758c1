"""What a run does, and what a grid of runs is made of."""

import hashlib
import json
import shlex
from dataclasses import asdict, fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..catalog import PRESETS, Setting, find, make, parse, select, settings
from ..data import names as data_names
from ..errors import SpecError
from ..models import names as model_names
from ..training import Settings
from . import noises

Protocol = Literal["paper", "reduced", "own"]


class Frozen(BaseModel):
    """A spec: nothing in it changes, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RunSpec(Frozen):
    """One run, completely: the same spec gives the same result, bit for bit, on one CPU model.

    Args:
        data: Name of a data set, with the options of its loader.
        subset: Train on this many samples, equally many of each class.
        model: Name of a network, with its options.
        weights: Where the network starts from, as `lossforge.models.load_weights` takes it.
        noise: Label noise, see `lossforge.benchmark.noises`.
        loss: What the loss is called in tables.
        expression: The loss itself, as `lossforge.parse` reads it.
        seed: Of the noise, the initial weights, the batch order and the augmentation.
        training: Fields of `lossforge.training.Settings`.
        threads: Of the CPU; part of the spec, for sums depend on it in the last digit.
        hold_out: Share of the training samples that is held out, with its noise, for selection.
        keep_features: Whether the features of the test samples are kept, for pictures of them.
        protocol: Whether this is a published protocol, a reduced one, or the user's.
    """

    data: str
    data_options: dict[str, Any] = Field(default_factory=dict)
    subset: int | None = None
    model: str
    model_options: dict[str, Any] = Field(default_factory=dict)
    weights: str | None = None
    noise: str = "clean"
    loss: str
    expression: str
    seed: int = 0
    training: dict[str, Any] = Field(default_factory=dict)
    threads: int = 1
    hold_out: float = 0.0
    keep_features: bool = False
    protocol: Protocol = "own"

    @property
    def id(self) -> str:
        """The hash of the whole spec."""
        text = json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def settings(self) -> Settings:
        return Settings(**self.training)

    def command(self) -> str:
        """A command line that does this run."""
        usual = RunSpec(data=self.data, model=self.model, loss=self.loss, expression="")
        words = ["lossforge", "train", "--data", self.data, "--noise", self.noise]
        words += ["--loss", self.expression, "--model", self.model, "--seed", str(self.seed)]
        for name, value in {**self.model_dump(), **self.training}.items():
            if name in ("training", "data", "noise", "loss", "expression", "model", "seed"):
                continue
            if name in self.training or value != getattr(usual, name):
                words += ["--set", f"{name}={json.dumps(value)}"]
        return shlex.join(words)


class LossSpec(Frozen):
    """A row of a table: what it is called, and the loss if that is not its name."""

    name: str
    loss: str | None = None


class PartSpec(Frozen):
    """A grid on one data set: losses x noise x seeds.

    Args:
        preset: Losses named without parameters take the settings published for this data set.
        published_decay: Whether they also take the decay they were published with.
        losses: Rows, by the name of a loss or with a name of their own.
    """

    data: str
    data_options: dict[str, Any] = Field(default_factory=dict)
    subset: int | None = None
    model: str
    model_options: dict[str, Any] = Field(default_factory=dict)
    weights: str | None = None
    preset: str | None = None
    published_decay: bool = True
    noise: list[str]
    losses: list[str | LossSpec]
    seeds: list[int] = Field(default_factory=lambda: [0, 1, 2])
    training: dict[str, Any] = Field(default_factory=dict)
    threads: int = 1
    hold_out: float = 0.0
    keep_features: bool = False
    protocol: Protocol = "own"

    def runs(self) -> list[RunSpec]:
        """All runs, seed by seed, so that an unfinished grid has whole tables of fewer seeds."""
        self._check()
        shared = self.model_dump(
            exclude={"preset", "published_decay", "noise", "losses", "seeds", "training"}
        )
        cells = [(noise, *self._resolve(row, noise)) for noise in self.noise for row in self.losses]
        return [
            RunSpec(**shared, noise=noise, loss=name, expression=text, seed=seed, training=training)
            for seed in self.seeds
            for noise, name, text, training in cells
        ]

    def _check(self) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise SpecError(f"unknown preset {self.preset!r}, known: {', '.join(PRESETS)}")
        rows = [row if isinstance(row, str) else row.name for row in self.losses]
        for name, values in (("losses", rows), ("noise", self.noise), ("seeds", self.seeds)):
            if not values or len(set(values)) < len(values):
                raise SpecError(f"{name} must be one or more, each once, got {values}")
        if min(self.seeds) < 0:
            raise SpecError(f"seeds must be 0 or more, got {min(self.seeds)}")

    def _resolve(self, row: str | LossSpec, noise: str) -> tuple[str, str, dict[str, Any]]:
        """Name, expression and training settings of a row under a noise."""
        noises.check(noise, self.data)
        row = LossSpec(name=row) if isinstance(row, str) else row
        text = row.loss or row.name
        training = dict(self.training)
        if self.preset is not None and has_preset(text, self.preset):
            chosen = published(text, self.preset, noise)
            loss, l1_decay = make(text, **chosen.parameters), chosen.l1_decay
            if (
                l1_decay is not None and self.published_decay
            ):  # the protocol of these losses puts it in the place of L2
                training |= {"l1_decay": l1_decay, "weight_decay": 0.0}
        else:
            loss = parse(text)
        return row.name, str(loss), canonical(training)


def canonical(training: dict[str, Any]) -> dict[str, Any]:
    """Every setting of training written out, so that 1 and 1.0 are the same run."""
    try:
        settings = Settings(**training)
    except (TypeError, ValueError) as error:
        raise SpecError(f"training: {error}") from None
    numbers = {field.name for field in fields(Settings) if field.type in (float, float | None)}
    return {
        name: float(value) if name in numbers and value is not None else value
        for name, value in asdict(settings).items()
    }


def has_preset(name: str, preset: str) -> bool:
    """Whether a loss has published settings for a data set."""
    try:
        return bool(settings(preset, find(name).name))
    except ValueError:
        return False


def published(name: str, preset: str, noise: str) -> Setting:
    """The published setting of a loss for a data set and a noise of `noises`."""
    kind, _, rate = noise.partition(":")
    # the catalogue calls them by other names, and knows human noise as one kind
    wanted = {
        "instance": f"dependent:{rate}",
        "human": "human",
        "pair": f"asymmetric:{rate}",
        "given": None,
    }
    loss = find(name).name
    try:
        return select(preset, loss, wanted.get(kind, noise))
    except ValueError:
        if kind != "human":
            raise
        # people err where an image is hard to tell: the nearest kind that is published
        return select(preset, loss, "dependent")


def check(spec: RunSpec) -> None:
    """Raise a `SpecError` if a run cannot work, before anything is loaded or trained."""
    if spec.data not in data_names():
        raise SpecError(f"unknown data {spec.data!r}, known: {', '.join(data_names())}")
    if spec.model not in model_names():
        raise SpecError(f"unknown model {spec.model!r}, known: {', '.join(model_names())}")
    noises.check(spec.noise, spec.data)
    parse(spec.expression)
    if not 0 <= spec.hold_out < 1:
        raise SpecError(f"hold_out must be in [0, 1), got {spec.hold_out}")
    for name in ("subset", "threads"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            raise SpecError(f"{name} must be 1 or more, got {value}")
    canonical(spec.training)

"""What a run does: its plain description, which is hashed, and the loss and noise built from it."""

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from ..catalog import Code, Reading, find, read, settings
from ..data import check_noise
from ..data import names as data_names
from ..errors import SpecError, unknown
from ..loss import Loss
from ..models import names as model_names
from ..noise import NoiseSpec
from ..training import Method, Settings, make_method


def _with_lists(value: Any) -> Any:
    """Replace tuples by lists, as JSON writes them."""
    if isinstance(value, list | tuple):
        return [_with_lists(one) for one in value]
    if isinstance(value, dict):
        return {name: _with_lists(one) for name, one in value.items()}
    return value


if TYPE_CHECKING:
    Plain = Any
else:  # a date of TOML could not be hashed
    Plain = Annotated[JsonValue, BeforeValidator(_with_lists)]

Protocol = Literal["paper", "reduced", "own"]

# The fields of version 0.1, all of which are written and hashed. A field that is added later is
# written and hashed only where it differs from its default, so that the ids, specs and settings of
# existing runs never change.
HASHED = (
    *("data", "data_options", "subset", "model", "model_options", "weights", "noise", "loss"),
    *("expression", "seed", "training", "threads", "hold_out", "keep_features", "protocol"),
)
HASHED_TRAINING = (
    *("epochs", "batch_size", "optimizer", "lr", "momentum", "nesterov", "weight_decay"),
    *("l1_decay", "schedule", "clip", "precision", "compile", "probe"),
)


# options of `train` by the data options they set
OWN_OPTIONS = {
    "label": "--label",
    "true": "--true",
    "columns": "--column",
    "weight": "--weight",
    "features": "--features",
}
# by options of `train`, or by what they name
NAMED = ("data", "place", "noise", "loss", "expression", "code", "model", "seed", "method")
PLAIN = str(Method())


class Frozen(BaseModel):
    """Base of all specs: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class RunSpec(Frozen):
    """Describe one run completely: equal specs give equal results, bit for bit, on one CPU model.

    Args:
        data: Name of a data set, with the options of its loader.
        subset: Train on this many samples, equally many of each class.
        model: Name of a network, with its options.
        weights: Initial weights, as `lossforge.models.load_weights` takes them.
        noise: Label noise, as `lossforge.noise.NoiseSpec` prints it.
        loss: The name of the loss in tables.
        expression: The loss itself, as `lossforge.parse` reads it.
        seed: Seed of the noise, the initial weights, the batch order and the augmentation.
        training: Fields of `lossforge.training.Settings`.
        threads: CPU threads; part of the spec because sums depend on them in the last digit.
        hold_out: Share of the training samples held out, with their noise, for selection.
        keep_features: Whether to keep the features of the test samples, for figures.
        protocol: Whether this is a published protocol, a reduced one, or the user's own.
        method: The training method, as `lossforge.training.make_method` reads it.
        code: The SHA-256 of the user's own files and modules that the expression names, by name.
        place: Where the user's own data are; None for a named data set. It is no part of the id:
            `data_options` has the hash of the content.
    """

    data: str
    data_options: dict[str, Plain] = Field(default_factory=dict)
    subset: int | None = None
    model: str
    model_options: dict[str, Plain] = Field(default_factory=dict)
    weights: str | None = None
    noise: str = "clean"
    loss: str
    expression: str
    seed: int = 0
    training: dict[str, Plain] = Field(default_factory=dict)
    threads: int = 1
    hold_out: float = 0.0
    keep_features: bool = False
    protocol: Protocol = "own"
    method: str = PLAIN
    code: dict[str, str] = Field(default_factory=dict)
    place: str | None = None

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out later fields at their defaults."""
        return {
            name: value
            for name, value in write(self).items()
            if name in HASHED or value != _default(type(self), name)
        }

    @property
    def id(self) -> str:
        """The hash of the whole spec."""
        content = self.model_dump(exclude={"place"})
        content["training"] = {
            name: value for name, value in self.training.items() if _is_written(name, value)
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def settings(self) -> Settings:
        """The training settings."""
        return Settings(**self.training)

    def command(self) -> str:
        """Return a command line that does this run."""
        noise = self.noise.partition("@")[0]  # a matrix is given by its file
        words = ["lossforge", "train", "--data", self.place or self.data, "--noise", noise]
        words += ["--loss", self.expression, "--model", self.model, "--seed", str(self.seed)]
        if self.method != PLAIN:
            words += ["--method", self.method]
        for name, value in {**self.model_dump(), **self.training}.items():
            if name in ("training", *NAMED) or (name == "data_options" and self.place is not None):
                continue
            if name in self.training or value != _default(type(self), name):
                words += ["--set", f"{name}={json.dumps(value)}"]
        return shlex.join(words + self._own_data_words())

    def _own_data_words(self) -> list[str]:
        """Return the options of a command that describe the user's own data, but for their path."""
        rest = {} if self.place is None else {**self.data_options}
        for name in ("hash", "features_hash"):  # of what lies there when the command is typed
            rest.pop(name, None)
        words = []
        for name, option in OWN_OPTIONS.items():
            found = rest.pop(name, [])
            for value in found if isinstance(found, list) else [found]:
                words += [option, value]
        return [*words, "--set", f"data_options={json.dumps(rest)}"] if rest else words


def _default(spec: type[RunSpec], name: str) -> Any:
    return spec.model_fields[name].get_default(call_default_factory=True)


@dataclass(frozen=True)
class Run:
    """A run that is ready to start: its spec, and the objects that the spec describes.

    Args:
        spec: The plain description.
        loss: Built from `spec.expression`.
        noise: Built from `spec.noise`.
        method: Built from `spec.method`.
        code: The user's own code that the expression names.
    """

    spec: RunSpec
    loss: Loss
    noise: NoiseSpec
    method: Method
    code: tuple[Code, ...] = ()


def resolve(spec: RunSpec, *, loss: Reading | None = None, noise: NoiseSpec | None = None) -> Run:
    """Build the loss and the noise of a run and check the rest, before anything is loaded.

    Args:
        spec: The run.
        loss: Its loss, if that is built already.
        noise: Its noise, if that is built already.

    Raises:
        SpecError: if the run cannot work.
    """
    if spec.place is None and spec.data not in data_names():
        raise unknown("data set", spec.data, data_names())
    if spec.model not in model_names():
        raise unknown("model", spec.model, model_names())
    if noise is None:
        noise = NoiseSpec.parse(spec.noise)
    check_noise(noise, spec.data)
    if loss is None:
        loss = read(spec.expression)
    if spec.code != hashes(loss):
        raise SpecError(f"the code of {spec.expression} must be {spec.code}, got {hashes(loss)}")
    if not 0 <= spec.hold_out < 1:
        raise SpecError(f"hold_out must be in [0, 1), got {spec.hold_out}")
    for name in ("subset", "threads"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            raise SpecError(f"{name} must be 1 or more, got {value}")
    canonical(spec.training)
    method = make_method(spec.method)
    if spec.place is not None and "weight" in spec.data_options and not method.weighs:
        raise SpecError(f"{spec.method} takes no weights of samples; --weight none leaves them out")
    return Run(spec, loss.loss, noise, method, loss.code)


def hashes(loss: Reading) -> dict[str, str]:
    """Return the SHA-256 of the user's own code that a loss names, by name."""
    return {code.name: code.hash for code in loss.code}


def canonical(training: dict[str, Any]) -> dict[str, Any]:
    """Write out the training settings, so that 1 and 1.0 are the same run."""
    known = [field.name for field in fields(Settings)]
    for name in training:
        if name not in known:
            raise unknown("training setting", name, known)
    try:
        settings = Settings(**training)
    except (TypeError, ValueError) as error:
        raise SpecError(f"training: {error}") from None
    numbers = {field.name for field in fields(Settings) if field.type in (float, float | None)}
    return {
        name: float(value) if name in numbers and value is not None else value
        for name, value in asdict(settings).items()
        if _is_written(name, value)
    }


def _is_written(setting: str, value: Any) -> bool:
    return setting in HASHED_TRAINING or value != getattr(Settings, setting, None)


def has_preset(name: str, preset: str) -> bool:
    """Return whether a loss has published settings for a data set."""
    try:
        return bool(settings(preset, find(name).name))
    except ValueError:
        return False

"""Grids of runs from shipped presets, TOML files and the command line."""

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from ..catalog import PRESETS, Reading, admit, find, make, outside, read, select
from ..catalog.code import short
from ..data.own import OwnData
from ..errors import SpecError, unknown
from ..files import write_atomically
from ..noise import NoiseSpec
from ..training import Settings, make_method
from .integrity import shorten
from .records import grid_hash
from .spec import (
    NAMED,
    PLAIN,
    Frozen,
    Plain,
    Protocol,
    Run,
    RunSpec,
    canonical,
    has_preset,
    hashes,
    resolve,
)

TRAINING = {field.name for field in fields(Settings)}
# The preset whose part on a data set is its protocol, the published one where there is one. Data
# sets that are not listed are trained by the protocol of `digits`.
PROTOCOLS = {
    "banking77": "banking77",
    "breast-cancer": "results/breast-cancer",
    "cifar10": "paper/cifar10",
    "cifar100": "paper/cifar100",
    "clinc150": "clinc150",
    "clinc150-pairs": "results/many-classes",
    "clothing1m": "paper/realworld",
    "digits": "digits",
    "digits-pairs": "results/ablation",
    "digits-triples": "results/digits-triples",
    "webvision": "paper/realworld",
}


class LossSpec(Frozen):
    """A row of a table: its name, and the loss if that is not its name."""

    name: str
    loss: str | None = None


class Built:
    """The losses and noises of a grid: every distinct text is built once."""

    def __init__(self) -> None:
        self.noise: Callable[[str], NoiseSpec] = cache(NoiseSpec.parse)
        self.read: Callable[[str], Reading] = cache(read)
        self.make: Callable[..., Reading] = cache(_made)


def _made(name: str, **parameters: Any) -> Reading:
    loss = make(name, **parameters)
    return Reading(loss, str(loss))


class PartSpec(Frozen):
    """A grid on one data set: losses x methods x noise x seeds.

    Other fields are those of `RunSpec`.

    Args:
        preset: Losses named without parameters take the settings published for this data set.
        published_decay: Whether they also take the decay they were published with.
        losses: Rows, by the name of a loss or with a name of their own.
        methods: Training methods, as `lossforge.training.make_method` reads them.
        code: The SHA-256 of the user's own files and modules that rows name, see `admit_rows`.
        place: Where the user's own data are, see `RunSpec`.
    """

    data: str
    data_options: dict[str, Plain] = Field(default_factory=dict)
    subset: int | None = None
    model: str
    model_options: dict[str, Plain] = Field(default_factory=dict)
    weights: str | None = None
    preset: str | None = None
    published_decay: bool = True
    noise: list[str]
    losses: list[str | LossSpec]
    methods: list[str] = Field(default_factory=lambda: [PLAIN])
    seeds: list[int] = Field(default_factory=lambda: [0, 1, 2])
    training: dict[str, Plain] = Field(default_factory=dict)
    threads: int = 1
    hold_out: float = 0.0
    keep_features: bool = False
    protocol: Protocol = "own"
    code: dict[str, str] = Field(default_factory=dict)
    place: str | None = None

    def resolve(self, built: Built | None = None) -> list[Run]:
        """Return all runs, ready to start.

        Seed by seed, so that an unfinished grid has whole tables of fewer seeds.

        Args:
            built: The losses and noises that other parts of the grid have built already.
        """
        built = built or Built()
        noises = [built.noise(text) for text in self.noise]
        methods = [str(make_method(text)) for text in self.methods]
        self._check(noises, methods)
        shared = self.model_dump(
            exclude={
                *("preset", "published_decay", "noise", "losses", "methods", "seeds"),
                *("training", "code"),
            }
        )
        cells = [(noise, *self._cell(row, noise, built)) for noise in noises for row in self.losses]
        return [
            resolve(
                RunSpec(
                    **shared,
                    noise=str(noise),
                    loss=name,
                    expression=loss.text,
                    seed=seed,
                    training=training,
                    method=method,
                    code=hashes(loss),
                ),
                loss=loss,
                noise=noise,
            )
            for seed in self.seeds
            for method in methods
            for noise, name, loss, training in cells
        ]

    def runs(self) -> list[RunSpec]:
        """Return the specs of all runs, checked."""
        return [run.spec for run in self.resolve()]

    def _check(self, noises: Sequence[NoiseSpec], methods: Sequence[str]) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise unknown("preset", self.preset, PRESETS)
        rows = [row if isinstance(row, str) else row.name for row in self.losses]
        texts = [str(noise) for noise in noises]
        axes = {"losses": rows, "noise": texts, "methods": methods, "seeds": self.seeds}
        for name, values in axes.items():
            if not values or len(set(values)) < len(values):
                raise SpecError(f"{name} must be one or more, each once, got {values}")
        if min(self.seeds) < 0:
            raise SpecError(f"seeds must be 0 or more, got {min(self.seeds)}")

    def _cell(
        self, row: str | LossSpec, noise: NoiseSpec, built: Built
    ) -> tuple[str, Reading, dict[str, Any]]:
        """Name, loss and training settings of a row under a noise."""
        row = LossSpec(name=row) if isinstance(row, str) else row
        text = row.loss or row.name
        training = dict(self.training)
        if self.preset is not None and has_preset(text, self.preset):
            chosen = select(self.preset, find(text).name, noise)
            loss = built.make(text, **chosen.parameters)
            if chosen.l1_decay is not None and self.published_decay:
                # the protocol of these losses replaces L2 decay by L1 decay
                training |= {"l1_decay": chosen.l1_decay, "weight_decay": 0.0}
        else:
            loss = built.read(text)
        name = loss.text if loss.code and row.loss is None else row.name  # without folders
        return name, loss, canonical(training)


class GridSpec(Frozen):
    """A named experiment: one or more grids that belong to one table or figure."""

    name: str = Field(pattern=r"^\w[\w.+-]*(/\w[\w.+-]*)*$")
    title: str = ""
    table: str | None = None
    figure: str | None = None
    parts: list[PartSpec]

    def resolve(self) -> list[list[Run]]:
        """Return the runs of each part, ready to start; every loss and noise is built once."""
        built = Built()
        return [part.resolve(built) for part in self.parts]

    def runs(self) -> list[RunSpec]:
        """Return the specs of all runs of all parts, checked."""
        return [run.spec for part in self.resolve() for run in part]


# Reading grids


def _presets() -> dict[str, Path]:
    root = Path(str(resources.files(__package__) / "presets"))
    return {
        path.relative_to(root).with_suffix("").as_posix(): path
        for path in sorted(root.rglob("*.toml"))
    }


def presets() -> list[str]:
    """Return the names of the shipped grids."""
    return sorted(_presets())


def read_grid(name: str) -> GridSpec:
    """Read a preset by its name, or a TOML file by its path."""
    path = _presets().get(name, Path(name))
    if not path.is_file():
        raise unknown("preset or file", name, presets())
    try:
        return make_grid(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from None


def make_grid(table: dict[str, Any]) -> GridSpec:
    """Make a grid of a TOML table; keys outside the parts hold for all of them."""
    shared = {key: value for key, value in table.items() if key in PartSpec.model_fields}
    own = {
        key: value for key, value in table.items() if key not in {*PartSpec.model_fields, "part"}
    }
    given = table.get("part", [{}])
    if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
        raise SpecError(f"part must be tables, [[part]], got {given!r}")
    parts = []
    for part in given:
        training = {**_table(shared.get("training")), **_table(part.get("training"))}
        parts.append({**shared, **part, "training": training})
    return _validated(GridSpec, {**own, "parts": parts})


def _table(found: Any) -> dict[str, Any]:
    if found is not None and not isinstance(found, dict):
        raise SpecError(f"training must be a table, [training], got {found!r}")
    return found or {}


Spec = TypeVar("Spec", bound=Frozen)


def _validated(kind: type[Spec], content: dict[str, Any]) -> Spec:
    """Make a spec, or raise an error of one line that names the wrong key."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        steps = [str(step) for step in first["loc"] if step != "parts"]
        only = len(content.get("parts", [])) == 1 and steps[0] == "0"
        place = ".".join(steps[1:] if only else steps)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        told = f"{place}: {first['msg']}, got {shorten(first['input'])}{more}"
        raise SpecError(told) from None


def save_grid(store: Path, grid: GridSpec, runs: Sequence[RunSpec]) -> None:
    """Write the grid that a store holds, for reports."""
    store.mkdir(parents=True, exist_ok=True)
    content = {
        "name": grid.name,
        "title": grid.title,
        "table": grid.table,
        "figure": grid.figure,
        "runs": [run.id for run in runs],
    }
    text = f"{json.dumps(content, indent=1)}\n".encode()
    # another selection of the same grid gets a file of its own
    path = store / f"grid-{grid.name.replace('/', '-')}-{grid_hash(text)}.json"
    write_atomically(path, text)


def admit_rows(grid: GridSpec, typed: Sequence[str] = (), *, trust: bool = False) -> None:
    """Import the user's own code that the rows of a grid name.

    Args:
        grid: The grid.
        typed: Rows that the user typed. Their code is imported.
        trust: Whether to import the code of other rows, too, where the grid has its hash.
    """
    texts: list[str] = []
    expected: dict[str, str] = {}
    for part in grid.parts:
        for row in part.losses:
            text = row if isinstance(row, str) else row.loss or row.name
            texts.append(text)
            if text in typed:
                continue
            for name in map(short, outside(text)):
                if not trust or name not in part.code:
                    raise SpecError(
                        f"{grid.name}: {text!r} executes {name}, which was not typed here; read "
                        f'it, then write its SHA-256 into the grid, code = {{"{name}" = "..."}}, '
                        "and add --trust"
                    )
                expected[name] = part.code[name]
    admit(texts, hashes=expected)


# Changing grids


def read_changes(texts: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` texts; a value is JSON, or else plain text."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise SpecError(f"a setting must be key=value, got {text!r}")
        try:
            found[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            found[key.strip()] = value.strip()
    return found


def _changed(
    part: PartSpec, changes: dict[str, Any], allowed: set[str], **replaced: Any
) -> PartSpec:
    """Return a part with other values; those of training settings go into `training`.

    Args:
        part: The part.
        changes: What the user changes, over all else.
        allowed: The fields that may be changed, besides training settings.
        replaced: Other new values of fields.
    """
    for name in changes:
        if name not in allowed | TRAINING:
            raise unknown("setting", name, sorted(allowed | TRAINING))
    training = {key: value for key, value in changes.items() if key in TRAINING}
    own = {key: value for key, value in changes.items() if key not in TRAINING}
    if training.keys() & {"l1_decay", "weight_decay"}:
        own["published_decay"] = False  # the user's decay holds for every loss
    content = {**dict(part), **replaced, **own, "training": {**part.training, **training}}
    return _validated(PartSpec, content)


def protocol(data: str) -> PartSpec:
    """Return the part of a shipped grid that is about a data set: how it is trained."""
    known = data if data in PROTOCOLS else "digits"
    return next(part for part in read_grid(PROTOCOLS[known]).parts if part.data == known)


def _on(own: OwnData, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a part that is about a user's own data: no published settings fit it.

    Args:
        own: The data.
        changes: What the user changes; its `data_options` are taken out and added to theirs.
    """
    options = changes.pop("data_options", {})
    if not isinstance(options, dict):
        raise SpecError(f"data_options must be a table, got {options!r}")
    return {
        "data": own.name,
        "data_options": {**own.options, **options},
        "place": own.place,
        "subset": None,
        "preset": None,
        "protocol": "own",
    }


def one_run(
    data: str | OwnData,
    noise: str,
    loss: str,
    *,
    method: str = PLAIN,
    seed: int = 0,
    changes: dict[str, Any] | None = None,
) -> Run:
    """Make one run by the protocol of its data set.

    Args:
        data: Name of a data set, or what `lossforge.data.own.describe` returns.
        noise: Label noise, as `lossforge.noise.NoiseSpec.parse` reads it.
        loss: A name of the catalogue, or an expression.
        method: A training method, as `lossforge.training.make_method` reads it.
        seed: Seed of everything random.
        changes: Other values of fields of `RunSpec` and of training settings.
    """
    changes = dict(changes or {})
    part = protocol(data if isinstance(data, str) else data.name)
    replaced: dict[str, Any] = {"noise": [noise], "losses": [loss], "seeds": [seed]}
    replaced["methods"] = [method]
    if isinstance(data, OwnData):
        replaced |= _on(data, changes)
    elif part.data != data:
        replaced |= {"data": data, "data_options": {}, "subset": None, "protocol": "own"}
    if changes:
        replaced["protocol"] = "own"
    named = {*NAMED, "training"} - {"model"}  # by the arguments
    allowed = set(RunSpec.model_fields) - named | {"preset", "published_decay"}
    (run,) = _changed(part, changes, allowed, **replaced).resolve()
    return run


def narrow(
    grid: GridSpec,
    *,
    data: OwnData | None = None,
    losses: Sequence[str] = (),
    noise: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    changes: dict[str, Any] | None = None,
) -> GridSpec:
    """Return a grid with other axes or values; a changed protocol is "reduced".

    Args:
        grid: The grid.
        data: A user's own data: the first part is run on it, with labels as given; the title.
        losses: Rows of the grid by name, or other losses; all rows if none.
        noise: Label noise; that of the grid if none.
        methods: Training methods; those of the grid if none.
        seeds: Seeds; those of the grid if none.
        changes: Other values of fields of the parts and of training settings.
    """
    axes = {"losses", "noise", "methods", "seeds", "training", "code", "place"}  # by the arguments
    allowed = set(PartSpec.model_fields) - axes
    changes = dict(changes or {})
    own = {} if data is None else _on(data, changes)
    parts = []
    for part in grid.parts if data is None else grid.parts[:1]:
        rows = {row if isinstance(row, str) else row.name: row for row in part.losses}
        replaced: dict[str, Any] = {
            "losses": [rows.get(loss, loss) for loss in losses] or part.losses,
            "noise": list(noise) or (part.noise if data is None else ["given"]),
            "methods": list(methods) or part.methods,
            "seeds": list(seeds) or part.seeds,
            **own,
        }
        found = _changed(part, changes, allowed, **replaced)
        reduced = changes and data is None
        parts.append(found.model_copy(update={"protocol": "reduced"}) if reduced else found)
    return grid.model_copy(update={"parts": parts, "title": data.name if data else grid.title})

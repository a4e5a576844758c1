"""Finished runs as plain data, read from a store or from an archive; nothing is trained."""

import ast
import gzip
import hashlib
import json
import math
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..constructions.pairs import BALANCE, MANY_RIVALS
from .integrity import (
    AboutShape,
    Damaged,
    GridShape,
    check_record,
    check_shape,
    parse_object,
    read_object,
)

__all__ = [
    "Damaged",
    "Grid",
    "K",
    "Measure",
    "Record",
    "paper_results",
    "read_grids",
    "read_record",
    "read_records",
]

Measure = Literal["last", "mean10", "selected"]
K = Literal["top1", "top5"]
BALANCED = ("BEF", "BQF")  # lam * target separation + mu * binary reduction
FEW_CLASSES = 10  # up to here top-5 accuracy says little
FORMAT = "lossforge runs 1"
ARCHIVED = ("id", "classes", "noise_rate", "parameters", "failed")  # fields kept as they are
# of every epoch; archives of earlier versions have the last value only
FITS = ("noise_fit", "noise_recovered", "clean_fit")
WRONG = (ValueError, LookupError, TypeError, AttributeError)  # raised by data of another shape

UNSEALED = "its seal is missing"  # which results have that were written with the id of their run

T = TypeVar("T")
OnDamage = Callable[[str], object]


@dataclass(frozen=True)
class Record:
    """One finished run.

    Args:
        id: The hash of the spec, which is also the name of the run's folder.
        spec: The fields of `lossforge.benchmark.spec.RunSpec`.
        metrics: One dictionary for every epoch.
        classes: Number of classes.
        noise_rate: Share of the training labels that are wrong.
        parameters: SHA-256 of the final weights.
        about: Time, machine, versions and command; the result does not depend on them.
        transition: Number of samples of each true class (rows) per given label, if kept.
        failed: Why training failed, if it did; such a run has no accuracy.
        folder: The run's folder, with the record and the run's other files.
        loss_parameters: Numbers and other settings of the loss by name. Records of earlier
            versions lack them; those are read from the loss's text.
        tested_as_given: Whether a user's own labels were tested on as given, some of which may be
            wrong.
        sealed: Whether the record carries the hash of its contents, which those of earlier versions
            lack.
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
    tested_as_given: bool = False
    sealed: bool = True

    def __post_init__(self) -> None:
        if self.loss_parameters is None:
            given = _read_call(self.spec.get("expression", ""))[1]
            object.__setattr__(self, "loss_parameters", given)

    @property
    def family(self) -> str:
        """Name of the loss without its parameters; empty if its text is a sum."""
        return _read_call(self.spec.get("expression", ""))[0]

    @property
    def balance(self) -> tuple[str, float, float] | None:
        """The family, lam and mu if the loss is BEF or BQF with both parts and a known lam."""
        family, given = self.family, self.loss_parameters or {}
        lam, mu = given.get("lam"), given.get("mu")
        if mu is None and self.classes - 1 <= MANY_RIVALS:  # beyond, there is none by default
            mu = BALANCE
        if family in BALANCED and isinstance(lam, int | float) and isinstance(mu, int | float):
            return family, float(lam), float(mu)
        return None

    @property
    def tests(self) -> list[str]:
        """Names of the test sets."""
        return list(self.metrics[-1]["tests"]) if self.metrics else []

    @property
    def selected_epoch(self) -> int | None:
        """The first epoch that is best on held-out noisy labels; None without such labels."""
        held_out = [epoch.get("validation") for epoch in self.metrics]
        known = [value for value in held_out if value is not None]
        return 1 + held_out.index(max(known)) if known else None

    def curve(self, test: str = "test", k: K = "top1") -> list[float | None]:
        """Return the accuracy in % after every epoch."""
        return [epoch["tests"].get(test, {}).get(k) for epoch in self.metrics]

    def last(self, test: str = "test", k: K = "top1") -> float | None:
        """Return the accuracy in % after the last epoch; None if this test or k is missing."""
        return self.mean_last(1, test, k)

    def mean_last(self, epochs: int = 10, test: str = "test", k: K = "top1") -> float | None:
        """Return the mean accuracy in % of the last epochs, of all if there are fewer."""
        curve = [] if self.failed else self.curve(test, k)[-epochs:]
        known = [value for value in curve if value is not None]
        return math.fsum(known) / len(known) if known else None

    def selected(self, test: str = "test", k: K = "top1") -> float | None:
        """Return the accuracy in % after the epoch selected on held-out noisy labels."""
        epoch = self.selected_epoch
        return None if epoch is None or self.failed else self.curve(test, k)[epoch - 1]

    def measure(self, name: Measure, test: str = "test", k: K = "top1") -> float | None:
        """Return one of the three accuracies that are reported."""
        if name == "mean10":
            return self.mean_last(10, test, k)
        return self.last(test, k) if name == "last" else self.selected(test, k)


def _read_call(expression: str) -> tuple[str, dict[str, Any]]:
    """Read the name and the literal arguments of a text such as "BEF(lam=0.9, mu=0.1)".

    A sum of losses has neither.
    """
    try:
        call = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what the parser raises
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


def read_records(store: Path, *, on_damage: OnDamage | None = None) -> list[Record]:
    """Read all finished runs of a store, in the order in which their grids list them.

    Runs that no grid lists follow in the order in which they were started. Unfinished runs are
    left out.

    Args:
        store: The folder that `lossforge bench` writes, or an archive.
        on_damage: Called with a line for every damaged run or grid of a folder, which is then left
            out.

    Raises:
        Damaged: For the first damaged file, unless there is `on_damage`.
    """
    if store.is_file():
        return unpack(store)[1]
    if not store.is_dir():
        command = f"lossforge bench GRID --store {shlex.quote(str(store))}"
        raise FileNotFoundError(f"there is no folder {store}; `{command}` would make it")
    places: dict[str, int] = {}
    for grid in read_grids(store, on_damage=lambda line: None):  # they only determine the order
        for run in grid.runs:
            places.setdefault(run, len(places))
    folders = [path.parent for path in sorted(store.glob("*/record.json"))]
    return sorted(_whole(read_record, folders, on_damage), key=_order(places))


def read_record(folder: Path) -> Record:
    """Read the record of one finished run from its folder; raise `Damaged` unless it is whole."""
    path = folder / "record.json"
    content = read_object(path)
    try:
        check_record(content, folder.name)
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    is_sealed, about = content.pop("seal", None) is not None, _read_about(folder)
    if about.pop("id", None) is not None and not is_sealed:
        raise Damaged(f"{path} is damaged: {UNSEALED}")
    return Record(**content, about=about, folder=folder, sealed=is_sealed)


def _read_about(folder: Path) -> dict[str, Any]:
    """Read the circumstances of a run, with its id unless they are of an earlier version."""
    path = folder / "about.json"
    if not path.exists():
        return {}
    content = read_object(path)
    try:
        check_shape(AboutShape, content)
        if content.get("id", folder.name) != folder.name:
            raise ValueError("it is that of another run")
        if content.pop("seal", None) is None and "id" in content:
            raise ValueError(UNSEALED)
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    return content


def _whole(
    read: Callable[[Path], T], paths: Iterable[Path], on_damage: OnDamage | None
) -> Iterator[T]:
    """Read files; skip damaged ones if `on_damage` is given."""
    for path in paths:
        try:
            yield read(path)
        except FileNotFoundError:  # deleted in the meantime
            continue
        except Damaged as error:
            if on_damage is None:
                raise
            on_damage(str(error))


def _order(places: dict[str, int]) -> Callable[[Record], tuple[int, int, str]]:
    def key(record: Record) -> tuple[int, int, str]:
        spec = record.folder / "spec.json" if record.folder else None
        started = spec.stat().st_mtime_ns if spec and spec.exists() else 0
        return places.get(record.id, len(places)), started, record.id

    return key


def read_grids(store: Path, *, on_damage: OnDamage | None = None) -> list[Grid]:
    """Read the files `grid-*.json` of a store; each holds the fields of `Grid`.

    Args:
        store: The folder, or an archive.
        on_damage: Called with a line for every damaged file of a folder, which is then left out.
    """
    if store.is_file():
        return [_packed_grid(store)]
    return list(_whole(_read_grid, sorted(store.glob("grid-*.json")), on_damage))


def _read_grid(path: Path) -> Grid:
    content, digest = read_object(path), _GRID_HASH.search(path.name)
    try:
        check_shape(GridShape, content)
        if digest is not None and not grid_hash(path.read_bytes()) == digest[1]:
            raise ValueError("its content does not match the hash in its name")
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}; delete it, or repeat its `bench`") from None
    return Grid(
        name=content.get("name") or path.stem.removeprefix("grid-"),
        title=content.get("title") or "",
        table=content.get("table"),
        runs=tuple(content.get("runs", ())),
    )


_GRID_HASH = re.compile(r"-([0-9a-f]{8})\.json$")


def grid_hash(text: bytes) -> str:
    """Return the hash of a grid's description, the end of its file's name."""
    return hashlib.sha256(text).hexdigest()[:8]


def paper_results(table: str) -> dict[str, Any] | None:
    """Read the paper's own numbers of one of its tables; None if it has no such table.

    Args:
        table: E.g. "cifar10", or the name of a preset such as "paper/cifar10".

    Returns:
        Its caption, its source, and one row per number, with the loss, the data, the noise, the
        test, k ("top1", "top5"), the mean and the standard deviation (or None).
    """
    source = resources.files(__package__) / "paper_results.json"
    content = json.loads(source.read_text(encoding="utf-8"))
    found = content["tables"].get(table.removeprefix("paper/"))
    if found is None:
        return None
    rows = [
        {"loss": row["loss"], **column, "mean": cell["mean"], "std": cell["std"]}
        for row in found["rows"]
        for column, cell in zip(found["columns"], row["cells"], strict=True)
    ]
    return {"caption": found["caption"], "source": content["source"], "rows": rows}


def unpack(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """Read an archive, a file that `lossforge.benchmark.archive.pack` wrote.

    It holds the loss, the accuracies on test sets and held-out labels and the share of correct and
    wrong labels fitted, for every epoch; archives of earlier versions have the last of these shares
    only. Times and transition matrices are dropped.

    Returns:
        The header (name, title, table and command of the grid, total seconds, ids of unfinished
        runs), and the runs.
    """
    header, lines = _read_lines(path)
    try:
        return header, [_record(header, line) for line in lines]
    except WRONG as error:
        raise Damaged(f"{path} is not a file of packed runs, or is damaged: {error}") from None


def _read_lines(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the header and the lines of an archive."""
    try:
        header, *lines = map(parse_object, gzip.decompress(path.read_bytes()).splitlines())
        if header["format"] != FORMAT:
            raise ValueError(f"expected {FORMAT!r}, got {header['format']!r}")
        check_shape(GridShape, {**header, "runs": header["unfinished"]})
    except (gzip.BadGzipFile, EOFError, zlib.error, *WRONG) as error:
        raise Damaged(f"{path} is not a file of packed runs, or is damaged: {error}") from None
    return header, lines


def _packed_grid(path: Path) -> Grid:
    """Read the description of the grid from an archive."""
    header, lines = _read_lines(path)
    runs = [*(str(line.get("id")) for line in lines), *header["unfinished"]]
    return Grid(header.get("name") or path.name, header["title"], header["table"], tuple(runs))


def _record(header: Mapping[str, Any], line: dict[str, Any]) -> Record:
    content = {
        **{name: line[name] for name in ARCHIVED},
        "spec": _merged(header["spec"], line["spec"]),
        "metrics": list(_epochs(line["metrics"])),
        "loss_parameters": line.get("loss_parameters"),
        "tested_as_given": line.get("tested_as_given", False),
    }
    about = _merged(header["about"], line["about"])
    is_sealed = "seal" in line
    try:
        if is_sealed != ("seal" in header):
            raise ValueError("it or the header lost its seal")
        check_record(content, line["id"])
        check_shape(AboutShape, about)
    except ValueError as error:
        raise ValueError(f"run {line['id']}: {error}") from None
    return Record(**content, about=about, sealed=is_sealed)


def _epochs(kept: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    last = len(kept["loss"])
    for i, (loss, validation) in enumerate(zip(kept["loss"], kept["validation"], strict=True)):
        tests = {
            test: {"top1": lists["top1"][i], "top5": lists["top5"][i] if "top5" in lists else None}
            for test, lists in kept["tests"].items()
        }
        fits = {name: _at_epoch(kept[name], i, last) for name in FITS}
        yield {"epoch": i + 1, "loss": loss, "validation": validation, "tests": tests, **fits}


def _at_epoch(kept: Any, i: int, last: int) -> Any:
    """Return the value of epoch i from a list, or from the value of the last epoch alone."""
    if isinstance(kept, list):
        return kept[i]
    return kept if i + 1 == last else None


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Join shared and own entries again, in the order in which a store writes them."""
    both = {**shared, **own}
    for key in shared.keys() & own.keys():
        both[key] = _merged(shared[key], own[key])
    return dict(sorted(both.items()))

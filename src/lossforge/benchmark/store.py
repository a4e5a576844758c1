"""A store: one folder for each run, with its spec, checkpoints, claim and results."""

import errno
import io
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from torch import Tensor

from ..catalog import Code, restore
from ..errors import SpecError
from ..files import file_system_time, write_atomically
from ..noise import NoiseSpec
from ..noise.spec import matrix_csv
from .claim import STALE, claimed, is_alive
from .integrity import Damaged, check_record, first_line, parse_object, read_object, sealed
from .records import read_record
from .spec import RunSpec

FILES = (
    *("spec.json", "noise.csv", "metrics.jsonl", "features.npz", "about.json", "record.json"),
    *("model.safetensors", "model.json"),
)
CODE = "code"  # the folder of the user's own files, whose names are theirs
KEPT = 2  # checkpoints: if the newest is damaged, the one before it is used


class RunFolder:
    """The files of one run.

    Args:
        store: The folder of all runs.
        spec: The run; its hash names the folder.
    """

    def __init__(self, store: Path, spec: RunSpec) -> None:
        self.path = store / spec.id
        self.spec = spec

    def open(self, noise: NoiseSpec | None = None, code: Sequence[Code] = ()) -> None:
        """Make the folder, write the run's spec unless it is there, and seal an old record.

        Warns if the record is damaged: the run then counts as unfinished and is repeated.

        Args:
            noise: The noise of the run, whose transition matrix the folder keeps if it is one.
            code: The user's own code that the run executes; the folder keeps its files.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(error.errno, "cannot make the folder", str(self.path)) from error
        for path in [*(self.path / name for name in FILES), *self._checkpoints()]:
            if path.is_dir():  # said now, not after hours of training
                raise IsADirectoryError(errno.EISDIR, "must be a file, not a folder", str(path))
        if noise is not None and noise.kind == "matrix":
            assert noise.weights is not None
            self._keep("noise.csv", matrix_csv(noise.weights, noise.classes).encode())
        for one in code:
            if one.source is not None:
                self._keep(f"{CODE}/{one.name}", one.source)
        self._keep("spec.json", _json(self.spec.model_dump()))
        damage, is_sealed = self._inspect()
        if damage is not None:
            warnings.warn(f"{damage}; the run is repeated", stacklevel=2)
        elif not is_sealed:
            self._seal()
        self._tidy()

    def _keep(self, name: str, content: bytes) -> None:
        """Write a file unless it has that content: a damaged one is mended."""
        path = self.path / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, content)

    def _seal(self) -> None:
        """Seal the results of an earlier version, which had no seals."""
        for name in ("record.json", "about.json"):
            with suppress(OSError):  # the file is missing, or may not be written
                content = read_object(self.path / name)
                if "seal" not in content:
                    write_atomically(self.path / name, _json(sealed(content)))

    def read_noise(self) -> NoiseSpec:
        """Read the run's noise; a transition matrix from the folder, checked by its hash."""
        text, path = self.spec.noise, self.path / "noise.csv"
        if "@" not in text or not path.exists():
            return NoiseSpec.parse(text)
        noise = NoiseSpec.parse(str(path))
        if str(noise).rpartition("@")[2] != text.rpartition("@")[2]:
            raise SpecError(f"{path} was changed: it is not the matrix {text}")
        return replace(noise, name=text)

    def admit_code(self, *, trust: bool) -> None:
        """Import the user's own code that the run executes: only with trust, and by its hash."""
        restore(self.spec.code, self.path / CODE, trust=trust)

    def claim(self) -> AbstractContextManager[bool]:
        """Try to claim this run for this worker."""
        return claimed(self.path / "claim")

    @property
    def status(self) -> str:
        """One of "finished", "running", "started", "waiting"."""
        if self.finished:
            return "finished"
        if is_alive(self.path / "claim"):
            return "running"
        return "started" if any(self.path.glob("checkpoint-*.pt")) else "waiting"

    @property
    def finished(self) -> bool:
        """Whether the run has a whole record."""
        return (self.path / "record.json").exists() and self._inspect()[0] is None

    def _inspect(self) -> tuple[str | None, bool]:
        """Return what is wrong with the record, if anything, and whether it is sealed."""
        stamps = [_stamp(self.path / name) for name in ("record.json", "about.json")]
        return (None, True) if stamps[0] is None else _inspect(self.path, tuple(stamps))

    def save_checkpoint(self, epoch: int, content: bytes) -> None:
        """Write a checkpoint, and delete all but the newest two."""
        path = self.path / f"checkpoint-{epoch:06}.pt"
        write_atomically(path, self._checkpoint_hash(content) + content)
        for old in self._checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def load_checkpoint(self, read: Callable[[bytes], Any] = bytes) -> Any:
        """Return what the newest usable checkpoint holds, if there is one; warn of the others.

        Args:
            read: Reads the content of a checkpoint; raises ValueError if it is unusable.
        """
        for path in self._checkpoints():
            try:
                whole = path.read_bytes()
            except FileNotFoundError:
                continue  # deleted by a worker whose claim was taken for stale
            digest, content = whole[:32], whole[32:]
            try:
                # earlier versions did not hash the run's id
                if digest not in (self._checkpoint_hash(content), sha256(content).digest()):
                    raise ValueError("its content does not match its hash")
                return read(content)
            except ValueError as error:
                warnings.warn(f"{path} is damaged and ignored: {error}", stacklevel=2)
        return None

    def _checkpoint_hash(self, content: bytes) -> bytes:
        """Hash the run's id too: a checkpoint of another run must not be used."""
        return sha256(self.spec.id.encode() + content).digest()

    def save_features(self, features: Tensor, labels: Tensor) -> None:
        """Write the features of the test samples, the inputs of the last layer."""
        file = io.BytesIO()
        np.savez(file, features=features.numpy(), labels=labels.numpy())
        write_atomically(self.path / "features.npz", file.getvalue())

    def finish(self, record: dict[str, Any], about: dict[str, Any]) -> None:
        """Write the results with their seals, the record last, and delete the checkpoints."""
        check_record(record, self.spec.id)  # or the run would be repeated for ever
        about = {"id": self.spec.id, **about}
        write_atomically(self.path / "about.json", _json(sealed(about)))
        write_atomically(self.path / "record.json", _json(sealed(record)))
        self._tidy()

    def _tidy(self) -> None:
        """Delete the checkpoints and claims of a finished run, and temporary files of crashes."""
        if self.finished:
            for needless in [*self._checkpoints(), *self.path.glob("claim.*")]:
                with suppress(IsADirectoryError, PermissionError):  # no claim of ours is a folder
                    needless.unlink(missing_ok=True)
        drafts = list(self.path.glob(".*"))
        now = file_system_time(self.path) if drafts else None
        for draft in drafts:
            with suppress(OSError):  # the file system may be read-only by now
                if now is not None and now - draft.stat().st_mtime > STALE:  # its writer is gone
                    draft.unlink()

    def _checkpoints(self) -> list[Path]:
        return sorted(self.path.glob("checkpoint-*.pt"), reverse=True)


@lru_cache(maxsize=2**16)
def _inspect(folder: Path, stamps: tuple[object, ...]) -> tuple[str | None, bool]:
    """Read a record, again only if the stamps of its files have changed."""
    try:
        return None, read_record(folder).sealed
    except FileNotFoundError:  # deleted in the meantime
        return None, True
    except Damaged as error:
        return str(error), True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return numbers that change whenever a file is replaced; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_spec(store: Path, run: str) -> RunSpec:
    """Read the spec of a run by its id."""
    path = store / run / "spec.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: there is no run {run} in {store}")
    try:
        spec = RunSpec.model_validate(parse_object(path.read_bytes()))
    except ValidationError as error:
        raise SpecError(f"{path}: {first_line(error)}") from None
    except ValueError as error:
        raise SpecError(f"{path}: {error}; `lossforge bench` would mend it") from None
    if spec.id != run:
        raise SpecError(f"{path} was changed: it describes run {spec.id}")
    return spec


def statuses(store: Path, specs: Iterable[RunSpec]) -> Iterator[tuple[RunSpec, str]]:
    """Yield each run with its status."""
    for spec in specs:
        yield spec, RunFolder(store, spec).status


class Forecast:
    """Estimates the time that a grid still needs from its finished runs.

    Runs of one data set, network and number of epochs are estimated from the finished ones among
    them; a kind without finished runs counts as the mean of the other kinds.

    Args:
        store: The folder of runs.
        runs: The runs of the grid.
        workers: Runs at a time.
    """

    def __init__(self, store: Path, runs: Iterable[RunSpec], workers: int) -> None:
        # specs are hashed once: a forecast is made at every refresh, of thousands of runs
        self._folders = {run.id: RunFolder(store, run) for run in runs}
        self._seconds: dict[str, float | None] = {}
        self._workers = workers

    def left(self, statuses: Mapping[str, str]) -> timedelta | None:
        """Estimate the time left; None if no run is finished.

        Args:
            statuses: The status of every run, by id.
        """
        spent: dict[tuple[str, str, object], list[float]] = {}
        left: list[tuple[str, str, object]] = []
        for run, folder in self._folders.items():
            if statuses[run] != "finished":
                left.append(_kind(folder.spec))
            elif (seconds := self._spent(run)) is not None:
                spent.setdefault(_kind(folder.spec), []).append(seconds)
        if not spent:
            return None
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in spent.items()}
        usual = sum(means.values()) / len(means)
        total = sum(means.get(kind, usual) for kind in left)
        return timedelta(seconds=round(total / self._workers))

    def _spent(self, run: str) -> float | None:
        """Return the seconds that a finished run took, read once; None if unknown."""
        if run not in self._seconds:
            self._seconds[run] = None
            with suppress(OSError, ValueError):  # missing or damaged
                about = read_object(self._folders[run].path / "about.json")
                self._seconds[run] = about.get("seconds")
        return self._seconds[run]


def _kind(run: RunSpec) -> tuple[str, str, object]:
    return (run.data, run.model, run.training.get("epochs"))


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()

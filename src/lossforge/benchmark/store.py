"""A folder of runs: what each is to do, how far it is, what came out."""

import hashlib
import io
import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from torch import Tensor

from ..errors import SpecError
from ..files import file_system_time, write_atomically
from .claim import STALE, claimed, is_alive
from .spec import RunSpec

KEPT = 2  # checkpoints: should the newest be damaged, the one before serves


class RunFolder:
    """The files of one run.

    Args:
        store: The folder of all runs.
        spec: What the run does; its hash names the folder.
    """

    def __init__(self, store: Path, spec: RunSpec) -> None:
        self.path = store / spec.id
        self.spec = spec

    def open(self) -> None:
        """Make the folder and write down what the run does."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(error.errno, "cannot make the folder", str(self.path)) from error
        if not (self.path / "spec.json").exists():
            write_atomically(self.path / "spec.json", _json(self.spec.model_dump()))
        self._tidy()

    def claim(self) -> AbstractContextManager[bool]:
        """Try to be the one worker on this run."""
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
        return (self.path / "record.json").exists()

    def save_checkpoint(self, epoch: int, content: bytes) -> None:
        """Keep a state, and drop all but the newest two."""
        digest = hashlib.sha256(content).digest()
        write_atomically(self.path / f"checkpoint-{epoch:06}.pt", digest + content)
        for old in self._checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def load_checkpoint(self) -> bytes | None:
        """The newest state that is whole, if there is one."""
        for path in self._checkpoints():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # somebody who was taken for dead tidied up
            if hashlib.sha256(content[32:]).digest() == content[:32]:
                return content[32:]
            warnings.warn(f"{path} is damaged and left aside", stacklevel=2)
        return None

    def save_features(self, features: Tensor, labels: Tensor) -> None:
        """Keep what the last layer sees of the test samples."""
        file = io.BytesIO()
        np.savez(file, features=features.numpy(), labels=labels.numpy())
        write_atomically(self.path / "features.npz", file.getvalue())

    def finish(self, record: dict[str, Any], about: dict[str, Any]) -> None:
        """Write the results, the record last, and drop the rest."""
        write_atomically(self.path / "about.json", _json(about))
        write_atomically(self.path / "record.json", _json(record))
        self._tidy()

    def _tidy(self) -> None:
        """Drop what only an unfinished run needs, if it is finished, and what crashes left."""
        if self.finished:
            for needless in [*self._checkpoints(), *self.path.glob("claim.*")]:
                needless.unlink(missing_ok=True)
        drafts = list(self.path.glob(".*"))
        now = file_system_time(self.path) if drafts else None
        for draft in drafts:
            with suppress(OSError):  # a file system that is read-only by now
                if now is not None and now - draft.stat().st_mtime > STALE:  # nobody writes it
                    draft.unlink()

    def _checkpoints(self) -> list[Path]:
        return sorted(self.path.glob("checkpoint-*.pt"), reverse=True)


def read_spec(store: Path, run: str) -> RunSpec:
    """What a run of a store does, by its id."""
    path = store / run / "spec.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: there is no run {run} in {store}")
    try:
        spec = RunSpec.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise SpecError(f"{path}: {error.errors()[0]['msg']}") from None
    if spec.id != run:
        raise SpecError(f"{path} was changed: it describes run {spec.id}")
    return spec


def statuses(store: Path, specs: Iterable[RunSpec]) -> Iterator[tuple[RunSpec, str]]:
    """How far each run is."""
    for spec in specs:
        yield spec, RunFolder(store, spec).status


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()

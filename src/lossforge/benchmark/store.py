"""A store: one folder for each run, with its spec, checkpoints, claim and results."""

import hashlib
import io
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from torch import Tensor

from ..errors import SpecError
from ..files import file_system_time, write_atomically
from ..noise import NoiseSpec
from ..noise.spec import matrix_csv
from .claim import STALE, claimed, is_alive
from .spec import RunSpec

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

    def open(self, noise: NoiseSpec | None = None) -> None:
        """Make the folder and write the run's spec.

        Args:
            noise: The noise of the run, whose transition matrix the folder keeps if it is one.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(error.errno, "cannot make the folder", str(self.path)) from error
        matrix, spec = self.path / "noise.csv", self.path / "spec.json"
        if noise is not None and noise.kind == "matrix" and not matrix.exists():
            assert noise.weights is not None
            write_atomically(matrix, matrix_csv(noise.weights, noise.classes).encode())
        if not spec.exists():
            write_atomically(spec, _json(self.spec.model_dump()))
        self._tidy()

    def read_noise(self) -> NoiseSpec:
        """Read the run's noise; a transition matrix from the folder, checked by its hash."""
        text, path = self.spec.noise, self.path / "noise.csv"
        if not path.exists():
            return NoiseSpec.parse(text)
        noise = NoiseSpec.parse(str(path))
        if str(noise).rpartition("@")[2] != text.rpartition("@")[2]:
            raise SpecError(f"{path} was changed: it is not the matrix {text}")
        return replace(noise, name=text)

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
        """Whether the run has a record."""
        return (self.path / "record.json").exists()

    def save_checkpoint(self, epoch: int, content: bytes) -> None:
        """Write a checkpoint, and delete all but the newest two."""
        digest = hashlib.sha256(content).digest()
        write_atomically(self.path / f"checkpoint-{epoch:06}.pt", digest + content)
        for old in self._checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def load_checkpoint(self) -> bytes | None:
        """Return the newest undamaged checkpoint, if there is one."""
        for path in self._checkpoints():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # deleted by a worker whose claim was taken for stale
            if hashlib.sha256(content[32:]).digest() == content[:32]:
                return content[32:]
            warnings.warn(f"{path} is damaged and ignored", stacklevel=2)
        return None

    def save_features(self, features: Tensor, labels: Tensor) -> None:
        """Write the features of the test samples, the inputs of the last layer."""
        file = io.BytesIO()
        np.savez(file, features=features.numpy(), labels=labels.numpy())
        write_atomically(self.path / "features.npz", file.getvalue())

    def finish(self, record: dict[str, Any], about: dict[str, Any]) -> None:
        """Write the results, the record last, and delete the checkpoints."""
        write_atomically(self.path / "about.json", _json(about))
        write_atomically(self.path / "record.json", _json(record))
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


def read_spec(store: Path, run: str) -> RunSpec:
    """Read the spec of a run by its id."""
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
    """Yield each run with its status."""
    for spec in specs:
        yield spec, RunFolder(store, spec).status


def estimate(store: Path, runs: Sequence[RunSpec], workers: int) -> timedelta | None:
    """Estimate the time left from the finished runs; None if no run is finished.

    Runs of one data set, network and number of epochs are estimated from the finished ones among
    them; a kind without finished runs counts as the mean of the other kinds.
    """
    spent: dict[tuple[str, str, object], list[float]] = {}
    left: list[tuple[str, str, object]] = []
    for run in runs:
        kind = (run.data, run.model, run.training.get("epochs"))
        folder = RunFolder(store, run)
        if not folder.finished:
            left.append(kind)
        elif (about := folder.path / "about.json").exists():
            spent.setdefault(kind, []).append(json.loads(about.read_text())["seconds"])
    if not spent:
        return None
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in spent.items()}
    usual = sum(means.values()) / len(means)
    total = sum(means.get(kind, usual) for kind in left)
    return timedelta(seconds=round(total / workers))


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()

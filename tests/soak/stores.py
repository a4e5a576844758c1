"""Damaged stores: what is damaged is named, never shown, and mended to the same bytes by `bench`.

A small store with finished runs and an interrupted one is damaged in one to three places. Then
`report` and `bench` must end without a traceback or a hang. The report may show undamaged runs
only. After `bench`, specs and records are those of the undamaged store.
"""

import atexit
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import torch

from lossforge.benchmark import GridSpec, RunFolder, RunSpec, execute, make_grid
from lossforge.benchmark.grid import save_grid
from lossforge.benchmark.integrity import sealed
from lossforge.benchmark.records import Record, read_records
from lossforge.report import make_report
from lossforge.training import State

SIZE = 200
COMMANDS_EVERY = 20  # problems, of which one goes through the real command line
SECONDS = 300
USER_ERRORS = (OSError, ValueError)  # the command line prints them as one line

GRID = """
name = "small"
data = "digits"
subset = 100
model = "mlp"
model_options = {hidden = [4]}
noise = ["symmetric:0.4"]
losses = ["CE", "GCE"]
seeds = [0, 1]
training = {epochs = 3, batch_size = 50, lr = 0.1}
"""


def attack(seed: int) -> list[str]:
    """Damage a store, report it and mend it; return the faults of that."""
    chance = Random(seed)
    with tempfile.TemporaryDirectory(prefix="store-") as folder, _plain_torch():
        store = Path(shutil.copytree(_undamaged(), Path(folder) / "small"))
        kinds = chance.choices(DAMAGES, k=chance.randint(1, 3))
        if chance.random() < 0.1:  # without seals no plausible edit is noticed: no other damage
            kinds = [_old_format]
        done = [damage(store, chance) for damage in kinds]
        if seed % COMMANDS_EVERY == 0:
            faults = _attack_commands(store, Path(folder))
        else:
            faults = _attack_library(store)
    return [f"{fault} (after: {'; '.join(done)})" for fault in faults]


# The undamaged store


@cache
def _grid() -> GridSpec:
    return make_grid(tomllib.loads(GRID))


@cache
def _runs() -> list[RunSpec]:
    return _grid().runs()


class _Stop(Exception):  # noqa: N818
    """Interrupts a run."""


@cache
def _undamaged() -> Path:
    """Make a store with three finished runs, and a fourth with checkpoints of two epochs."""
    store = Path(tempfile.mkdtemp(prefix="undamaged-"))
    atexit.register(shutil.rmtree, store, ignore_errors=True)
    save_grid(store, _grid(), _runs())
    *finished, last = _runs()
    for run in finished:
        execute(store, run)

    def stop(state: State) -> None:
        if state.epoch == 2:
            raise _Stop

    try:
        execute(store, last, on_epoch=stop)
    except _Stop:
        return store
    raise AssertionError("the run must be interrupted")


@cache
def _mended() -> Path:
    """Make the store as `bench` leaves it: all four runs finished."""
    store = Path(tempfile.mkdtemp(prefix="mended-"))
    atexit.register(shutil.rmtree, store, ignore_errors=True)
    shutil.copytree(_undamaged(), store, dirs_exist_ok=True)
    for run in _runs():
        execute(store, run)
    return store


@contextmanager
def _plain_torch() -> Iterator[None]:
    """Train as outside the tests, with a checkpoint after every epoch."""
    name, dtype = "LOSSFORGE_CHECKPOINT_SECONDS", torch.get_default_dtype()
    pace = os.environ.get(name)
    os.environ[name] = "0"
    torch.set_default_dtype(torch.float32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(dtype)
        os.environ.pop(name) if pace is None else os.environ.update({name: pace})


# Damages


def _any_file(store: Path, chance: Random) -> Path:
    return chance.choice(sorted(path for path in store.rglob("*") if path.is_file()))


def _folders(store: Path, chance: Random, name: str) -> list[Path]:
    """Two folders that have such a file, in random order."""
    found = sorted(path.parent for path in store.glob(f"*/{name}") if path.is_file())
    return chance.sample(found, 2) if len(found) > 1 else []


def _flip_a_bit(store: Path, chance: Random) -> str:
    path = _any_file(store, chance)
    content = bytearray(path.read_bytes() or b"\0")
    place = chance.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    return f"bit {place} of {_name(path)} flipped"


def _truncate(store: Path, chance: Random) -> str:
    path = _any_file(store, chance)
    content = path.read_bytes()
    size = chance.choice([0, len(content) // 2, max(0, len(content) - 1)])
    path.write_bytes(content[:size])
    return f"{_name(path)} cut to {size} bytes"


def _edit_a_number(store: Path, chance: Random) -> str:
    path = chance.choice(sorted([*store.glob("*/*.json"), *store.glob("*.json")]))
    if not path.is_file():
        return "nothing"
    text = bytearray(path.read_bytes())
    digits = [place for place, byte in enumerate(text) if chr(byte).isdigit()]
    if digits:
        place = chance.choice(digits)
        text[place] = ord(chance.choice("0123456789"))
        path.write_bytes(text)
    return f"a digit of {_name(path)} edited"


NAMES = ("record.json", "about.json", "spec.json", "metrics.jsonl")


def _swap(store: Path, chance: Random) -> str:
    name = chance.choice(NAMES)
    if not (pair := [folder / name for folder in _folders(store, chance, name)]):
        return "nothing"
    one, other = (path.read_bytes() for path in pair)
    pair[0].write_bytes(other)
    pair[1].write_bytes(one)
    return f"{_name(pair[0])} and {_name(pair[1])} swapped"


def _overwrite(store: Path, chance: Random) -> str:
    one, other = _any_file(store, chance), _any_file(store, chance)
    other.write_bytes(one.read_bytes())
    return f"{_name(one)} copied over {_name(other)}"


def _delete(store: Path, chance: Random) -> str:
    path = _any_file(store, chance)
    path.unlink()
    return f"{_name(path)} deleted"


def _garbage(store: Path, chance: Random) -> str:
    path = _any_file(store, chance)
    garbage = [
        *(b"null", b"[]", b"{}", b'{"id": 1}', b'{"seal": 1}', b'{"metrics": NaN}', b"\xff\xfe"),
        *(b"[" * 10**5, b'{"classes": ' + b"9" * 5000 + b"}", chance.randbytes(100)),
    ]
    path.write_bytes(chance.choice(garbage))
    return f"{_name(path)} replaced by {path.read_bytes()[:20]!r}"


def _old_format(store: Path, chance: Random) -> str:
    """Take the seals away, and the ids of circumstances: as in stores of version 0.1."""
    for path in store.glob("*/*.json"):
        content = json.loads(path.read_bytes())
        if content.pop("seal", None):
            if path.name == "about.json":
                del content["id"]
            path.write_text(json.dumps(content))
    return "all seals removed"


def _impossible(store: Path, chance: Random) -> str:
    """An accuracy out of range, whose seal fits: written by a faulty program."""
    path = chance.choice(sorted(store.glob("*/record.json")))
    try:
        content = json.loads(path.read_bytes())
        content["metrics"][-1]["tests"]["test"]["top1"] = chance.choice([500, -1, "90", True])
        path.write_text(json.dumps(sealed(content)))
    except (ValueError, LookupError, TypeError, OSError, RecursionError):
        return "nothing"
    return f"an impossible accuracy in {_name(path)}"


def _unusable_checkpoint(store: Path, chance: Random) -> str:
    """Content that the run cannot use, under a hash that fits."""
    run = RunFolder(store, _runs()[-1])
    if any(path.is_dir() for path in run.path.glob("checkpoint-*.pt")):
        return "nothing"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run.load_checkpoint(State.from_bytes)
    if found is None or not (run.path / "spec.json").is_file():
        return "nothing"
    half = {key: value[:1] for key, value in found.model.items()}
    content = chance.choice(
        [
            b"nothing",
            _saved([1, 2]),
            _saved({"model": 1, "optimizer": 2, "metrics": 3}),
            replace(found, model=half).to_bytes(),
            replace(found, optimizer={}).to_bytes(),
            replace(found, metrics=[{"epoch": 9}]).to_bytes(),
        ]
    )
    digest = hashlib.sha256(run.spec.id.encode() + content).digest()
    epoch = chance.choice([1, 2])
    (run.path / f"checkpoint-{epoch:06}.pt").write_bytes(digest + content)
    return f"an unusable checkpoint of epoch {epoch}"


def _saved(content: object) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def _folder_for_a_file(store: Path, chance: Random) -> str:
    path = _any_file(store, chance)
    path.unlink()
    path.mkdir()
    return f"{_name(path)} is a folder"


def _copied_run(store: Path, chance: Random) -> str:
    folder = chance.choice(sorted(path for path in store.iterdir() if path.is_dir()))
    shutil.copytree(folder, store / f"{folder.name}-copy", dirs_exist_ok=True)
    return f"{folder.name} copied"


DAMAGES: list[Callable[[Path, Random], str]] = [
    *(_flip_a_bit, _flip_a_bit, _truncate, _edit_a_number, _edit_a_number, _swap, _overwrite),
    *(_delete, _garbage, _impossible, _unusable_checkpoint, _unusable_checkpoint),
    *(_folder_for_a_file, _copied_run),
]


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


# What is asked of the library


def _attack_library(store: Path) -> list[str]:
    faults = _check_shown(store)
    found = [_report(store), *_bench_until_whole(lambda: _bench(store), store), _report(store)]
    faults += [text for text in found if text.startswith("Traceback")]
    return faults + _check_mended(store)


def _bench_until_whole(bench: Callable[[], str], store: Path) -> Iterator[str]:
    """Repeat `bench`, each time without the folders in place of files that its message names."""
    while True:
        text = bench()
        yield text
        found = [path for path in [*store.glob("*/*"), *store.glob("*.json")] if path.is_dir()]
        named = [path for path in found if str(path) in text]
        for path in named:
            path.rmdir()
        if not named:
            return


def _report(store: Path) -> str:
    """Report; return the table, the user error, or a traceback."""
    try:
        return make_report(store).text("csv")
    except USER_ERRORS as error:
        return f"error: {error}"
    except Exception as error:  # anything else is a traceback to the user
        return f"Traceback in report: {error!r}"


def _bench(store: Path) -> str:
    """Do what `bench` does, in this process."""
    try:
        save_grid(store, _grid(), _runs())
        for run in _runs():
            execute(store, run)
    except USER_ERRORS as error:
        return f"error: {error}"
    except Exception as error:
        return f"Traceback in bench: {error!r}"
    return ""


def _content(record: Record) -> Record:
    """What must not change: all but circumstances."""
    return replace(record, about={}, folder=None, sealed=True)


def _check_shown(store: Path) -> list[str]:
    """Every run that is shown is as it was, and every other record is named."""
    whole = {one.id: _content(one) for one in read_records(_undamaged())}
    named: list[str] = []
    shown = read_records(store, on_damage=named.append)
    wrong = [one.id for one in shown if _content(one) != whole.get(one.id)]
    faults = [f"the damaged run {run} is shown" for run in wrong]
    ids = [one.id for one in shown]
    faults += [f"the run {run} is shown twice" for run in ids if ids.count(run) > 1]
    for path in store.glob("*/record.json"):
        if path.parent.name not in ids and not any(str(path.parent) in line for line in named):
            faults.append(f"{_name(path)} is neither shown nor named")
    return faults


def _check_mended(store: Path) -> list[str]:
    """Specs and records are those of a store that was never damaged, and so is the report."""
    faults = []
    for run in _runs():
        for name in ("spec.json", "record.json"):
            path, whole = store / run.id / name, _mended() / run.id / name
            try:
                same = json.loads(path.read_bytes()) == json.loads(whole.read_bytes())
            except (OSError, ValueError) as error:
                faults.append(f"{_name(path)} is not mended by bench: {error}")
                continue
            faults += [] if same else [f"{_name(path)} differs after bench"]
    if _report(store) != _report(_mended()):
        faults.append("the report differs after bench")
    return faults


# What is asked of the command line


def _attack_commands(store: Path, folder: Path) -> list[str]:
    grid = folder / "small.toml"
    grid.write_text(GRID)
    bench = ("bench", grid, "--store", store, "--workers", "1")
    report = ("report", store, "--format", "csv")
    faults = _check_shown(store)
    found = [
        _command(*report),
        *_bench_until_whole(lambda: _command(*bench), store),
        _command(*report),
    ]
    faults += [text for text in found if text.startswith(("Traceback", "hangs"))]
    return faults + _check_mended(store)


def _command(*words: object) -> str:
    """Run a command; return its errors, its traceback or that it hangs."""
    command = [sys.executable, "-m", "lossforge", *map(str, words)]
    try:
        found = subprocess.run(command, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"hangs: {words[0]}"
    text = found.stderr.decode(errors="replace")
    if "Traceback" in text or found.returncode not in (0, 2):
        return f"Traceback in {words[0]}, status {found.returncode}: {text.strip()[-300:]}"
    return text

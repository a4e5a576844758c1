"""`lossforge train` is one straight line: loss, noise and run are built once each."""

import sys
import tomllib
from collections import Counter
from functools import wraps
from pathlib import Path

import pytest
import torch

pytest.importorskip("typer")
from typer.testing import CliRunner

from lossforge import BEF, data, parse
from lossforge.benchmark import RunFolder, RunSpec, make_grid, presets, read_grid
from lossforge.benchmark import run as runs
from lossforge.benchmark.grid import PROTOCOLS, PartSpec, protocol
from lossforge.catalog import GCE
from lossforge.cli.main import app
from lossforge.noise import NoiseSpec

WORDS = ["train", "--data", "digits", "--noise", "symmetric:0.6", "--loss", "BEF"]


@pytest.fixture
def built(monkeypatch):
    """Counts what is built."""
    counts = Counter()

    def count(owner, name, key, counts_as=lambda *args: True):
        original = getattr(owner, name)

        @wraps(original)
        def counted(*args, **kwargs):
            counts[key] += counts_as(*args)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    for loss in (BEF, GCE):
        count(loss, "__init__", loss.__name__)
    # a classmethod: its own arguments are the text alone
    count(NoiseSpec, "parse", "noise", lambda text: isinstance(text, str))
    count(RunFolder, "__init__", "folder")
    count(RunSpec, "__init__", "spec")
    count(PartSpec, "resolve", "grid")
    count(tomllib, "loads", "toml")
    count(runs, "train", "loop")
    count(runs, "record", "record")
    return counts


def test_train_builds_everything_once(built, tmp_path):
    torch.set_default_dtype(torch.float32)
    result = CliRunner().invoke(app, [*WORDS, "--epochs", "1", "--store", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    assert built == Counter(
        dict.fromkeys(("BEF", "noise", "folder", "spec", "grid", "toml", "loop", "record"), 1)
    )


def test_a_grid_builds_each_loss_and_noise_once(built):
    grid = {
        "name": "small",
        "model": "mlp",
        "preset": "cifar10",
        "noise": ["clean", "symmetric:0.4"],
        "losses": ["BEF", "GCE", {"name": "other", "loss": "GCE(q=0.3)"}],
        "seeds": [0, 1],
        "part": [{"data": "digits"}, {"data": "breast-cancer"}],
    }
    assert len(make_grid(grid).runs()) == 24
    assert (built["BEF"], built["GCE"], built["noise"]) == (1, 2, 2)


def test_the_functions_that_train_visits(tmp_path):
    """The way of a run through the package's own functions, each at its first call."""
    torch.set_default_dtype(torch.float32)
    visited: list[str] = []
    here = str(Path(runs.__file__).parent)

    def trace(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(here):
            name = f"{Path(code.co_filename).stem}.{code.co_name}"
            if name not in visited and not code.co_name.startswith(("_", "<")):
                visited.append(name)

    sys.setprofile(trace)
    try:
        CliRunner().invoke(app, [*WORDS, "--epochs", "1", "--store", str(tmp_path)])
    finally:
        sys.setprofile(None)
    way = [
        "grid.read_changes",
        "grid.one_run",
        "grid.protocol",
        "spec.resolve",
        "run.check_data",
        "run.execute",
        "store.open",
        "store.claim",
        "run.prepare_data",
        "run.prepare_model",
        "run.record",
        "run.circumstances",
        "store.finish",
        "records.read_record",
    ]
    assert [name for name in visited if name in way] == way


def test_every_data_set_has_the_protocol_of_the_preset_that_is_about_it():
    found: dict[str, PartSpec] = {}
    # the published one first, then by name
    for name in sorted(presets(), key=lambda name: not name.startswith("paper/")):
        for part in read_grid(name).parts:
            found.setdefault(part.data, part)
    assert set(found) == set(PROTOCOLS)
    rows = {"noise", "losses", "seeds"}
    for name in [*data.names(), "a user's own"]:
        expected = found.get(name, found["digits"])
        assert protocol(name).model_dump(exclude=rows) == expected.model_dump(exclude=rows)


@pytest.mark.parametrize("name", [name for name in presets() if name.startswith("paper/")])
def test_the_loss_that_trains_is_that_of_the_expression(name):
    logits = 3 * torch.randn(8, 12, generator=torch.Generator().manual_seed(0))
    target = torch.arange(8)
    seen = {run.spec.expression: run for part in read_grid(name).resolve() for run in part}
    for text, run in seen.items():
        assert str(run.loss) == text
        assert str(run.noise) == run.spec.noise
        again = parse(text)
        assert torch.equal(run.loss(logits, target), again(logits, target))
        assert runs.loss_parameters(run.loss) == runs.loss_parameters(again)

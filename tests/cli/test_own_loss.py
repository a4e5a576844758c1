"""A loss of the user's own file in every command, and in every process that does its runs."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("typer")
from typer.testing import CliRunner

from lossforge.benchmark import execute, make_grid, read_grid, read_spec
from lossforge.benchmark.archive import pack
from lossforge.benchmark.executors import run_all
from lossforge.benchmark.grid import admit_rows
from lossforge.benchmark.records import read_records
from lossforge.cli.main import app
from lossforge.errors import SpecError
from lossforge.report.results import Results

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SETTINGS = ["--set", "epochs=2", "--set", 'model_options={"hidden": [8]}', "--set", "subset=200"]
FILE = '''
import pathlib
import torch
from lossforge import base
from lossforge.catalog.ranges import log
from lossforge.constructions import Part
from lossforge.loss import ProbabilityLoss

with open({marker!r}, "a") as file:
    file.write("imported\\n")


class Unhinged(ProbabilityLoss):
    """A multiple of the probability of being wrong."""

    tune = {{"scale": log(0.5, 8)}}

    def __init__(self, *, scale=2.0, **policy):
        super().__init__(**policy)
        self.scale = scale

    def from_scores(self, scores, target):
        return -self.scale * torch.expm1(scores.log_probs.gather(1, target[:, None])[:, 0])

    def parts(self, num_classes):
        return (Part("target", self.scale, base.Linear()),)
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a file of losses, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(marker=str(tmp_path / "marker")))
    return path


def imports() -> int:
    marker = Path("marker")
    return len(marker.read_text().splitlines()) if marker.exists() else 0


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def command(*words):
    """The command in a process of its own, which has imported nothing."""
    whole = [sys.executable, "-m", "lossforge", *map(str, words)]
    return subprocess.run(whole, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)


def test_a_run_keeps_the_file_and_its_hash(own):
    done = run("train", "--loss", "./mine.py:Unhinged(scale=3)", *SETTINGS, "--store", "runs")
    assert done.exit_code == 0, done.stderr
    (record,) = read_records(Path("runs"))
    assert record.spec["expression"] == record.spec["loss"] == "mine.py:Unhinged(scale=3)"
    assert record.spec["code"] == {"mine.py": hashlib.sha256(own.read_bytes()).hexdigest()}
    assert (record.folder / "code" / "mine.py").read_bytes() == own.read_bytes()
    assert "'mine.py:Unhinged(scale=3)'" in record.about["command"]


@pytest.mark.parametrize("name", ["claim.py", ".hidden.py"])
def test_a_file_of_any_name_is_kept(own, name):
    """Not taken for a claim or a draft of ours."""
    other = own.rename(own.with_name(name))
    done = run("train", "--loss", f"{name}:Unhinged", *SETTINGS, "--store", "runs")
    assert done.exit_code == 0, done.stderr
    (record,) = read_records(Path("runs"))
    assert (record.folder / "code" / name).read_bytes() == other.read_bytes()
    assert execute(Path("runs"), read_spec(Path("runs"), record.id)) == "finished before"
    assert (record.folder / "code" / name).exists()


def test_a_report_compares_it_with_the_others(own):
    for loss in ("CE", "mine.py:Unhinged"):
        assert run("train", "--loss", loss, *SETTINGS, "--store", "runs").exit_code == 0
    results = Results(read_records(Path("runs")))
    assert results.losses == ["CE", "mine.py:Unhinged"]
    (column,) = results.columns
    assert all(results.values(loss, column) for loss in results.losses)


def test_other_code_is_another_run(own):
    words = ["train", "--loss", "mine.py:Unhinged", *SETTINGS, "--store", "runs"]
    assert run(*words).exit_code == 0
    own.write_text(own.read_text().replace("scale=2.0", "scale=4.0"))
    assert run(*words).exit_code == 0
    first, second = read_records(Path("runs"))
    assert first.spec["expression"] == second.spec["expression"]
    assert first.parameters != second.parameters


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("os:system", "os:system must be a class of losses or base functions"),
        ("os:system('true')", "os:system must be a class of losses or base functions"),
        ("missing.py:Loss", "missing.py: no such file"),
        ("mine.py", "mine.py must be followed by a class in it: mine.py:NAME"),
        ("0.5*mine.py + CE", "mine.py must be followed by a class in it: mine.py:NAME"),
    ],
)
def test_what_is_no_loss_is_refused_in_every_command(own, text, told):
    for words in (
        ["train", "--loss", text],
        ["bench", "--loss", text],
        ["tune", "--loss", text],
        ["certify", text, "--noise", "symmetric:0.2", "--classes", "3"],
        ["frontier", text, "--classes", "3"],
        ["audit", "digits", "--loss", text, "--out", "audited"],
    ):
        done = run(*words)
        assert (done.exit_code, told in done.stderr) == (2, True), (words, done.stderr)


def test_certify_and_frontier_judge_it(own):
    words = ["--classes", "10", "--json"]
    done = run("certify", "mine.py:Unhinged", "--noise", "symmetric:0.6", *words)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "PROVED"
    done = run("frontier", "mine.py:Unhinged", *words)
    assert done.exit_code == 0, done.stderr


@pytest.mark.slow
def test_worker_processes_and_printed_commands_find_it(own):
    words = ["bench", "digits", "--loss", "CE,mine.py:Unhinged", "--noise", "symmetric:0.4"]
    words += ["--seeds", "0", *SETTINGS]
    done = command(*words, "--store", "local", "--workers", "2")
    assert done.returncode == 0, done.stderr
    own_records = {one.spec["loss"]: one for one in read_records(Path("local"))}
    assert set(own_records) == {"CE", "mine.py:Unhinged"}

    printed = command(*words, "--store", "printed", "--executor", "print")
    lines = printed.stdout.splitlines()
    assert [line.endswith(" --trust") for line in lines] == [False, True]
    own.unlink()  # the store holds what its runs need
    run_id = lines[1].split()[3]
    refused = command("run", "printed", run_id)
    assert refused.returncode == 2
    assert "which was not typed here; read it, then add --trust" in refused.stderr
    done = command("run", "printed", run_id, "--trust")
    assert done.returncode == 0, done.stderr
    (found,) = read_records(Path("printed"))
    assert found.parameters == own_records["mine.py:Unhinged"].parameters


@pytest.mark.slow
def test_slurm_jobs_find_it(own):
    pytest.importorskip("submitit")
    (part,) = _typed_grid(own).resolve()
    run_all("slurm", Path("store"), part, cluster="local", trust=True)
    assert len(read_records(Path("store"))) == 2


@pytest.mark.slow
@pytest.mark.alone
def test_ray_tasks_find_it(own):
    pytest.importorskip("ray")
    words = ["bench", "digits", "--loss", "CE,mine.py:Unhinged", "--noise", "symmetric:0.4"]
    words += ["--seeds", "0", *SETTINGS, "--store", "store", "--executor", "ray", "--workers", "1"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert {one.spec["loss"] for one in read_records(Path("store"))} == {"CE", "mine.py:Unhinged"}


GRID = """
name = "mine"
data = "digits"
subset = 200
model = "mlp"
model_options = {hidden = [8]}
noise = ["symmetric:0.4"]
losses = ["CE", {name = "Mine", loss = "mine.py:Unhinged"}]
seeds = [0]
training = {epochs = 2}
"""


def _typed_grid(own):
    Path("grid.toml").write_text(GRID)
    grid = read_grid("grid.toml")
    admit_rows(grid, ["mine.py:Unhinged"])
    return grid


def test_a_grid_of_somebody_else_needs_trust_and_the_hash(own):
    Path("grid.toml").write_text(GRID)
    words = ["bench", "grid.toml", "--dry-run"]
    for refused in (words, [*words, "--trust"], [*words, "--loss", "Mine"]):
        done = run(*refused)
        assert done.exit_code == 2
        assert "executes mine.py, which was not typed here" in done.stderr
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    Path("grid.toml").write_text(f'{GRID}\n[code]\n"mine.py" = "{"0" * 64}"\n')
    done = run(*words, "--trust")
    assert (done.exit_code, "must have SHA-256 0000" in done.stderr) == (2, True)
    Path("grid.toml").write_text(f'{GRID}\n[code]\n"mine.py" = "{digest}"\n')
    assert run(*words).exit_code == 2
    assert imports() == 0
    done = run(*words, "--trust")
    assert done.exit_code == 0, done.stderr
    assert imports() == 1


def test_a_changed_file_of_a_store_is_not_executed(own):
    (part,) = _typed_grid(own).resolve()
    store = Path("store")
    run_all("print", store, part, trust=True)
    mine = next(one.spec for one in part if one.code)
    (store / mine.id / "code" / "mine.py").write_text("raise SystemExit('executed')\n")
    with pytest.raises(SpecError, match=r"mine\.py must have SHA-256"):
        execute(store, read_spec(store, mine.id), trust=True)
    with pytest.raises(SpecError, match="which was not typed here"):
        execute(store, read_spec(store, mine.id))


@pytest.mark.slow
def test_a_report_imports_nothing(own):
    assert run("train", "--loss", "mine.py:Unhinged", *SETTINGS, "--store", "runs").exit_code == 0
    before = imports()
    for name in ("runs", "packed.jsonl.gz"):
        if name.endswith(".gz"):
            pack(Path("runs"), Path(name))
        done = command("report", name)
        assert done.returncode == 0, done.stderr
        assert "mine.py:Unhinged" in done.stdout
    assert imports() == before


def test_grids_without_own_code_have_no_new_field(own):
    grid = make_grid({"name": "g", "data": "digits", "model": "mlp", "noise": ["clean"],
                      "losses": ["CE"], "seeds": [0]})  # fmt: skip
    (spec,) = grid.runs()
    assert "code" not in spec.model_dump()
    assert "code" not in json.loads(spec.model_dump_json())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_its_parameters_are_tuned(own, workers):
    pytest.importorskip("optuna")
    words = ["tune", "--loss", "mine.py:Unhinged", "--trials", "3", "--final-seeds", "1"]
    done = command(*words, *SETTINGS, "--store", "search", "--workers", workers, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["default"] == "mine.py:Unhinged(scale=2)"
    assert found["best"].startswith("mine.py:Unhinged(scale=")
    assert len({trial["expression"] for trial in found["trials"]}) == 3


@pytest.mark.slow
def test_a_range_is_that_of_a_keyword_with_a_default(own):
    pytest.importorskip("optuna")
    file = Path("mine.py")
    file.write_text(file.read_text().replace("scale=2.0", "scale"))
    done = command("tune", "--loss", "mine.py:Unhinged", *SETTINGS, "--store", "search")
    assert done.returncode == 2
    assert "'scale', which must be a keyword with a default value" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_an_audit_tries_it(own):
    pytest.importorskip("cleanlab")
    words = ["audit", "digits", "--noise", "symmetric:0.4", "--loss", "CE,mine.py:Unhinged"]
    words += ["--folds", "2", "--repeats", "1", "--epochs", "3", "--json"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["losses"]}
    assert found["mine.py:Unhinged"]["status"] == "PROVED"
    assert found["mine.py:Unhinged"]["accuracy"] is not None
    assert found["mine.py:Unhinged"]["code"].startswith("lossforge.catalog.admit")

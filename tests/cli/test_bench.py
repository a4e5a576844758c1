"""`lossforge train`, `bench` and `run` as a user types them."""

import json
import os
import shlex
import subprocess
import sys

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from lossforge.benchmark import RunFolder, one_run
from lossforge.benchmark.records import read_records
from lossforge.cli.main import app
from lossforge.cli.options import separate

QUICK = ["--set", "epochs=2", "--set", 'model_options={"hidden": [8]}']
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def command(*arguments, **options):
    """The command in a process of its own, with torch's own defaults."""
    words = [sys.executable, "-m", "lossforge", *map(str, arguments)]
    return subprocess.run(
        words, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, **options
    )


@pytest.mark.slow
def test_one_run_is_trained_shown_and_not_repeated(tmp_path):
    words = ["train", "--noise", "symmetric:0.4", "--loss", "GCE", *QUICK]
    words += ["--set", "hold_out=0.1", "--store", tmp_path, "--tensorboard"]
    first = command(*words)
    assert first.returncode == 0, first.stderr
    assert "last epoch" in first.stdout
    assert "mean of the last ten" in first.stdout
    assert "selected on held-out labels" in first.stdout
    assert "of their samples get the true label" in first.stdout
    (record,) = read_records(tmp_path)
    assert record.spec["protocol"] == "own"
    assert list((record.folder / "tensorboard").iterdir())
    again = command(*words)
    assert again.stdout == first.stdout


@pytest.mark.slow
def test_a_grid_is_run_reported_and_continued(tmp_path):
    words = ["bench", "digits", "--loss", "CE,BEF", "--noise", "clean,symmetric:0.4"]
    words += ["--seeds", "0", *QUICK, "--store", "grid", "--workers", "2"]
    plan = command(*words, "--dry-run", cwd=tmp_path)
    assert "runs    4: 4 waiting" in plan.stdout
    assert "protocol: reduced" in plan.stdout
    assert not (tmp_path / "grid").exists()
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["grid"]
    assert len(read_records(tmp_path / "grid")) == 4
    plan = command(*words, "--dry-run", cwd=tmp_path)
    assert "runs    4: 4 finished" in plan.stdout
    assert "about 0:00:00 left" in plan.stdout
    report = command("report", "grid", "--format", "csv", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "BEF" in report.stdout


@pytest.mark.slow
def test_printed_lines_can_be_run_by_a_shell(tmp_path):
    words = ["bench", "digits", "--loss", "CE", "--noise", "clean", "--seeds", "0", *QUICK]
    lines = command(*words, "--store", tmp_path / "grid", "--executor", "print").stdout.splitlines()
    (line,) = lines
    program, verb, store, run_id = shlex.split(line)[:4]
    assert (program, verb) == ("lossforge", "run")
    done = command("run", store, run_id)
    assert done.stdout == f"{run_id} done\n"
    assert len(read_records(tmp_path / "grid")) == 1


@pytest.mark.slow
def test_a_transition_matrix_is_a_noise_of_a_grid(tmp_path):
    rows = [[0.9 if i == j else 0.1 / 9 for j in range(10)] for i in range(10)]
    matrix = tmp_path / "elsewhere" / "T.csv"  # where workers do not find it by its name
    matrix.parent.mkdir()
    matrix.write_text("\n".join(",".join(map(repr, row)) for row in rows))
    words = ["bench", "digits", "--loss", "CE", "--loss", "GCE", "--noise", matrix, "--seeds", "0"]
    done = command(*words, *QUICK, "--store", "grid", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = read_records(tmp_path / "grid")
    assert [record.spec["loss"] for record in records] == ["CE", "GCE"]
    (noise,) = {record.spec["noise"] for record in records}
    assert noise.startswith("T.csv@")
    report = command("report", "grid", "--format", "csv", cwd=tmp_path)
    assert noise in report.stdout, report.stderr


def test_a_run_takes_a_gpu_if_there_is_one(tmp_path, monkeypatch):
    spec = one_run("digits", "clean", "CE").spec
    RunFolder(tmp_path, spec).open()
    devices = []

    def note(store, spec, *, data_dir, device, trust):
        devices.append(device)
        return "done"

    monkeypatch.setattr("lossforge.benchmark.run.execute", note)
    for has_gpu in (True, False):
        monkeypatch.setattr("torch.cuda.is_available", lambda found=has_gpu: found)
        assert run("run", tmp_path, spec.id).stdout == f"{spec.id} done\n"
    run("run", tmp_path, spec.id, "--device", "cuda:1")
    assert devices == ["cuda", "cpu", "cuda:1"]


def test_the_old_name_of_an_option_works_with_a_note():
    words = ["bench", "digits", "--noise", "clean", "--seeds", "0", "--dry-run"]
    new = run(*words, "--loss", "CE", "--loss", "BEF(lam=1, mu=0),GCE")
    old = run(*words, "--losses", "CE,BEF(lam=1, mu=0),GCE")
    assert new.stdout == old.stdout
    assert "losses  CE, BEF(lam=1, mu=0), GCE" in new.stdout
    assert (new.stderr, old.stderr) == ("", "note: --losses is now --loss\n")
    assert "--losses" not in run("bench", "--help").stdout


def test_seeds_may_be_ranges():
    words = ["bench", "digits", "--noise", "clean", "--loss", "CE", "--dry-run", "--seeds"]
    assert "seeds   2, 5, 6, 7" in run(*words, "2,5:8").stdout
    for wrong in ("5:", ":5", "1:2:3", "a:b"):
        result = run(*words, wrong)
        assert result.exit_code == 2
        assert "whole numbers such as 0,1,2 or 0:10" in result.stderr


def test_presets_are_listed():
    names = [line.split()[0] for line in run("bench", "--list").stdout.splitlines()]
    assert {"digits", "clinc150", "banking77", "cifar10-mini", "paper/cifar10"} <= set(names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--loss", "BEFF"], "BEFF"),
        (["train", "--loss", "GCE(q=7)"], "q must be"),
        (["train", "--noise", "symmetric:1.5"], "must be in [0, 1]"),
        (["train", "--noise", "loud"], "noise must be one of clean"),
        (["train", "--data", "imagenet"], "unknown data set 'imagenet'; known: digits"),
        (["train", "--model", "vgg"], "unknown model 'vgg'"),
        (["train", "--set", "epoch=3"], "unknown setting 'epoch'"),
        (["train", "--set", "lr=-1"], "lr must be positive"),
        (["train", "--set", "epochs=abc"], "epochs must be an integer"),
        (["train", "--set", "preset=nope"], "unknown preset 'nope'"),
        (["train", "--data", "cifar10", "--data-dir", "nowhere"], "is missing"),
        (["bench", "nowhere"], "unknown preset or file 'nowhere'"),
        (["bench", "digits", "--loss", "CE,NOPE"], "NOPE"),
        (["bench", "digits", "--executor", "magic"], "unknown executor"),
        (["bench", "paper/cifar10", "--data-dir", "nowhere"], "is missing"),
        (["run", "nowhere", "abc"], "there is no run abc in nowhere"),
        (["report", "nowhere"], "there is no folder nowhere"),
        (["report", "a b;c"], "`lossforge bench GRID --store 'a b;c'` would make it"),
        (["report", "a" * 300], "too long"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not list(tmp_path.rglob("record.json"))


def test_a_bad_file_is_refused(tmp_path):
    path = tmp_path / "grid.toml"
    good = 'name = "mine"\ndata = "digits"\nmodel = "mlp"\nnoise = ["clean"]\nlosses = ["CE"]\n'
    for line, message in (
        ('modle = "mlp"', "modle: Extra inputs"),
        ("part = 3", "part must be tables"),
        ("[training]\nepoch = 3", "epoch"),
        ('[training]\nepochs = "3"', "epochs must be an integer"),
        ("subset = 1001", "subset must be a multiple"),
        ("model_options = {depth = 3}", "depth"),
        ('preset = "nope"', "unknown preset 'nope'"),
        ("seeds = [0, 0]", "seeds must be one or more, each once"),
        ("seeds = [-1]", "seeds must be 0 or more"),
    ):
        path.write_text(good + line)
        result = run("bench", path, "--store", tmp_path / "store")
        assert result.exit_code == 2, line
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("verb", ["train", "bench", "run", "report"])
def test_help_teaches(verb):
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 8


def test_losses_are_separated_outside_parentheses():
    words = ["CE", "BEF(lam=0.5, mu=0.5)", "GCE"]
    assert separate(["CE, BEF(lam=0.5, mu=0.5),GCE"]) == words
    assert separate(["CE", "BEF(lam=0.5, mu=0.5)", "GCE"]) == words
    assert separate([]) == []


@pytest.mark.slow
def test_two_processes_share_a_run(tmp_path):
    words = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    words += ["-m", "lossforge", "train", *QUICK, "--store", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("wrong labels  ") == 1
    (record,) = read_records(tmp_path)
    assert len(record.metrics) == 2
    assert json.loads((record.folder / "about.json").read_text())["device"]

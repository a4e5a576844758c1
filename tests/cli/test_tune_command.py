"""`lossforge tune` as a user types it."""

import json
import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("optuna")
import torch
from typer.testing import CliRunner

import lossforge
from lossforge.benchmark.records import read_records
from lossforge.cli.main import app

QUICK = ["--set", "epochs=4", "--set", 'model_options={"hidden": [8]}', "--trials", "5"]


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)


def run(*arguments):
    return CliRunner().invoke(app, ["tune", *map(str, arguments)])


@pytest.mark.slow
def test_a_search_is_done_tested_drawn_and_shown_again(tmp_path):
    picture = tmp_path / "search.png"
    words = ["--loss", "NCE+AGCE", *QUICK, "--final-seeds", "2", "--store", tmp_path / "store"]
    first = run(*words, "--out", picture)
    assert first.exit_code == 0, first.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    best = re.search(r"^best +(.*)$", first.stdout, re.MULTILINE)[1]
    assert str(lossforge.parse(best)) == best
    assert "(default)" in first.stdout
    assert re.search(r"^test +tuned .* %, default .* %, 2 seeds, last epoch$", first.stdout, re.M)
    assert re.search(r"^difference .* points, 95 % interval ", first.stdout, re.M)
    assert "5 of 5 trials" in first.stderr
    found = json.loads(run(*words, "--json").stdout)
    assert found["best"] == best
    assert len(found["trials"]) == 5
    records = read_records(tmp_path / "store" / found["study"])
    assert [record.spec["seed"] for record in records] == [1, 1, 2, 2]
    assert {record.spec["loss"] for record in records} == {"NCE+AGCE", "NCE+AGCE tuned"}
    assert all(record.spec["hold_out"] == 0.1 for record in records)
    (test,) = found["final"]
    last = {(r.spec["loss"], r.spec["seed"]): r.last() for r in records}
    assert test["tuned"] == [last["NCE+AGCE tuned", seed] for seed in test["seeds"]]
    assert test["default"] == [last["NCE+AGCE", seed] for seed in test["seeds"]]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--loss", "XYZ"], "unknown loss 'XYZ'"),
        (["--loss", "CE"], "CE has no parameters to tune"),
        (["--loss", "GCE(q=0.5)"], "name the loss alone, got 'GCE(q=0.5)'"),
        (["--noise", "symmetric:1.5"], "the rate of noise must be in [0, 1]"),
        (["--noise", "nothing"], "noise must be"),
        (["--data", "nothing"], "unknown data"),
        (["--set", "hold_out=0"], "hold_out must be positive"),
        (["--set", "epochs=0"], "epochs must be 1 or more"),
        (["--trials", "0"], "trials must be an integer of 1 or more"),
        (["--admit", "symmetric:0.95"], "the rate must be below 0.9"),
        (["--admit", "asymmetric:0.6"], "the rate must be below 0.5"),
        (["--admit", "nothing"], "noise must be"),
        (["--out", "search.pdf"], "a picture must be a .png or .svg file"),
        (["--storage", "nothing"], "the storage does not work"),
        (["--loss", "GJS"], "input must hold 2 views"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(tmp_path, words, complaint):
    result = run(*QUICK, "--store", tmp_path, *words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_names_every_option():
    shown = run("--help").stdout
    for option in ("--data", "--noise", "--loss", "--trials", "--store", "--seed", "--set"):
        assert option in shown
    for option in ("--storage", "--admit", "--workers", "--out", "--json", "--final-seeds"):
        assert option in shown
    assert "true labels are read once, at the end" in " ".join(shown.split())

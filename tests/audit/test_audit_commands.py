"""The commands that an audit prints for a procedure are those that do it."""

import json
import shlex
from pathlib import Path

import pytest

pytest.importorskip("typer")
import torch
from audit_fixtures import animals, write_csv
from typer.testing import CliRunner

from lossforge.audit.commands import WIDTH, commands
from lossforge.audit.recipes import PROCEDURES, Schedule
from lossforge.cli.main import app

SCHEDULE = Schedule(30, 8, 1000, 50.0)


@pytest.fixture(autouse=True)
def _single(_float64_and_seed, tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)


def recipe(name):
    return next(one for one in PROCEDURES if one.name == name)


def words(text):
    return shlex.split(text.replace("\\\n", ""))


def test_suspects_are_dropped_by_clean_and_the_rest_is_trained_on():
    source = ["my tickets.csv", "--label", "category"]
    first, second = commands(recipe("CE, suspects dropped"), source, Path("out"), SCHEDULE)
    clean = ["lossforge", "clean", "my tickets.csv", "--audit", "out", "--drop"]
    assert words(first) == [*clean, "--out", "my tickets-clean.csv"]
    train = ["lossforge", "train", "--data", "my tickets-clean.csv", "--label", "category"]
    assert words(second)[:8] == [*train, "--loss", "CE"]
    assert "batch_size=64" in words(second)
    assert all(len(line) <= WIDTH + 2 for line in f"{first}\n{second}".splitlines())


def test_a_procedure_without_suspects_is_one_command():
    (early,) = commands(recipe("CE, stopped early"), ["digits"], None, SCHEDULE)
    assert early.startswith("lossforge train --data digits --loss CE --epochs 8 ")
    (linear,) = commands(recipe("linear"), ["digits"], None, SCHEDULE)
    assert 'model_options={"hidden": []}' in words(linear)
    assert "weight_decay=0.015" in words(linear)


@pytest.mark.parametrize("source", [[], ["digits", "--noise", "symmetric:0.4"]])
def test_where_no_command_does_it_words_do(source):
    (text,) = commands(recipe("CE, suspects dropped"), source, Path("out"), SCHEDULE)
    assert text == "train the network with CE on the samples that are not in suspects.csv"


@pytest.mark.slow
def test_the_commands_of_an_audit_run(tmp_path):
    write_csv(tmp_path / "animals.csv", animals(240))
    quick = ["--folds", "3", "--epochs", "4", "--repeats", "1", "--loss", "BEF", "--no-trials"]
    done = CliRunner().invoke(app, ["audit", "animals.csv", *quick])
    assert done.exit_code == 0, done.output
    found = json.loads(Path("runs/audit/animals.csv/audit.json").read_text())
    for one in found["losses"]:
        for command in one["commands"]:
            if command.startswith("#"):
                continue
            program, *rest = words(command)
            assert program == "lossforge"
            done = CliRunner().invoke(app, rest)
            assert done.exit_code == 0, (command, done.output)
    assert sum(bool(one["commands"]) for one in found["losses"]) == len(PROCEDURES)

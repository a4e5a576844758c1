"""`lossforge audit` as a user types it."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("cleanlab")
import numpy as np
import torch
from typer.testing import CliRunner

import lossforge
from lossforge.audit.folder import write_audit
from lossforge.cli import audit as command
from lossforge.cli.main import app
from lossforge.data.tables import read_columns
from lossforge.noise import NoiseSpec
from lossforge.text import from_csv_cell
from lossforge.training import folds as training_folds

sys.path.insert(0, str(Path(__file__).parents[1] / "audit"))
from audit_fixtures import animals, finding, write_csv

QUICK = ("--folds", "3", "--epochs", "8", "--repeats", "1")


@pytest.fixture(autouse=True)
def _single(_float64_and_seed, tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)


def names_of_procedures():
    return [one.name for one in lossforge.audit.PROCEDURES]


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "animals.csv", animals(240))


def test_a_table_is_audited_and_everything_is_written(table, tmp_path):
    words = (table, *QUICK, "--loss", "BEF", "--loss", "CE", "--out", tmp_path / "out")
    result = run(*words)
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert re.search(r"^data +animals.csv, 240 rows, 3 classes$", shown, re.M)
    assert re.search(r"^ +label column 'label', guessed from its name", shown, re.M)
    assert re.search(r"^noise +about [\d.]+ % of the labels are wrong, interval", shown, re.M)
    assert re.search(r"^BEF +PROVED +\d+ % +[\d.]+ % +[\d.]+ %(?: =)? +\d+$", shown, re.M)
    assert re.search(
        r"^CE, suspects dropped +no guarantee +- +[\d.]+ % +[\d.]+ %(?: =)? +\d+$", shown, re.M
    )
    assert re.search(r"^use +(criterion = lossforge|lossforge (clean|train)) ?", shown, re.M)
    assert re.search(r"^animals.csv:\d+ +(cat|cow|dog) +(cat|cow|dog) +0\.\d+ +size=", shown, re.M)
    assert max(map(len, shown.replace(str(tmp_path), "").splitlines())) <= 101
    assert "\x1b" not in result.output
    told = result.stderr.splitlines()
    assert told[:4] == [
        *(f"cross-validation, fold {fold} of 3" for fold in (1, 2, 3)),
        "estimating the noise",
    ]
    assert {*told[4:]} == {f"trying {one}" for one in ("BEF", "CE", *names_of_procedures())}
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"index.html", "suspects.csv", "transition.csv", "audit.json"}
    found = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert found["noise"]["rate"] == pytest.approx(0.1, abs=0.05)
    rows = list(csv.DictReader((tmp_path / "out" / "suspects.csv").read_text().splitlines()))
    assert [int(row["index"]) for row in rows] == [one["index"] for one in found["suspects"]]

    again = run(*words, "--json")
    plain = json.loads(again.stdout)
    for one in (plain, found):
        one["method"].pop("seconds")
    assert plain == found


def test_the_matrix_it_writes_is_one_that_certify_reads(table, tmp_path):
    assert run(table, *QUICK, "--no-trials", "--loss", "BEF", "--out", tmp_path).exit_code == 0
    noise = ["--noise", str(tmp_path / "transition.csv")]
    result = CliRunner().invoke(app, ["certify", "BEF", *noise])
    found = json.loads((tmp_path / "audit.json").read_text())
    assert (result.exit_code == 0) == (found["losses"][0]["status"] == "PROVED")
    assert found["losses"][0]["accuracy"] is None


@pytest.mark.slow
def test_json_alone_writes_no_file(table, tmp_path):
    result = run(table, *QUICK, "--no-trials", "--loss", "BEF", "--json")
    assert json.loads(result.stdout)["data"]["rows"] == 240
    assert [path.name for path in tmp_path.iterdir()] == ["animals.csv"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nothing.csv"], "no such file"),
        (["nothing"], "'nothing' does not exist; an audit takes a table"),
        (["notes.txt"], "is a file of type .txt; an audit takes a table"),
        (["empty"], "must hold at least 2 class folders, got none"),
        (["animals.csv", "--label", "colour"], "has no column 'colour'; it has 'size'"),
        (["animals.csv", "--column", "colour"], "has no column 'colour'"),
        (["animals.csv", "--loss", "BEFF"], "unknown loss 'BEFF'"),
        (["animals.csv", "--loss", "BEF", "--loss", "BEF"], "each once"),
        (["animals.csv", "--folds", "1"], "folds must be an integer of 2 or more"),
        (["animals.csv", "--repeats", "0"], "repeats must be an integer of 1 or more"),
        (["animals.csv", "--epochs", "0"], "epochs must be an integer of 1 or more"),
        (["animals.csv", "--budget", "0"], "budget must be positive"),
        (["animals.csv", "--folds", "200"], "with 200 folds every class needs 200 rows or more"),
        (["animals.csv", "--noise", "symmetric:0.4"], "noise can only be added to the data sets"),
        (["animals.csv", "--out", "animals.csv"], "--out must be a folder"),
        (["digits", "--label", "y"], "a label column can only be named for a table"),
        (["digits", "--noise", "symmetric"], "symmetric needs a rate, such as symmetric:0.4"),
        (["few.csv"], "needs 50 labelled rows or more, got 12"),
        (["one.csv"], "must have two classes or more, got only 'cat'"),
        (["gaps.csv"], "no label in 'label', the first at"),
        (["latin.csv"], "is not UTF-8 text; convert it first"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(tmp_path, words, complaint):
    rows = animals()
    write_csv(tmp_path / "animals.csv", rows)
    write_csv(tmp_path / "few.csv", rows[:12])
    write_csv(tmp_path / "one.csv", [(a, b, "cat") for a, b, _ in rows])
    write_csv(tmp_path / "gaps.csv", [*rows, ("1", "2", "")])
    write_csv(tmp_path / "latin.csv", [*rows, ("1", "2", "Kühe")], encoding="latin-1")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_probabilities_of_the_users_own_are_audited_at_once(table, tmp_path):
    rows = animals(240)
    names = sorted({name for *_, name in rows})
    centres = {"cat": (0, 0), "cow": (0, 4), "dog": (4, 0)}
    points = np.array([[float(a), float(b)] for a, b, _ in rows])
    distances = np.array([((points - centres[name]) ** 2).sum(1) for name in names]).T
    probs = np.exp(-distances / 2)
    np.save("probs.npy", probs / probs.sum(1, keepdims=True))
    result = run(table, "--pred-probs", "probs.npy", "--loss", "BEF,CE")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["estimating the noise"]
    shown = " ".join(result.stdout.split())
    assert "network none; the probabilities that were given predict" in shown
    assert "losses are compared by certificate alone" in shown
    folder = tmp_path / "runs" / "audit" / "animals.csv"
    found = json.loads((folder / "audit.json").read_text())
    assert found["noise"]["rate"] == pytest.approx(0.1, abs=0.03)
    assert "none: the probabilities were given" in (folder / "index.html").read_text()
    np.save("logits.npy", -distances)
    told = run(table, "--pred-probs", "logits.npy")
    assert told.exit_code == 2
    assert "of logits take the softmax" in told.stderr
    assert len(told.stderr.splitlines()) == 1
    Path("names.txt").write_text("cat\ncow\nyak\n")
    told = run(table, "--pred-probs", "probs.npy", "--classes-file", "names.txt")
    assert "'yak' are unknown" in told.stderr


def test_without_cleanlab_it_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    result = run(table, *QUICK)
    assert result.exit_code == 2
    assert "pip install 'lossforge[noise]'" in result.stderr


def test_an_interrupted_audit_ends_cleanly(table, monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lossforge.audit.audit", interrupted)
    result = run(table)
    assert result.exit_code == 130
    assert result.stderr.splitlines() == ["interrupted; nothing was written"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_page_is_opened_in_a_terminal_alone(table, tmp_path, monkeypatch, terminal):
    opened = []
    monkeypatch.setattr("lossforge.audit.audit", lambda *arguments, **options: finding())
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("lossforge.cli.output.in_terminal", lambda: terminal)
    assert run(table, "--open").exit_code == 0
    page = (tmp_path / "runs" / "audit" / "animals.csv" / "index.html").as_uri()
    assert opened == ([page] if terminal else [])


def test_added_noise_is_told_beside_the_estimate():
    found = finding(injected=0.2).to_dict()
    assert "; 20.0 % were made wrong" in " ".join(" ".join(command.lines(found)).split())


def test_long_names_are_cut_in_the_middle():
    name = "photos/" + "x" * 90 + "/0001.jpg"
    found = finding(where=lambda row: name).to_dict()
    lines = [line for line in command.lines(found) if line.startswith("photos/")]
    assert lines
    assert all("…" in line and "/0001.jpg" in line for line in lines)
    assert all(len(line) <= 101 for line in lines)


def test_it_is_in_the_help_and_names_every_option():
    shown = run("--help").stdout
    for option in ("--label", "--column", "--noise", "--loss", "--folds", "--repeats", "--epochs"):
        assert option in shown
    for option in (
        "--budget",
        "--procedures",
        "--out",
        "--open",
        "--json",
        "--size",
        "--seed",
        "--device",
        "--data-dir",
    ):
        assert option in shown
    for option in ("--features", "--pred-probs", "--classes-file"):
        assert option in shown
    assert "audit" in CliRunner().invoke(app, ["--help"]).stdout
    assert set(lossforge.audit.CANDIDATES) <= set(lossforge.names())
    assert f"By default {', '.join(lossforge.audit.CANDIDATES)}." in " ".join(shown.split())


@pytest.mark.slow
def test_an_interrupted_audit_is_continued_by_the_same_command(table, monkeypatch, tmp_path):
    words = (table, *QUICK, "--no-trials", "--loss", "BEF")
    whole = json.loads(run(*words, "--json").stdout)
    trained, original = [], training_folds.train

    def train(*arguments, **options):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(1)
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(training_folds, "train", train)
        result = run(*words)
    assert result.exit_code == 130
    end = "interrupted; the same command continues where this one stopped"
    assert result.stderr.splitlines()[-1] == end
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[0] == "cross-validation, fold 3 of 3"
    found = json.loads((tmp_path / "runs/audit/animals.csv/audit.json").read_text())
    for one in (whole, found):
        one["method"].pop("seconds")
        for part in (*one["losses"], one["recommended"]):
            part.pop("commands")  # without a folder there is none to clean by
    assert found == whole


@pytest.mark.parametrize("out", ["file/out", "full"])
def test_an_output_that_cannot_be_written_is_found_before_the_data_are_read(tmp_path, out):
    (tmp_path / "file").write_text("")
    (tmp_path / "full" / "suspects.csv").mkdir(parents=True)
    result = run("nothing.csv", "--out", out)
    assert result.exit_code == 2
    assert "must be" in result.stderr
    assert "nothing.csv" not in result.stderr


HOSTILE = ("=cmd|' /C calc'!A1", "\x1b]0;owned\x07\x1b[2J", "<script>a|b</script>\u202e")


@pytest.mark.slow
def test_no_class_name_is_obeyed_by_terminal_or_spreadsheet(tmp_path):
    names = dict(zip(("cat", "cow", "dog"), HOSTILE, strict=True))
    rows = [(a, b, names[name]) for a, b, name in animals(240)]
    path = write_csv(tmp_path / "animals.csv", rows)
    result = run(path, *QUICK, "--no-trials", "--loss", "BEF")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert r"\x1b]0;owned\x07\x1b[2J" in result.stdout
    folder = tmp_path / "runs" / "audit" / "animals.csv"
    with (folder / "suspects.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]
    table = read_columns(folder / "suspects.csv")
    assert {*map(from_csv_cell, [*table["given"], *table["suggested"]])} == {*HOSTILE}
    assert {*NoiseSpec.parse(str(folder / "transition.csv")).classes} == {*HOSTILE}
    page = (folder / "index.html").read_text()
    assert "<script>a" not in page
    assert "\x1b" not in page
    assert json.loads((folder / "audit.json").read_text())["data"]["classes"] == sorted(HOSTILE)


def test_names_that_are_not_utf8_are_written(tmp_path):
    name = "photos/caf\udce9.png"
    page = write_audit(finding(where=lambda row: name), tmp_path, "lossforge audit photos")
    assert r"photos/caf\\xe9.png" in page.read_text(encoding="utf-8")  # in JSON
    table = read_columns(tmp_path / "suspects.csv")
    assert set(table["where"]) == {r"photos/caf\xe9.png"}
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["suspects"][0]["where"] == name


def test_a_link_to_itself_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a").symlink_to("a")
    for words in (("a",), ("a", "--out", "out"), ("b", "--out", "a")):
        result = run(*words)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.output
        assert result.stderr.startswith("error: ")

"""A user's own data in `train`, `bench` and `tune`, and a model that predicts."""

import csv
import hashlib
import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("typer")
from typer.testing import CliRunner

import lossforge
from lossforge.benchmark import execute, read_spec
from lossforge.benchmark.records import read_grids, read_records
from lossforge.cli.main import app

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
QUICK = ["--set", "epochs=20", "--set", "batch_size=16", "--set", 'model_options={"hidden": [32]}']
WORDS = {"fruit": "apple banana cherry", "metal": "iron copper zinc", "sky": "cloud moon star"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with tickets of three classes, a fifth of the labels wrong."""
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)
    chance, rows = random.Random(0), []
    for n in range(150):
        true = (*WORDS,)[n % 3]
        given = true if n % 5 else chance.choice([*WORDS])
        text = " ".join(chance.choice(WORDS[true].split()) for _ in range(4))
        rows.append((f"T{7 * n}", text, given, true))
    with open("tickets.csv", "w", newline="") as file:
        csv.writer(file).writerows([("id", "message", "category", "truth"), *rows])
    Path("new.csv").write_text("message\napple or banana\nthe moon and a star\nzinc\n")
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def command(*words):
    whole = [sys.executable, "-m", "lossforge", *map(str, words)]
    return subprocess.run(whole, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)


TRAIN = ["train", "--data", "tickets.csv", "--label", "category", "--loss", "GCE", *QUICK]


def test_a_table_is_trained_on_and_the_model_predicts_new_rows(folder):
    done = run(*TRAIN, "--true", "truth", "--store", "runs")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[:3] == [
        "note: label column 'category'",
        "note: text: 'message'",
        "note: left out: 'id' identifies rows",
    ]
    assert "as given" not in done.stderr
    (record,) = read_records(Path("runs"))
    assert record.spec["noise"] == "given"
    assert record.spec["data"] == "tickets.csv"
    assert record.last() == 100  # on true labels
    assert 0 < record.noise_rate < 0.2
    said = run("predict", record.folder, "new.csv")
    assert said.exit_code == 0, said.stderr
    rows = list(csv.reader(said.stdout.splitlines()))
    assert rows[0] == ["where", "label", "confidence"]
    assert [row[:2] for row in rows[1:]] == [
        ["new.csv:2", "fruit"], ["new.csv:3", "sky"], ["new.csv:4", "metal"]
    ]  # fmt: skip
    model = lossforge.load(record.folder)
    assert [one.label for one in model.predict("new.csv")] == ["fruit", "sky", "metal"]
    assert model.classes == ("fruit", "metal", "sky")
    kept = {path.name for path in record.folder.iterdir()}
    assert kept >= {"model.json", "model.safetensors"}
    assert run("predict", record.folder, "new.csv", "--out", "out.csv").stdout == "out.csv\n"
    assert Path("out.csv").read_text() == said.stdout


def test_the_recorded_command_is_the_run(folder):
    words = ["--true", "truth", "--set", 'data_options={"test_fraction": 0.3}', "--store", "runs"]
    assert run(*TRAIN, *words).exit_code == 0
    (record,) = read_records(Path("runs"))
    _, *again = shlex.split(record.about["command"])
    done = run(*again, "--store", "again")
    assert done.exit_code == 0, done.stderr
    (other,) = read_records(Path("again"))
    assert {**other.spec, "loss": "GCE"} == record.spec
    assert "place" not in record.spec  # a path of this machine


@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_finished_run_without_a_whole_model_is_done_again(folder, damage):
    assert run(*TRAIN, "--store", "runs").exit_code == 0
    (record,) = read_records(Path("runs"))
    weights, results = record.folder / "model.safetensors", record.folder / "record.json"
    whole, before = weights.read_bytes(), results.read_bytes()
    if damage == "lost":
        weights.unlink()
    else:
        weights.write_bytes(whole[:100])
    assert run("predict", record.folder, "new.csv").exit_code == 2
    assert run(*TRAIN, "--store", "runs").exit_code == 0
    assert weights.read_bytes() == whole
    assert results.read_bytes() == before


def test_weights_that_are_none_are_named(folder):
    assert run(*TRAIN, "--store", "runs").exit_code == 0
    (record,) = read_records(Path("runs"))
    (record.folder / "model.safetensors").write_bytes(b"garbage!" * 8)
    about = record.folder / "model.json"
    digest = hashlib.sha256(b"garbage!" * 8).hexdigest()
    about.write_text(json.dumps({**json.loads(about.read_text()), "sha256": digest}))
    with pytest.raises(ValueError, match="is damaged"):
        lossforge.load(record.folder)


def test_the_model_is_the_network_that_was_tested(folder):
    assert run(*TRAIN, "--true", "truth", "--store", "runs").exit_code == 0
    (record,) = read_records(Path("runs"))
    found = lossforge.data.own.load("tickets.csv", label="category", true="truth")
    model = lossforge.load(record.folder)
    test = found.tests["test"]
    right = model.probabilities(test.inputs).argmax(1) == test.true
    assert 100 * float(right.double().mean()) == pytest.approx(record.last())


def test_without_true_labels_it_is_told_what_was_tested(folder):
    done = run(*TRAIN, "--column", "message", "--store", "runs")
    assert done.exit_code == 0, done.stderr
    assert "note: tested on labels as given" in done.stderr
    (record,) = read_records(Path("runs"))
    assert record.noise_rate is None
    assert "--label category --column message" in record.about["command"]


@pytest.mark.parametrize("parts", [[""], ["train", "test"]])
def test_labels_of_test_folders_count_as_right(folder, parts):
    images = pytest.importorskip("PIL.Image")
    chance = np.random.default_rng(0)
    for part in parts:
        for name in ("cat", "dog"):
            place = Path("photos", part, name)
            place.mkdir(parents=True)
            for n in range(6):
                pixels = chance.integers(0, 256, (16, 16, 3), dtype=np.uint8)
                images.fromarray(pixels).save(place / f"{n}.png")
    words = ["--data", "photos", "--features", "patches:8", "--set", "epochs=1"]
    done = run("train", *words, "--set", "batch_size=4", "--store", "runs")
    assert done.exit_code == 0, done.stderr
    assert ("as given" in done.stderr) == (parts == [""])


def test_the_content_is_part_of_the_run_and_the_place_is_not(folder):
    for place in ("tickets.csv", "moved/tickets.csv"):
        assert run(*TRAIN, "--data", place, "--store", "runs").exit_code == 0
        if place == "tickets.csv":
            Path("moved").mkdir()
            Path("tickets.csv").rename("moved/tickets.csv")
    (one,) = read_records(Path("runs"))
    text = Path("moved/tickets.csv").read_text()
    Path("moved/tickets.csv").write_text(text.replace("apple", "pear"))
    spec = read_spec(Path("runs"), one.id)
    with pytest.raises(ValueError, match="has changed"):
        execute(Path("other"), spec)
    done = run(*TRAIN, "--data", "moved/tickets.csv", "--store", "runs")
    assert done.exit_code == 0
    assert len(read_records(Path("runs"))) == 2


def test_weights_that_clean_wrote_are_used_and_part_of_the_run(folder):
    header, *rows = Path("tickets.csv").read_text().splitlines()
    given, true = zip(*(row.split(",")[2:] for row in rows), strict=True)
    weights = [int(a == b) for a, b in zip(given, true, strict=True)]
    lines = [f"{row},{weight}" for row, weight in zip(rows, weights, strict=True)]
    Path("clean.csv").write_text("\n".join([f"{header},label_weight", *lines]) + "\n")
    words = [*TRAIN, "--data", "clean.csv", "--true", "truth", "--store", "runs"]
    assert run(*words).exit_code == 0
    (weighted,) = read_records(Path("runs"))
    assert weighted.spec["data_options"]["weight"] == "label_weight"
    assert "--weight label_weight" in weighted.about["command"]
    # wrong labels have the weight 0, so that the loss is that of the correct ones alone
    plain_words = [*words, "--weight", "none"]
    assert run(*plain_words).exit_code == 0
    (plain,) = [one for one in read_records(Path("runs")) if one.id != weighted.id]
    assert "weight" not in plain.spec["data_options"]
    assert weighted.metrics[-1]["loss"] < 0.5 * plain.metrics[-1]["loss"]
    done = run(*words, "--method", "mixup")
    assert done.exit_code == 2
    assert "takes no weights of samples; --weight none leaves them out" in done.stderr


def test_embeddings_of_a_file_are_trained_on(folder):
    rows = [line.split(",") for line in Path("tickets.csv").read_text().splitlines()[1:]]
    codes = {"fruit": (4.0, 0.0), "metal": (0.0, 4.0), "sky": (-4.0, -4.0)}
    noise = np.random.default_rng(0).normal(size=(len(rows), 2))
    np.save("e.npy", np.array([codes[row[3]] for row in rows]) + noise)
    words = [*TRAIN, "--true", "truth", "--features", "e.npy", "--store", "runs"]
    assert run(*words).exit_code == 0
    (record,) = read_records(Path("runs"))
    assert record.last() > 95
    assert set(record.spec["data_options"]) >= {"features", "features_hash"}
    assert "e.npy" in record.about["command"]
    np.save("new.npy", np.array([[4.0, 0.0], [-4.0, -4.0]]))
    found = lossforge.load(record.folder).predict("new.npy")
    assert [one.label for one in found] == ["fruit", "sky"]
    done = run("train", "--data", "digits", "--features", "e.npy")
    assert "--features is for your own data" in done.stderr


def test_a_damaged_or_missing_model_is_told(folder):
    with pytest.raises(FileNotFoundError, match="holds no model"):
        lossforge.load("runs")
    assert run(*TRAIN, "--store", "runs").exit_code == 0
    (record,) = read_records(Path("runs"))
    weights = record.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    done = run("predict", record.folder, "new.csv")
    assert done.exit_code == 2
    assert "is damaged: model.safetensors is not the file" in done.stderr
    about = record.folder / "model.json"
    about.write_text(json.dumps({"format": "other"}))
    assert "format must be" in run("predict", record.folder, "new.csv").stderr


def test_a_network_of_a_named_data_set_is_loaded_too(folder):
    done = run("train", *QUICK, "--set", "subset=200", "--store", "runs")
    assert done.exit_code == 0, done.stderr
    (record,) = read_records(Path("runs"))
    model = lossforge.load(record.folder)
    inputs = lossforge.data.load("digits").tests["test"].inputs
    assert model.probabilities(inputs).shape == (len(inputs), 10)
    assert "named data set" in run("predict", record.folder, "new.csv").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--data", "missing.csv"], "neither a data set"),
        (["--data", "dogits"], "did you mean digits"),
        (["--data", "digits", "--label", "category"], "--label is for your own data"),
        (["--data", "tickets.csv", "--label", "nothing"], "has no column 'nothing'"),
        (["--data", "tickets.csv", "--noise", "symmetric:0.2"], "noise must be given"),
    ],
)
def test_what_cannot_be_trained_on_is_told_in_one_line(folder, words, told):
    done = run("train", *words, "--store", "runs")
    assert done.exit_code == 2
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("note: "))
    assert told in line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "must have at least one row below its header"),
        ("message,category\n", "must have at least one row below its header"),
        ("message,category\nan apple,fruit\n", "two classes or more, got only 'fruit'"),
        ("message,category\nan apple,fruit\na moon,fruit\n", "two classes or more"),
        ("message,category\nan apple,fruit\na moon,\n", "1 row has no label in 'category'"),
        ("message,category\na,b,c\n", "expected 2 fields as in the header, got 3"),
        (b"message,category\nK\xe4se,fruit\n", "is not UTF-8 text; convert it first"),
    ],
)
def test_odd_tables_get_one_clear_line(folder, content, told):
    raw = content if isinstance(content, bytes) else content.encode()
    Path("odd.csv").write_bytes(raw)
    done = run("train", "--data", "odd.csv", "--label", "category", "--store", "runs")
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_bench_takes_own_data_and_no_named_ones(folder):
    words = ["bench", "digits", "--dry-run", "--loss", "CE"]
    done = run(*words, "--data", "tickets.csv", "--label", "category")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("digits: tickets.csv\nstore   runs/tickets-")
    assert "data    tickets.csv, mlp" in done.stdout
    assert "noise   given" in done.stdout
    assert "must be your own data" in run(*words, "--data", "digits").stderr
    assert "which --data names" in run(*words, "--label", "category").stderr


@pytest.mark.parametrize("path", ["tickets.csv", "missing.tsv", "a.parquet", "a.npz", "my photos"])
@pytest.mark.parametrize("words", [["bench"], ["bench", "digits"], ["train"], ["tune"]])
def test_data_typed_without_their_option_are_told(folder, words, path):
    Path("my photos").mkdir()
    done = run(*words, path, "--label", "category")
    assert done.exit_code == 2
    assert f"{path} is data, not " in done.stderr
    assert done.stderr.rstrip().endswith(f": write --data {shlex.quote(path)}")


def test_other_arguments_that_are_too_many_are_told_as_before(folder):
    Path("digits").mkdir()
    assert run("bench", "digits", "--dry-run").exit_code == 0  # a preset, whatever lies here
    done = run("train", "digit", "more")
    assert done.exit_code == 2
    assert "Got unexpected extra argument(s) (digit more)" in done.stderr
    assert run("train", 300 * "a").exit_code == 2  # longer than a name of a file can be


@pytest.mark.slow
@pytest.mark.parametrize("true", [[], ["--true", "truth"]])
def test_bench_tells_once_that_it_tested_on_labels_as_given(folder, true):
    words = ["bench", "digits", "--data", "tickets.csv", "--label", "category", *true]
    words += ["--loss", "CE,BEF", "--seeds", "0", "--column", "message", "--workers", "1", *QUICK]
    done = run(*words, "--store", "grid")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("note: tested on labels as given") == (not true)
    assert "tickets: 2 of 2 runs" in done.stderr
    assert [one.title for one in read_grids(Path("grid"))] == ["tickets.csv"]
    assert all(one.tested_as_given == (not true) for one in read_records(Path("grid")))


@pytest.mark.slow
def test_worker_processes_find_the_data(folder):
    words = ["bench", "digits", "--data", "tickets.csv", "--label", "category", "--true", "truth"]
    done = command(*words, "--loss", "CE,BEF", "--seeds", "0", *QUICK, "--store", "grid")
    assert done.returncode == 0, done.stderr
    assert {one.spec["loss"] for one in read_records(Path("grid"))} == {"CE", "BEF"}
    assert command("report", "grid").returncode == 0


@pytest.mark.slow
def test_tune_searches_on_own_data(folder):
    pytest.importorskip("optuna")
    words = ["tune", "--data", "tickets.csv", "--label", "category", "--true", "truth"]
    words += ["--loss", "GCE", "--trials", "2", "--final-seeds", "1", *QUICK, "--json"]
    done = command(*words, "--admit", "symmetric:0.1")
    assert done.returncode in (0, 1), done.stderr
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["final"][0]["test"] == "test"

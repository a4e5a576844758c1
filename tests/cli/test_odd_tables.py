"""Odd and hostile tables: one clear line and status 2 from `audit`, `train` and `clean`."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("typer")
from typer.testing import CliRunner

from lossforge.cli.main import app
from lossforge.data.own import content_hash

sys.path.insert(0, str(Path(__file__).parents[1] / "audit"))
from test_clean import write_audit


def table(rows, header=("id", "say", "label")):
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue().encode()


def say(n):
    return f"some words about {n} and {7 * n % 13}"


def rows(count, label=lambda n: "ab"[n % 2], start=0):
    return [(f"T{3 * n}", say(n), label(n)) for n in range(start, start + count)]


USUAL = table(rows(80))
MIXED = USUAL + "T1,Käse und Brot,a\r\n".encode() + "T2,Café au lait,b\r\n".encode("latin-1")
NO_ROW = "must have at least one row below its header"
ODD = {
    "empty": (b"", NO_ROW),
    "mark-alone": (b"\xef\xbb\xbf", NO_ROW),
    "header-alone": (b"id,say,label\n", NO_ROW),
    "too-many-cells": (b"id,say,label\n1,a b,x\n2,a b,y,z\n", "odd.csv:3: expected 3 fields"),
    "names-twice": (b"say,say,label\na b,c d,x\n", "column names must differ, got 'say' twice"),
    "open-quote": (b'id,say,label\n1,"a b,x\n2,c d,y\n', "odd.csv:2: unexpected end of data"),
    "mixed-encodings": (MIXED, "odd.csv:83 is not UTF-8 text, as other lines are"),
    "latin-1": ("id,say,label\n1,Café noir,b\n".encode("latin-1"), "`iconv -f LATIN1 -t UTF-8"),
    "utf-16": (USUAL.decode().encode("utf-16"), "`iconv -f UTF-16 -t UTF-8"),
    "binary": (bytes(range(256)) * 9, "is not UTF-8 text"),
    "huge-cell": (b"id,say,label\n1," + b"x" * 200_000 + b",a\n", "larger than field limit"),
}
FEW_LABELS = {
    "one-class": (table(rows(80, lambda n: "cat")), "two classes or more, got only 'cat'"),
    "one-row": (table(rows(1)), "two classes or more, got only 'a'"),
    "missing-label": (table([*rows(80), ("T9", "no label", " ")]), "1 row has no label in 'label'"),
    "no-label": (table(rows(80, lambda n: "")), "80 rows have no label in 'label'"),
    "all-labels-differ": (table(rows(80, str)), "80 different values in 80 rows, too many"),
    "labels-alone": (table([(k % 2,) for k in range(80)], ("label",)), "there are no features"),
}
FEW_ROWS = {
    "300-classes": (table(rows(900, lambda n: f"c{n // 3}")), "'c0' has 3, 'c1' has 3, 'c10' has"),
    "12-rows": (table(rows(12)), "needs 50 labelled rows or more, got 12"),
}


def parameters(*parts):
    return [pytest.param(*one, id=name) for part in parts for name, one in part.items()]


def refused(told, *words):
    done = CliRunner().invoke(app, [*words])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert done.stderr.startswith("error: ")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.fixture(autouse=True)
def _folder(_float64_and_seed, tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("content", "told"), parameters(ODD, FEW_LABELS, FEW_ROWS))
def test_audit_says_what_is_wrong(content, told):
    Path("odd.csv").write_bytes(content)
    refused(told, "audit", "odd.csv", "--label", "label", "--out", "out")
    assert not Path("out").exists()


@pytest.mark.parametrize(("content", "told"), parameters(ODD, FEW_LABELS))
def test_train_says_what_is_wrong(content, told):
    Path("odd.csv").write_bytes(content)
    refused(told, "train", "--data", "odd.csv", "--label", "label", "--store", "runs")


@pytest.mark.parametrize(("content", "told"), parameters(ODD))
def test_clean_says_what_is_wrong_even_if_an_audit_fits(content, told):
    source = Path("odd.csv")
    source.write_bytes(content)
    words = ["clean", "odd.csv", "--audit", "audit", "--drop", "--out", "clean.csv"]
    refused("audit.json is missing: `lossforge audit odd.csv` writes it", *words)
    write_audit(Path("audit"), source, "label", suspects=())
    refused(told, *words)
    assert not Path("clean.csv").exists()
    assert source.read_bytes() == content


DECISIONS = {
    "empty": (b"", NO_ROW),
    "header-alone": (b"index,decision\n", NO_ROW),
    "semicolons": (b"index;decision\n1;accept\n", "has no column 'index'"),
    "latin-1": (b"index,decision,label\n1,accept,caf\xe9\n", "is not UTF-8 text"),
    "a-fraction": (b"index,decision\n1.0,accept\n", "index must be that of a suspect, got '1.0'"),
    "a-formula": (b"index,decision\n=1+1,accept\n", "index must be that of a suspect"),
    "no-suspect": (b"index,decision\n99,accept\n", "index must be that of a suspect, got '99'"),
    "another-word": (b"index,decision\n1,ACCEPT\n", "decision must be accept, keep, skip"),
    "another-audit": (
        b"index,decision,given\n1,accept,a\n",
        "sample 1 was given 'b' when it was audited, and 'a' when this was decided",
    ),
}


@pytest.mark.parametrize(("content", "told"), parameters(DECISIONS))
def test_clean_says_what_is_wrong_with_decisions(content, told):
    source = Path("pets.csv")
    source.write_bytes(USUAL)
    write_audit(Path("audit"), source, "label", ("a", "b"), [(1, "b", "a", 0.1)])
    Path("d.csv").write_bytes(content)
    options = ["--audit", "audit", "--decisions", "d.csv", "--relabel", "--out", "clean.csv"]
    refused(told, "clean", "pets.csv", *options)
    assert not Path("clean.csv").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"data": 3}', "\x00"])
def test_clean_says_that_an_audit_is_damaged(content):
    Path("pets.csv").write_bytes(USUAL)
    Path("audit").mkdir()
    Path("audit/audit.json").write_text(content)
    options = ["--audit", "audit", "--drop", "--out", "clean.csv"]
    refused("must be the file of an audit", "clean", "pets.csv", *options)


QUICK = ["--folds", "2", "--repeats", "1", "--epochs", "1", "--no-trials", "--loss", "CE"]


@pytest.mark.slow
def test_ids_that_repeat_are_noted_and_rows_told_apart_by_their_number():
    pytest.importorskip("cleanlab")
    ids = [900_001 + 7 * n for n in range(77)]  # numbers, but nothing to learn from
    lines = [(key, say(n), "ab"[n % 2]) for n, key in enumerate([*ids, *ids[:3]])]
    Path("odd.csv").write_bytes(table(lines, ("ticket_id", "say", "label")))
    done = CliRunner().invoke(app, ["audit", "odd.csv", *QUICK, "--out", "out"])
    assert done.exit_code == 0, done.stderr
    notes = json.loads(Path("out/audit.json").read_text())["data"]["notes"]
    assert "'ticket_id' repeats 3 of its values, the first '900001'" in notes
    assert any(note.startswith("left out: 'ticket_id' identifies rows") for note in notes)
    with Path("out/suspects.csv").open(newline="") as file:
        suspects = list(csv.DictReader(file))
    assert suspects
    for one in suspects:
        assert one["ticket_id"] == str(lines[int(one["index"])][0])
        assert int(one["row"]) == int(one["index"]) + 1
        assert one["where"] == f"odd.csv:{int(one['index']) + 2}"
    before = content_hash(Path("odd.csv"))
    words = ["clean", "odd.csv", "--audit", "out", "--drop", "--out", "clean.csv"]
    assert CliRunner().invoke(app, words).exit_code == 0
    with Path("clean.csv").open(newline="") as file:
        left = [tuple(row) for row in csv.reader(file)][1:]
    dropped = {int(one["index"]) for one in suspects}
    assert left == [(str(a), b, c) for n, (a, b, c) in enumerate(lines) if n not in dropped]
    assert content_hash(Path("odd.csv")) == before


@pytest.mark.slow
def test_many_classes_of_three_rows_can_be_trained_on():
    Path("odd.csv").write_bytes(FEW_ROWS["300-classes"][0])
    words = ["train", "--data", "odd.csv", "--label", "label", "--set", "epochs=1"]
    done = CliRunner().invoke(app, [*words, "--store", "runs"])
    assert done.exit_code == 0, done.stderr

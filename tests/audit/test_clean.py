"""What an audit found is dropped, relabelled or weighted; the original stays as it is."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

import lossforge.audit.clean as cleaning
from lossforge.audit.clean import clean
from lossforge.audit.table import read_table
from lossforge.cli.main import app
from lossforge.data.own import content_hash, read_own_table

image = pytest.importorskip("PIL.Image")

HEADER = ["id", "say", "kind"]
ROWS = [
    ["a-1", "with, a comma", "cat"],
    ["a-2", 'with "quotes"', "dog"],
    ["a-3", "with\na line break", "dog"],
    ["a-4", "=1+1", "cat"],
    ["a-5", "Käse", "cat"],
]
SUSPECTS = [(1, "dog", "cat", 0.125), (4, "cat", "dog", 0.25)]


def write_audit(folder, source, label, classes=("cat", "dog"), suspects=SUSPECTS):
    """What `clean` reads of an audit."""
    names = ("index", "given", "suggested", "confidence")
    found = {
        "data": {"sha256": content_hash(source), "label": label, "classes": list(classes)},
        "suspects": [dict(zip(names, one, strict=True)) for one in suspects],
    }
    folder.mkdir(exist_ok=True)
    (folder / "audit.json").write_text(json.dumps(found))
    return folder


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *ROWS])
    return path, write_audit(tmp_path / "audit", path, "kind")


def read(path, delimiter=","):
    text = path.read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def cleaned_rows(how):
    if how == "drop":
        return [HEADER, *(row for k, row in enumerate(ROWS) if k not in (1, 4))]
    if how == "relabel":
        new = {1: "cat", 4: "dog"}
        return [HEADER, *([*row[:2], new.get(k, row[2])] for k, row in enumerate(ROWS))]
    weight = {1: "0.1250", 4: "0.2500"}
    return [
        [*HEADER, "label_weight"],
        *([*row, weight.get(k, "1")] for k, row in enumerate(ROWS)),
    ]


@pytest.mark.parametrize("how", ["drop", "relabel", "weights"])
def test_a_table_keeps_every_other_cell(table, tmp_path, how):
    path, audit = table
    before, out = path.read_bytes(), tmp_path / "out.csv"
    for _ in range(2):  # again over its own result
        found = clean(path, audit=audit, how=how, out=out)
        assert (found.total, found.changed, found.undecided) == (5, 2, 0)
        assert read(out) == cleaned_rows(how)
    assert path.read_bytes() == before


def test_tabs_marks_and_line_ends_are_kept(tmp_path):
    path = tmp_path / "pets.tsv"
    lines = ["kind\tn", *(f"{kind}\t{n}" for n, kind in enumerate(["cat", "dog"] * 3))]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())
    audit = write_audit(tmp_path / "audit", path, "kind", suspects=[(0, "cat", "dog", 0.1)])
    clean(path, audit=audit, how="drop", out=tmp_path / "out.tsv")
    expected = b"\xef\xbb\xbf" + "\r\n".join([lines[0], *lines[2:], ""]).encode()
    assert (tmp_path / "out.tsv").read_bytes() == expected


@pytest.mark.parametrize("how", ["drop", "relabel", "weights"])
@pytest.mark.parametrize("numbers", [False, True])
def test_parquet_keeps_types_and_columns(tmp_path, how, numbers):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kinds = [7, 9, 9, 7, 7] if numbers else [row[2] for row in ROWS]
    column = arrow.array(kinds, type=arrow.int16() if numbers else arrow.string())
    whole = arrow.table({"id": [row[0] for row in ROWS], "kind": column, "x": [1.5, 2, 3, 4, 5]})
    path, out = tmp_path / "pets.parquet", tmp_path / "out.parquet"
    parquet.write_table(whole, path)
    names = ("7", "9") if numbers else ("cat", "dog")
    suspects = [(1, names[1], names[0], 0.125), (4, names[0], names[1], 0.25)]
    audit = write_audit(tmp_path / "audit", path, "kind", names, suspects)
    before = path.read_bytes()
    for _ in range(2):
        clean(path, audit=audit, how=how, out=out)
    found = parquet.read_table(out)
    assert path.read_bytes() == before
    assert found.schema.field("kind").type == column.type
    if how == "drop":
        assert found.column("id").to_pylist() == ["a-1", "a-3", "a-4"]
    elif how == "relabel":
        low, high = (7, 9) if numbers else ("cat", "dog")
        assert found.column("kind").to_pylist() == [low, low, high, low, high]
    else:
        assert found.column("label_weight").to_pylist() == [1, 0.125, 1, 1, 0.25]
        assert found.column_names == [*whole.column_names, "label_weight"]


def test_decisions_say_which_suspects_are_changed(table, tmp_path):
    path, audit = table
    decisions, out = tmp_path / "decisions.csv", tmp_path / "out.csv"
    decisions.write_text("index,decision,label\n1,keep,\n1,accept,\n4,skip,\n")
    found = clean(path, audit=audit, how="drop", out=out, decisions=decisions)
    assert (found.changed, found.undecided) == (1, 1)
    assert [row[0] for row in read(out)[1:]] == ["a-1", "a-3", "a-4", "a-5"]
    decisions.write_text("index,decision,label\n1,accept,dog\n4,keep,\n")
    found = clean(path, audit=audit, how="relabel", out=out, decisions=decisions)
    assert (found.changed, found.undecided) == (1, 0)
    assert read(out)[1:] == ROWS  # the user knew better than the suggestion


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("index,decision\n0,accept\n", "index must be that of a suspect, got '0'"),
        ("index,decision\nx,accept\n", "index must be that of a suspect, got 'x'"),
        ("index,decision\n1,yes\n", "decision must be accept, keep, skip, got 'yes'"),
        ("index,decision,label\n1,accept,bird\n", "label must be a class of the audit, got 'bird'"),
        ("decision\naccept\n", "has no column 'index'"),
    ],
)
def test_decisions_that_cannot_be_read_are_told(table, tmp_path, content, match):
    path, audit = table
    (tmp_path / "d.csv").write_text(content)
    with pytest.raises(ValueError, match=match):
        clean(path, audit=audit, how="drop", out=tmp_path / "o.csv", decisions=tmp_path / "d.csv")
    assert not (tmp_path / "o.csv").exists()


def test_the_original_is_never_the_target(table, tmp_path):
    path, audit = table
    (tmp_path / "link.csv").hardlink_to(path)
    (tmp_path / "soft.csv").symlink_to(path)
    for out in (path, tmp_path / "link.csv", tmp_path / "soft.csv"):
        with pytest.raises(ValueError, match="out must not be the original"):
            clean(path, audit=audit, how="drop", out=out)
    with pytest.raises(ValueError, match=r"out must be a \.csv file as the original is"):
        clean(path, audit=audit, how="drop", out=tmp_path / "out.parquet")
    assert read(path)[1:] == ROWS


def test_other_data_than_the_audited_are_refused(table, tmp_path):
    path, audit = table
    path.write_text(path.read_text().replace("comma", "semicolon"))
    with pytest.raises(ValueError, match="has changed; audit it again"):
        clean(path, audit=audit, how="drop", out=tmp_path / "out.csv")
    with pytest.raises(FileNotFoundError, match=r"audit\.json is missing"):
        clean(path, audit=tmp_path, how="drop", out=tmp_path / "out.csv")


def test_weights_are_no_feature(table, tmp_path):
    path, audit = table
    clean(path, audit=audit, how="weights", out=tmp_path / "out.csv")
    found = read_own_table(tmp_path / "out.csv", label="kind")
    assert "label_weight" not in (*found.texts, *found.others)
    audit = write_audit(audit, tmp_path / "out.csv", "kind")
    with pytest.raises(ValueError, match="has a column 'label_weight' already"):
        clean(tmp_path / "out.csv", audit=audit, how="weights", out=tmp_path / "again.csv")


# Images

IMAGES = ("cat/1.png", "cat/2.png", "cat/deep/1.png", "dog/1.png", "dog/3.png")


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    for n, name in enumerate(IMAGES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (8, 8), (n, 0, 0)).save(root / name)
    suspects = [(0, "cat", "dog", 0.125), (4, "dog", "cat", 0.25)]
    return root, write_audit(tmp_path / "audit", root, None, suspects=suspects)


def tree(root):
    """The images of a folder by name; the number of each is in its colour."""
    found = {}
    for path in sorted(root.rglob("*.png")):
        with image.open(path) as picture:
            found[path.relative_to(root).as_posix()] = picture.getpixel((0, 0))[0]
    return found


TREES = {
    "drop": {"cat/2.png": 1, "cat/deep/1.png": 2, "dog/1.png": 3},
    "relabel": {
        "cat/2.png": 1, "cat/3.png": 4, "cat/deep/1.png": 2, "dog/1-cat.png": 0, "dog/1.png": 3
    },
}  # fmt: skip


@pytest.mark.parametrize("how", ["drop", "relabel"])
def test_a_tree_is_copied_and_an_interrupted_copy_completed(photos, tmp_path, how, monkeypatch):
    root, audit = photos
    before, out, written = content_hash(root), tmp_path / "out", []

    def killed(path, content):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(path)
        whole(path, content)

    whole = cleaning.write_atomically
    monkeypatch.setattr(cleaning, "write_atomically", killed)
    with pytest.raises(KeyboardInterrupt):
        clean(root, audit=audit, how=how, out=out)
    assert 0 < len(tree(out)) < len(TREES[how])
    monkeypatch.setattr(cleaning, "write_atomically", whole)
    for _ in range(2):
        assert clean(root, audit=audit, how=how, out=out).changed == 2
        assert tree(out) == TREES[how]
    assert content_hash(root) == before
    with pytest.raises(ValueError, match="holds another cleaned copy"):
        clean(root, audit=audit, how="drop" if how == "relabel" else "relabel", out=out)


def test_linked_class_folders_are_copied_too(photos, tmp_path):
    root, _ = photos
    elsewhere = (root / "dog").rename(tmp_path / "elsewhere")
    (root / "dog").symlink_to(elsewhere)
    (root / "cat" / "loop").symlink_to(root)
    audit = write_audit(tmp_path / "audit", root, None, suspects=[(0, "cat", "dog", 0.125)])
    whole = tree(root) | {f"dog/{name}": n for name, n in tree(elsewhere).items()}
    assert len(whole) == len(IMAGES)
    clean(root, audit=audit, how="drop", out=tmp_path / "out")
    assert {*tree(tmp_path / "out")} == {*whole} - {IMAGES[0]}
    before = content_hash(root)
    next(elsewhere.iterdir()).write_bytes(b"another picture")
    assert content_hash(root) != before


@pytest.mark.parametrize("label", ["../escaped", "{outside}"])
def test_no_label_of_an_audit_leads_out_of_the_copy(photos, tmp_path, label):
    root, _ = photos
    label = label.format(outside=tmp_path / "outside")
    suspects = [(0, "cat", label, 0.125)]
    audit = write_audit(tmp_path / "audit", root, None, ("cat", "dog", label), suspects)
    with pytest.raises(ValueError, match="are not those of the folder"):
        clean(root, audit=audit, how="relabel", out=tmp_path / "a" / "out")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "a" / "escaped").exists()


def test_no_input_is_overwritten(table, tmp_path):
    path, audit = table
    decisions = tmp_path / "decisions.csv"
    decisions.write_text("index,decision\n1,accept\n")
    with pytest.raises(ValueError, match="must not be a file that is read"):
        clean(path, audit=audit, how="drop", out=decisions, decisions=decisions)
    assert decisions.read_text() == "index,decision\n1,accept\n"


def test_only_train_is_cleaned_and_the_rest_is_copied(photos, tmp_path):
    root, _ = photos
    whole = tmp_path / "whole"
    whole.mkdir()
    root.rename(whole / "train")
    (whole / "test" / "cat").mkdir(parents=True)
    image.new("RGB", (8, 8), (9, 0, 0)).save(whole / "test" / "cat" / "1.png")
    audit = write_audit(tmp_path / "two", whole, None, suspects=[(0, "cat", "dog", 0.1)])
    clean(whole, audit=audit, how="drop", out=tmp_path / "out")
    assert tree(tmp_path / "out") == {
        "test/cat/1.png": 9,
        **{f"train/{name}": n for n, name in enumerate(IMAGES) if n},
    }


@pytest.mark.parametrize("how", ["drop", "relabel", "weights"])
def test_a_list_of_images_instead_of_copies(photos, tmp_path, how):
    root, audit = photos
    clean(root, audit=audit, how=how, out=tmp_path / "list.csv")
    header, *rows = read(tmp_path / "list.csv")
    found = {Path(path).relative_to(root).as_posix(): rest for path, *rest in rows}
    labels = {name: [name.split("/")[0]] for name in IMAGES}
    if how == "drop":
        del labels["cat/1.png"], labels["dog/3.png"]
    elif how == "relabel":
        labels |= {"cat/1.png": ["dog"], "dog/3.png": ["cat"]}
    else:
        labels = {name: [*label, "1"] for name, label in labels.items()}
        labels["cat/1.png"][1], labels["dog/3.png"][1] = "0.125", "0.25"
    assert found == labels
    assert header == ["path", "label", *(["label_weight"] if how == "weights" else [])]


def test_folders_that_cannot_be_written_are_told(photos, tmp_path):
    root, audit = photos
    with pytest.raises(ValueError, match="must lie outside the original"):
        clean(root, audit=audit, how="drop", out=root / "clean")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    with pytest.raises(ValueError, match="must be a new or empty folder"):
        clean(root, audit=audit, how="drop", out=tmp_path / "full")
    with pytest.raises(ValueError, match="weights need a list"):
        clean(root, audit=audit, how="weights", out=tmp_path / "out")
    found = json.loads((audit / "audit.json").read_text())
    found["suspects"][0]["suggested"] = "../../elsewhere"
    (audit / "audit.json").write_text(json.dumps(found))
    with pytest.raises(ValueError, match="must be classes of the audit"):
        clean(root, audit=audit, how="relabel", out=tmp_path / "out")


# The command, and what an audit writes for it


def test_the_command_needs_one_way(table, tmp_path):
    path, audit = table
    words = ["clean", str(path), "--audit", str(audit), "--out", str(tmp_path / "out.csv")]
    for ways in ([], ["--drop", "--weights"]):
        done = CliRunner().invoke(app, [*words, *ways])
        assert (done.exit_code, done.stderr) == (
            2, "error: give one of --drop, --relabel and --weights\n"
        )  # fmt: skip
    done = CliRunner().invoke(app, [*words, "--drop"])
    assert done.stdout == f"{tmp_path / 'out.csv'}\n"
    assert done.stderr == "2 of 5 samples are left out\n"


def test_suspects_keep_the_columns_that_identify_a_row(tmp_path):
    path = tmp_path / "pets.csv"
    rows = [(f"P{3 * n}", n, f"say word{n} again", "cat" if n % 2 else "dog") for n in range(60)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("pet", "index", "say", "kind"), *rows])
    subject = read_table(path, label="kind", columns=["say"])
    assert subject.ids(5) == {"pet": "P15", "index": "5"}
    assert (subject.label, subject.sha256) == ("kind", content_hash(path))


@pytest.mark.slow
def test_what_an_audit_writes_is_cleaned(tmp_path):
    pytest.importorskip("cleanlab")
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = [f"p{k}" for k in range(64)]
    wrong = {k: (int(digits.target[k]) + 1 + k % 9) % 10 for k in range(0, 1200, 5)}
    with (tmp_path / "digits.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "key", *names, "digit", "truth"])
        for k in range(1200):
            label = int(digits.target[k])
            given = wrong.get(k, label)
            writer.writerow([k + 100, f"K{7 * k}", *digits.data[k], given, label])

    def run(*words):
        whole = [sys.executable, "-m", "lossforge", *map(str, words)]
        done = subprocess.run(
            whole, capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    columns = [word for name in names for word in ("--column", name)]
    quick = ["--folds", "3", "--repeats", "1", "--epochs", "20", "--no-trials"]
    run("audit", "digits.csv", "--label", "digit", *columns, *quick, "--out", "audit")
    header, *rows = read(tmp_path / "audit" / "suspects.csv")
    assert header[:2] == ["index", "row"]
    assert header[-2:] == ["own_index", "key"]
    for row in rows:
        k = int(row[0])
        assert (row[1], row[-2], row[-1]) == (str(k + 1), str(k + 100), f"K{7 * k}")
    found = {int(row[0]) for row in rows}
    assert len(found & wrong.keys()) > 0.8 * len(wrong)  # by chance it would be a fifth
    matrix = read(tmp_path / "audit" / "transition.csv")
    assert matrix[0] == ["", *map(str, range(10))]
    assert [row[0] for row in matrix[1:]] == matrix[0][1:]
    run("clean", "digits.csv", "--audit", "audit", "--relabel", "--out", "clean.csv")
    _, *after = read(tmp_path / "clean.csv")
    right = sum(row[-2] == row[-1] for row in after) / len(after)
    assert right > 0.93  # 0.8 before

"""Which column is what, and what is said of a table that cannot be audited."""

import math
import os
from pathlib import Path

import pytest
import torch
from audit_fixtures import animals, write_csv

from lossforge.audit.subject import check_labels
from lossforge.audit.table import read_table
from lossforge.data.tables import Columns


def table(tmp_path, header, rows):
    return write_csv(tmp_path / "t.csv", rows, header)


def test_numbers_and_a_label_are_told_apart(tmp_path):
    found = read_table(write_csv(tmp_path / "animals.csv", animals()))
    assert found.name == "animals.csv"
    assert found.dataset.classes == ("cat", "cow", "dog")
    assert found.dataset.train.inputs.shape == (120, 2)
    assert found.dataset.train.true is None
    assert found.dataset.tests == {}
    assert found.notes[0] == "label column 'label', guessed from its name"
    assert found.notes[1] == "numbers and categories: 'size', 'weight'"
    assert found.where(0) == "animals.csv:2"
    assert found.text(0).startswith("size=")


@pytest.mark.parametrize("name", ["Label", " class ", "TARGET", "y", "intent"])
def test_a_label_is_known_by_its_name(tmp_path, name):
    rows = [(i % 7, i % 2, (i * 5) % 11) for i in range(60)]
    found = read_table(table(tmp_path, ("a", name, "b"), rows))
    assert found.dataset.num_classes == 2
    assert "from its name" in found.notes[0]


def test_a_last_column_of_few_values_is_taken_for_the_label(tmp_path):
    rows = [(i / 7, i / 3, "xyz"[i % 3]) for i in range(60)]
    found = read_table(table(tmp_path, ("a", "b", "kind"), rows))
    assert found.dataset.classes == ("x", "y", "z")
    assert (
        "label column 'kind', guessed from its position and its 3 different values"
        in found.notes[0]
    )


def test_where_no_column_looks_like_a_label_it_is_asked_for(tmp_path):
    rows = [(i / 7, i / 3) for i in range(60)]
    with pytest.raises(
        ValueError, match="cannot guess the label column; name it by `label`; the columns are"
    ):
        read_table(table(tmp_path, ("a", "b"), rows))


def test_sentences_become_features_and_are_shown(tmp_path):
    words = ("red round apple", "long green bean", "small sour berry")
    rows = [(i, f"{words[i % 3]} number {i}", "abc"[i % 3]) for i in range(60)]
    found = read_table(table(tmp_path, ("id", "review", "label"), rows))
    assert "text: 'review'" in found.notes
    assert any(note.startswith("left out: 'id' numbers the rows") for note in found.notes)
    assert found.text(3) == "red round apple number 3"
    assert found.dataset.train.inputs.isfinite().all()


def test_text_and_numbers_are_used_together(tmp_path):
    rows = [(f"some words here {i}", i * i, "ab"[i % 2]) for i in range(60)]
    path = table(tmp_path, ("text", "size", "label"), rows)
    both, alone = read_table(path), read_table(path, columns=["text"])
    assert both.dataset.train.inputs.shape[1] == alone.dataset.train.inputs.shape[1] + 1


def test_names_are_left_out_unless_asked_for(tmp_path):
    rows = [(f"user{i}x", i % 5, "ab"[i % 2]) for i in range(60)]
    path = table(tmp_path, ("name", "size", "label"), rows)
    found = read_table(path)
    assert any("'name' has a different value in nearly every row" in note for note in found.notes)
    assert "text: 'name'" in read_table(path, columns=["name"]).notes


def test_a_category_stays_a_category(tmp_path):
    rows = [(("New York", "Los Angeles")[i % 2], i % 5, "ab"[i % 2]) for i in range(60)]
    found = read_table(table(tmp_path, ("city", "size", "label"), rows))
    assert found.dataset.train.inputs.shape[1] == 3
    assert found.dataset.train.inputs[:, :2].sum(1).tolist() == [1.0] * 60


def test_a_long_text_is_cut(tmp_path):
    rows = [(f"word{i} " * 200, "ab"[i % 2]) for i in range(60)]
    assert len(read_table(table(tmp_path, ("text", "label"), rows)).text(0)) == 1000


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([(1.5, "a")] * 60, "'label' must have two classes or more, got only 'a'"),
        ([(i, "ab"[i % 2] if i > 1 else "") for i in range(60)], "2 rows have no label in 'label'"),
        ([(i, "ab"[i % 2] if i else "NaN") for i in range(60)], "1 row has no label in 'label'"),
        ([(i, f"x{i}") for i in range(60)], "has 60 different values in 60 rows"),
        ([(i, "ab"[i % 2]) for i in range(60)], "there are no features besides 'label'"),
        ([(i * i or "inf", "ab"[i % 2]) for i in range(60)], "'size' must be finite, got 'inf'"),
    ],
)
def test_what_cannot_be_audited_is_named(tmp_path, rows, complaint):
    with pytest.raises(ValueError, match=r"t\.csv") as raised:
        read_table(table(tmp_path, ("size", "label"), rows))
    assert complaint in str(raised.value)


def test_cells_without_a_value_are_noted_and_count_as_the_mean_or_as_nothing(tmp_path):
    rows = [(f"some words here {i}", i * i, "xyz"[i % 3], "ab"[i % 2]) for i in range(60)]
    rows[0] = ("", "", "", "a")
    found = read_table(table(tmp_path, ("text", "size", "kind", "label"), rows))
    *words, size, x, y, z = found.dataset.train.inputs[0].tolist()
    assert not any(words)
    assert (size, x, y, z) == (0, 0, 0, 0)
    sizes = torch.tensor([i * i for i in range(1, 60)], dtype=torch.float64)
    expected = (sizes - sizes.mean()) / sizes.std(correction=0)
    torch.testing.assert_close(found.dataset.train.inputs[1:, -4], expected.float())
    assert found.text(0) == "size=, kind="
    assert found.text(1) == "some words here 1"
    assert "'text' is empty in 1 of 60 rows" in found.notes
    missing = "is missing in 1 of 60 rows, the first at t.csv:2; it counts as"
    assert f"'size' {missing} the mean there" in found.notes
    assert f"'kind' {missing} none of its values there" in found.notes


def test_the_roles_of_columns_are_those_of_the_values_that_are_there(tmp_path):
    def sparse(value, i):
        return value if i % 5 == 0 else ""

    header = ("text", "mail", "user_id", "row", "gone", "same", "size", "label")
    rows = [
        (
            sparse(f"some words here {i}", i),
            sparse(f"{i}@mail", i),
            sparse(i * 7, i),
            i if i != 9 else "",
            ("", "NA")[i % 2],
            ("", 3)[i % 2],
            i * i,
            "ab"[i % 2],
        )
        for i in range(60)
    ]
    found = read_table(table(tmp_path, header, rows))
    notes = found.notes
    assert "text: 'text'" in notes
    assert "numbers and categories: 'size'" in notes
    left_out = {
        "mail": "has a different value in nearly every row that has one",
        "user_id": "identifies rows",
        "row": "numbers the rows",
        "gone": "has no value",
        "same": "has only one value",
    }
    for name, why in left_out.items():
        assert f"left out: {name!r} {why}" in notes
    assert list(found.ids(5)) == ["mail", "user_id", "row"]
    assert found.ids(1)["mail"] == ""


def test_a_check_box_is_a_feature(tmp_path):
    rows = [("x" if i % 4 else "", "x", "ab"[i % 2]) for i in range(60)]
    found = read_table(table(tmp_path, ("ticked", "same", "label"), rows))
    assert found.dataset.train.inputs[:5].tolist() == [[0], [1], [1], [1], [0]]
    assert "left out: 'same' has only one value" in found.notes


@pytest.mark.parametrize("value", [lambda i: 2**60 + i % 3, lambda i: 2**60])
def test_large_numbers_do_not_number_the_rows(tmp_path, value):
    rows = [(value(i), i % 7, "ab"[i % 2]) for i in range(60)]
    notes = read_table(table(tmp_path, ("size", "other", "label"), rows)).notes
    assert not any("numbers the rows" in note for note in notes)


def test_a_column_with_missing_cells_is_not_guessed_as_the_label(tmp_path):
    rows = [(i * i, "note" if i % 7 == 0 else "") for i in range(60)]
    with pytest.raises(ValueError, match="cannot guess the label column"):
        read_table(table(tmp_path, ("size", "remark"), rows))


@pytest.mark.parametrize("nothing", [None, math.nan, "", " "])
def test_a_missing_text_is_empty(nothing):
    columns = Columns(Path("t.parquet"), {"text": ["some words", nothing]}, str)
    assert columns.texts("text", complete=False) == ["some words", ""]


def test_cells_without_a_value_are_shown_as_nothing(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    size = [None, *(i * i for i in range(1, 60))]
    kind = [None, *("xyz"[i % 3] for i in range(1, 60))]
    columns = {"size": size, "kind": kind, "label": ["ab"[i % 2] for i in range(60)]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found.text(0) == "size=, kind="
    assert found.text(1) == "size=1, kind=y"


def test_semicolons_are_named(tmp_path):
    rows = [(f"{i};{'ab'[i % 2]}",) for i in range(60)]
    with pytest.raises(ValueError, match="is separated by semicolons; write it with commas"):
        read_table(table(tmp_path, ("size;label",), rows))


def test_the_first_missing_label_is_located(tmp_path):
    rows = [(i * i, "" if i in (7, 9) else "ab"[i % 2]) for i in range(60)]
    with pytest.raises(ValueError, match=r"the first at .*t.csv:9; label or remove them"):
        read_table(table(tmp_path, ("size", "label"), rows))


def test_a_file_in_another_encoding_is_named_with_the_remedy(tmp_path):
    rows = [(i, "größe", "ab"[i % 2]) for i in range(60)]
    path = write_csv(tmp_path / "old.csv", rows, ("n", "text", "label"), encoding="latin-1")
    with pytest.raises(ValueError, match=r"is not UTF-8 text; convert it first, .*iconv"):
        read_table(path)


def test_the_label_is_no_feature(tmp_path):
    path = write_csv(tmp_path / "animals.csv", animals())
    with pytest.raises(
        ValueError, match="feature columns must not include the label column 'label'"
    ):
        read_table(path, columns=["size", "label"])
    with pytest.raises(ValueError, match="has no column 'colour'"):
        read_table(path, label="colour")


def test_few_rows_and_small_classes_are_refused(tmp_path):
    few = read_table(write_csv(tmp_path / "few.csv", animals(30)))
    with pytest.raises(ValueError, match="needs 50 labelled rows or more, got 30"):
        check_labels(few, 5)
    rare = [*animals(), ("1", "2", "yak"), ("1", "2", "yak"), ("1", "2", "yak")]
    found = read_table(write_csv(tmp_path / "rare.csv", rare))
    with pytest.raises(ValueError, match=r"'yak' has 3; merge .*, or use 3 folds"):
        check_labels(found, 5)
    check_labels(found, 3)


def test_features_do_not_depend_on_labels(tmp_path):
    rows = animals()
    other = [(a, b, "cat" if i % 2 else "dog") for i, (a, b, _) in enumerate(rows)]
    first = read_table(write_csv(tmp_path / "a.csv", rows))
    second = read_table(write_csv(tmp_path / "b.csv", other))
    assert torch.equal(first.dataset.train.inputs, second.dataset.train.inputs)


def test_a_table_that_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FileNotFoundError, match=r"pipe.csv: not a regular file"):
        read_table(tmp_path / "pipe.csv")

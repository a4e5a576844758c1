"""Tables of the user's own: CSV, TSV and Parquet."""

import csv

import pytest
import torch

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer

from lossforge.data.dataset import stratify
from lossforge.data.embedded import breast_cancer
from lossforge.data.tables import in_order, load, read_columns

INTENTS = [
    ("I am still waiting on my card?", "card_arrival"),
    ("My new card has not come, when will it?", "card_arrival"),
    ("Where is the card I ordered last week", "card_arrival"),
    ("What is the age limit?", "age_limit"),
    ("Can my child of fourteen open an account", "age_limit"),
    ("How old must I be for an account?", "age_limit"),
]


def write(path, header, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def read(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture
def tumours(tmp_path):
    source = load_breast_cancer()
    names = [source.target_names[label] for label in source.target]
    rows = [[*row, name] for row, name in zip(source.data.tolist(), names, strict=True)]
    return write(tmp_path / "tumours.csv", [*source.feature_names, "label"], rows)


@pytest.fixture
def people(tmp_path):
    header = ["age", "town", "constant", "label", "truth"]
    rows = [
        [30, "Ulm", 0.1, "10", "10"], [40, "Bonn", 0.1, "9", "10"], [50, "Ulm", 0.1, "10", "10"],
        [20, "Bonn", 0.1, "9", "9"], [25, "Köln", 0.1, "9", "9"], [35, "Ulm", 0.1, "10", "2"],
    ]  # fmt: skip
    return write(tmp_path / "people.csv", header, rows)


def test_numbers_equal_the_built_in_data_set(tumours):
    data, built_in = load(tumours), breast_cancer()
    assert data.name == "tumours"
    assert data.classes == ("benign", "malignant")  # alphabetical, not scikit-learn's order
    assert data.train.true is None
    for part in ("train", "test"):
        torch.testing.assert_close(data.parts()[part].inputs, built_in.parts()[part].inputs)
        assert torch.equal(data.parts()[part].given, 1 - built_in.parts()[part].given)


def test_test_file_is_scaled_by_the_training_file(tumours, tmp_path):
    header, *rows = read(tumours)
    labels = torch.tensor([row[-1] == "malignant" for row in rows]).long()
    keep, rest = stratify(labels, 0.2)
    parts = [
        write(tmp_path / f"{name}.csv", header, [rows[row] for row in part.tolist()])
        for name, part in (("a", keep), ("b", rest))
    ]
    data, whole = load(parts[0], test=parts[1]), load(tumours)
    torch.testing.assert_close(data.train.inputs, whole.train.inputs)
    torch.testing.assert_close(data.tests["test"].inputs, whole.tests["test"].inputs)


def test_strings_are_one_hot_and_constants_zero(people, tmp_path):
    other = write(
        tmp_path / "other.csv",
        ["town", "label", "constant", "age"],
        [["Ulm", "9", 0.1, 30], ["Trier", "10", 0.3, 60]],
    )
    data = load(people, columns=["age", "town", "constant"], test=other)
    ages = torch.tensor([30.0, 40, 50, 20, 25, 35])
    expected = ((ages - ages.mean()) / ages.std(correction=0)).float()
    torch.testing.assert_close(data.train.inputs[:, 0], expected)
    towns = [[0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert data.train.inputs[:, 1:4].tolist() == towns
    assert not data.train.inputs[:, 4].any()
    assert data.tests["test"].inputs[:, 1:4].tolist() == [[0, 0, 1], [0, 0, 0]]
    assert data.tests["test"].inputs[1, 4] == pytest.approx(0.2)


def test_numeric_labels_are_in_order_of_value_and_truth_is_kept(people):
    data = load(people, true="truth", test=people)
    assert data.classes == ("2", "9", "10")
    assert data.train.inputs.shape == (6, 5)  # truth is no feature
    assert data.train.given.tolist() == [2, 1, 2, 1, 1, 2]
    assert data.train.true.tolist() == [2, 2, 2, 1, 1, 0]
    assert data.tests["test"].true.tolist() == [2, 2, 2, 1, 1, 0]


def test_class_order():
    assert in_order(["10", "9", "-1", "9"]) == ("-1", "9", "10")
    assert in_order(["10", "9", "x"]) == ("10", "9", "x")
    assert in_order(["nan", "1"]) == ("1", "nan")


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t"), (".CSV", ",")])
def test_text(tmp_path, suffix, delimiter):
    path = write(tmp_path / f"asked{suffix}", ["text", "label"], INTENTS, delimiter)
    data = load(path, text="text", test_fraction=0.34)
    assert data.classes == ("age_limit", "card_arrival")
    assert (len(data.train), len(data.tests["test"])) == (4, 2)
    assert data.train.inputs.dtype == torch.float32


def test_parquet_equals_csv(people, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    header, *rows = read(people)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    kinds = {"age": int, "town": str, "constant": float, "label": int, "truth": float}
    values = {name: [kinds[name](value) for value in columns[name]] for name in header}
    values["town"] = arrow.array(values["town"]).dictionary_encode()
    parquet.write_table(arrow.table(values), tmp_path / "people.parquet")
    data, same = (
        load(path, true="truth", test_fraction=0.34)
        for path in (tmp_path / "people.parquet", people)
    )
    assert data.classes == same.classes
    for part in ("train", "test"):
        assert torch.equal(data.parts()[part].inputs, same.parts()[part].inputs)
        assert torch.equal(data.parts()[part].true, same.parts()[part].true)


def test_generator_draws_the_test_rows(tumours):
    before = torch.get_rng_state()
    draws = [
        load(tumours, generator=torch.Generator().manual_seed(seed)).tests["test"].inputs
        for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"label": "class"}, ValueError, "has no column 'class'; it has 'age', 'town', 'constant'"),
        ({"true": "gold"}, ValueError, "has no column 'gold'; it has 'age'"),
        ({"text": "words"}, ValueError, "has no column 'words'; it has 'age'"),
        ({"columns": ["age", "size"]}, ValueError, "has no column 'size'; it has 'age'"),
        ({"columns": ["age", "label"]}, ValueError, "must not be a label column, got 'label'"),
        ({"text": "label"}, ValueError, "must not be a label column, got 'label'"),
        ({"text": "town", "columns": ["age"]}, ValueError, "by text or by columns, got both"),
        ({"columns": "age"}, TypeError, "columns must be a list of names, got 'age'"),
        ({"columns": []}, ValueError, "must have at least one feature column"),
        ({"label": "constant"}, ValueError, "must have at least two classes, got '0.1'"),
        ({"test_fraction": 1}, ValueError, "test_fraction must be in"),
        ({"test_fraction": 0.01}, ValueError, "must leave a sample for testing, got 0.01 of 6"),
        ({"text": "town", "features": "bert"}, ValueError, "features must be 'tfidf'"),
    ],
)
def test_refused_arguments(people, arguments, error, message):
    with pytest.raises(error, match=message):
        load(people, **arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,label\n1,x\n,y\nNA,x\n4,y\n", r"column 'a' .* got 2, the first at .*t\.csv:3"),
        ("a,label\n1,x\ninf,y\n3,x\n", r"t\.csv:3: 'a' must be finite, got 'inf'"),
        ("a,label\nu,x\n,y\nv,x\n", r"column 'a' .* got 1, the first at .*t\.csv:3"),
        ("a,label\n1,x\n2, \n3,y\n", r"t\.csv:3: label 'label' must not be empty"),
        ("a,label\n1,x\n\n2,y,z\n", r"t\.csv:4: expected 2 fields as in the header, got 3"),
        ("a,a,label\n1,2,x\n", r"t\.csv:1: column names must differ, got 'a' twice"),
        (",a,label\n0,1,x\n1,2,y\n", "has a column without a name, perhaps row numbers"),
        ("a,label\n", "must have at least one row"),
        ("", "must have at least one row"),
        ("a,label\n\xff,x\n", "is not UTF-8 text; convert it first"),
    ],
)
def test_bad_content_is_placed(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "t.csv")


def test_bad_test_file_is_placed(people, tmp_path):
    header = ["age", "label"]
    other = write(tmp_path / "o.csv", header, [[3, "9"], ["old", "9"]])
    with pytest.raises(ValueError, match=r"o\.csv:3: 'age' must be a number, as all .* got 'old'"):
        load(people, columns=["age"], test=other)
    write(other, header, [[3, "9"], [4, "11"]])
    with pytest.raises(
        ValueError, match=r"o\.csv:3: label 'label' must be one of the 2 .*got '11'"
    ):
        load(people, columns=["age"], test=other)


@pytest.mark.parametrize(("grades", "found"), [(("a", "b c"), "none"), (("ok", "OK!"), "one")])
def test_a_text_column_without_words_is_named(tmp_path, grades, found):
    rows = [(grade, label) for label, grade in enumerate(grades)] * 5
    path = write(tmp_path / "grades.csv", ["grade", "label"], rows)
    with pytest.raises(
        ValueError,
        match=rf"grades\.csv: the training part of column 'grade' must have two .* got {found}",
    ):
        load(path, text="grade")


def test_column_of_names_is_not_one_hot(tmp_path):
    path = write(tmp_path / "ids.csv", ["id", "label"], [[f"u{k}", k % 2] for k in range(2000)])
    with pytest.raises(
        ValueError, match=r"'id' must have at most 1000 categories, got 1600; is it"
    ):
        load(path)


def test_type_and_absence_of_the_file(tmp_path):
    with pytest.raises(ValueError, match=r"type \.csv, \.tsv, \.parquet, \.pq, got .*t\.xlsx"):
        load(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError, match=r"t\.csv: no such file"):
        load(tmp_path / "t.csv")


def test_parquet_errors_name_the_file(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    path.write_bytes(b"no parquet at all")
    with pytest.raises(ValueError, match=r"t\.parquet is not readable as Parquet"):
        load(path)
    parquet.write_table(arrow.table({"a": [1.0, 2.0, 3.0], "label": ["x", None, "y"]}), path)
    with pytest.raises(ValueError, match=r"t\.parquet, row 2: label 'label' must not be empty"):
        load(path)
    parquet.write_table(arrow.table({"a": [[1], [2], [3]], "label": ["x", "y", "y"]}), path)
    with pytest.raises(TypeError, match=r"row 1: 'a' must hold numbers or strings, got \[1\]"):
        load(path, test=path)


def test_labels_stay_apart_that_a_spreadsheet_shows_alike(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n" + "1,+\n2,'+\n3,-\n" * 10)
    assert read_columns(path)["label"][:3] == ("+", "'+", "-")
    assert load(path).classes == ("'+", "+", "-")


def test_the_training_table_says_what_a_column_holds(tmp_path):
    (tmp_path / "train.csv").write_text("smoker,label\nnone,a\nlight,b\n")
    (tmp_path / "test.csv").write_text("smoker,label\nnone,a\nnone,b\n")
    found = load(tmp_path / "train.csv", test=tmp_path / "test.csv")
    assert found.tests["test"].inputs.tolist() == [[0, 1], [0, 1]]
    (tmp_path / "test.csv").write_text("smoker,label\nnone,a\n,b\n")
    with pytest.raises(ValueError, match=r"column 'smoker' must have no missing value, got 1"):
        load(tmp_path / "train.csv", test=tmp_path / "test.csv")

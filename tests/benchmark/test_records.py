"""Records are read back as they were written, in the order of their grid."""

import json
import os

import pytest

from lossforge.benchmark import RunSpec
from lossforge.benchmark.integrity import sealed
from lossforge.benchmark.records import Record, paper_results, read_grids, read_record, read_records


def epochs(*accuracies, validation=()):
    held_out = [*validation, *[None] * len(accuracies)]
    return [
        {"epoch": i + 1, "tests": {"test": {"top1": a, "top5": None}}, "validation": held_out[i]}
        for i, a in enumerate(accuracies)
    ]


def record(metrics, **more):
    return Record("a", {}, metrics, 10, 0.4, "0", **more)


def write(store, name, **changes):
    """A finished run whose row is called so; its folder has the id of its spec."""
    spec = RunSpec(data="digits", model="mlp", loss=name, expression="CE")
    folder = store / spec.id
    folder.mkdir(parents=True)
    content = {
        "id": spec.id,
        "spec": spec.model_dump(),
        "classes": 10,
        "noise_rate": 0.4,
        "metrics": epochs(50.0),
        "parameters": "00",
    } | changes
    (folder / "spec.json").write_text("{}")
    (folder / "record.json").write_text(json.dumps(sealed(content)))
    return folder


def rows(records):
    return [one.spec["loss"] for one in records]


def test_the_three_accuracies():
    one = record(epochs(*map(float, range(20)), validation=[*range(5), 9, 8, 9]))
    assert one.last() == one.measure("last") == 19
    assert one.mean_last(10) == one.measure("mean10") == 14.5
    assert one.mean_last(100) == 9.5
    assert one.selected_epoch == 6  # the first of the equal ones
    assert one.selected() == one.measure("selected") == 5


def test_what_a_run_does_not_have_is_none():
    one = record(epochs(1.0, 2.0))
    assert one.selected() is one.selected_epoch is one.last(k="top5") is one.last("other") is None
    assert one.mean_last(k="top5") is None


def test_a_run_that_broke_off_has_no_accuracy():
    one = record(epochs(1.0, validation=[1]), failed="the loss is nan")
    assert one.last() is one.mean_last() is one.selected() is None
    assert record([], failed="at once").last() is None
    assert record([], failed="at once").tests == []


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("GCE(q=0.7)", {"q": 0.7}),
        ("BEF(alpha=-8, tau=1, lam=1e-1)", {"alpha": -8, "tau": 1, "lam": 0.1}),
        ("TS(exponential(beta=-8), tau=1)", {"tau": 1}),
        ("CE", {}),
        ("0.5*BEF(lam=0.9, mu=0.1) + CE", {}),
        ("not a loss", {}),
    ],
)
def test_parameters_of_earlier_versions_are_read_from_the_text(text, parameters):
    assert Record("a", {"expression": text}, [], 10, 0.4, "0").loss_parameters == parameters


def test_parameters_are_kept_as_they_were_stored(tmp_path):
    write(tmp_path, "aa", loss_parameters={"q": 0.7, "scale": 1})
    (one,) = read_records(tmp_path)
    assert one.loss_parameters == {"q": 0.7, "scale": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BEF(lam=0.9, mu=0.1)", ("BEF", 0.9, 0.1)),
        ("BQF(alpha=12, tau=1, lam=1, mu=0, br_beta=-8)", ("BQF", 1.0, 0.0)),
        ("BEF(lam=1e-1, mu=.9)", ("BEF", 0.1, 0.9)),
        ("BEF()", None),
        ("BEF(tau=1)", None),
        ("BEF(lam=0.9, br_beta=-1)", ("BEF", 0.9, 0.1)),
        ("GCE(q=0.7)", None),
        ("0.5*BEF(lam=0.9, mu=0.1) + CE", None),
    ],
)
def test_the_balance_of_the_two_terms(text, found):
    assert Record("a", {"expression": text}, [], 150, 0.4, "0").balance == found


def test_beyond_150_classes_there_is_no_default_balance():
    texts = "BEF(lam=0.9)", "BEF(lam=0.9, mu=0.2)"
    given = [Record("a", {"expression": text}, [], 151, 0.4, "0") for text in texts]
    assert [one.balance for one in given] == [None, ("BEF", 0.9, 0.2)]


def test_unfinished_runs_are_left_out(tmp_path):
    folder = write(tmp_path, "aa")
    (tmp_path / "bb").mkdir()
    (tmp_path / "bb" / "spec.json").write_text("{}")
    (one,) = read_records(tmp_path)
    assert (one.id, one.about, one.folder) == (folder.name, {}, folder)


def test_about_lies_beside(tmp_path):
    folder = write(tmp_path, "aa", transition=[[1, 0], [0, 1]], failed=None)
    (folder / "about.json").write_text('{"seconds": 3}')
    (one,) = read_records(tmp_path)
    assert one.about == {"seconds": 3}
    assert one.transition == [[1, 0], [0, 1]]


def test_the_order_is_that_of_the_grid_then_of_beginning(tmp_path):
    ids = {}
    for place, name in enumerate(["dd", "aa", "cc", "bb"]):
        folder = write(tmp_path, name)
        ids[name] = folder.name
        os.utime(folder / "spec.json", ns=(place, place))
    assert rows(read_records(tmp_path)) == ["dd", "aa", "cc", "bb"]
    runs = [ids["cc"], ids["bb"], "zz"]
    grid = {"name": "g", "title": "G", "table": "cifar10", "runs": runs}
    (tmp_path / "grid-g.json").write_text(json.dumps(grid))
    assert rows(read_records(tmp_path)) == ["cc", "bb", "dd", "aa"]
    (found,) = read_grids(tmp_path)
    assert (found.name, found.title, found.table) == ("g", "G", "cifar10")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": "aa"}'])
def test_a_damaged_record_is_named(tmp_path, text):
    folder = write(tmp_path, "aa")
    (folder / "record.json").write_text(text)
    with pytest.raises(ValueError, match=rf"{folder.name}.record\.json"):
        read_records(tmp_path)


def test_one_record(tmp_path):
    folder = write(tmp_path, "aa")
    assert [read_record(folder)] == read_records(tmp_path)


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_records(tmp_path / "nowhere")


def test_the_papers_numbers():
    found = paper_results("cifar10")
    assert paper_results("paper/cifar10") == found
    cells = {(r["loss"], r["noise"]): (r["mean"], r["std"]) for r in found["rows"]}
    assert cells["CE", "symmetric:0.8"] == (19.19, 0.16)
    assert len(cells) == len(found["rows"]) == 17 * 9
    assert paper_results("digits") is None


def test_the_real_world_table_has_two_tests_and_top_5():
    rows = paper_results("realworld")["rows"]
    (one,) = [r for r in rows if (r["loss"], r["test"], r["k"]) == ("BEF", "ilsvrc12", "top5")]
    assert (one["data"], one["mean"], one["std"]) == ("webvision", 89.2, None)

"""A file of packed runs says what the folder said, and finds what a rerun changed."""

import copy
import gzip
import json
import random
from dataclasses import replace

import pytest
from made_records import made, write

from lossforge.benchmark.archive import differences, pack, unpack
from lossforge.benchmark.integrity import sealed
from lossforge.benchmark.records import Grid, read_grids, read_records

TESTS = ("test", "val")
FITS = ("noise_fit", "noise_recovered", "clean_fit")
LARGEST = 5_000_000 / 4_000  # bytes a run, if all archives are to stay below 5 MB


@pytest.fixture
def records():
    return [
        made(loss, noise, seed, 60 + 10 * seed + 1 / 3, selected=70.0, classes=150, tests=TESTS)
        for seed in (1, 0)
        for noise in ("clean", "symmetric:0.4")
        for loss in ("CE", "JAL-CE")
    ]


@pytest.fixture
def store(tmp_path, records):
    return write(tmp_path / "store", records)


@pytest.fixture
def path(tmp_path, store):
    pack(store, tmp_path / "packed.jsonl.gz")
    return tmp_path / "packed.jsonl.gz"


def changed(record, epoch, **values):
    metrics = copy.deepcopy(record.metrics)
    metrics[epoch].update(values)
    return replace(record, metrics=metrics)


def test_a_packed_run_is_the_run_but_for_what_is_dropped(store, path):
    whole, packed = read_records(store), unpack(path)[1]
    for one, other in zip(whole, packed, strict=True):
        for name in ("id", "spec", "classes", "noise_rate", "parameters", "failed"):
            assert getattr(one, name) == getattr(other, name)
        assert json.dumps(one.spec, sort_keys=True) == json.dumps(other.spec)
        for epoch, kept in zip(one.metrics, other.metrics, strict=True):
            for name in ("epoch", "loss", "validation", "tests", *FITS):
                assert kept[name] == epoch[name]
        kept = ("device", "instructions", "processes", "versions")
        assert other.about == {key: one.about[key] for key in kept}
        assert other.folder is other.transition is None


@pytest.mark.parametrize("measure", ["last", "mean10", "selected"])
@pytest.mark.parametrize("k", ["top1", "top5"])
def test_every_accuracy_survives(store, path, measure, k):
    whole, packed = read_records(store), read_records(path)
    for test in TESTS:
        values = [one.measure(measure, test, k) for one in whole]
        assert None not in values
        assert [one.measure(measure, test, k) for one in packed] == values


def test_top_5_of_few_classes_is_dropped(tmp_path):
    one = made("CE", "clean", 0, 60.0)
    assert one.last(k="top5") == 61
    pack(write(tmp_path / "store", [one]), tmp_path / "f.gz")
    (packed,) = read_records(tmp_path / "f.gz")
    assert (packed.last(), packed.last(k="top5")) == (60, None)


def test_the_header_says_what_is_shared(path, records):
    header = unpack(path)[0]
    assert header["command"] == "lossforge bench results/digits"
    assert (header["name"], header["title"], header["seconds"]) == ("results/digits", "A title", 16)
    assert header["spec"]["model"] == "mlp"
    assert header["spec"]["training"] == {
        "batch_size": 256,
        "epochs": 3,
        "lr": 0.1,
        "weight_decay": 0.0,
    }
    assert not {"loss", "seed", "noise"} & set(header["spec"])
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    own = [json.loads(line)["spec"] for line in lines[1:]]
    assert [set(spec) for spec in own] == [{"loss", "expression", "noise", "seed", "training"}] * 8
    assert len(lines) == 1 + len(records)


def test_numbers_keep_their_type(tmp_path):
    """1 and 1.0 are two runs, so they are not shared."""
    both = [made("CE", "clean", 0, 60.0, data_options={"size": value}) for value in (0, 0.0)]
    pack(write(tmp_path / "store", both), tmp_path / "f.gz")
    packed = [one.spec["data_options"]["size"] for one in read_records(tmp_path / "f.gz")]
    assert [repr(value) for value in packed] == ["0", "0.0"]


def test_equal_runs_make_equal_bytes(tmp_path, store, path):
    pack(store, tmp_path / "again.gz")
    assert (tmp_path / "again.gz").read_bytes() == path.read_bytes()
    other = [replace(one, parameters="0" * 64) for one in read_records(store)]
    pack(write(tmp_path / "other", other), tmp_path / "again.gz")
    assert (tmp_path / "again.gz").read_bytes() != path.read_bytes()


def test_the_order_is_that_of_the_grid_and_unfinished_runs_are_named(tmp_path, store, records):
    (store / records[2].id / "record.json").unlink()
    pack(store, tmp_path / "f.gz")
    header, packed = unpack(tmp_path / "f.gz")
    rest = [one.id for one in records if one is not records[2]]
    assert [one.id for one in packed] == rest
    assert header["unfinished"] == [records[2].id]
    (grid,) = read_grids(tmp_path / "f.gz")
    assert grid.name == "results/digits"
    assert grid.runs == (*rest, records[2].id)


def test_only_the_wanted_runs(tmp_path, store, records):
    wanted = Grid("part", "Some", runs=(records[3].id, "unfinished", records[0].id))
    pack(store, tmp_path / "f.gz", grid=wanted)
    header, packed = unpack(tmp_path / "f.gz")
    assert [one.id for one in packed] == [records[3].id, records[0].id]
    assert (header["name"], header["title"]) == ("part", "Some")
    assert header["unfinished"] == ["unfinished"]
    with pytest.raises(ValueError, match="no finished run of part"):
        pack(store, tmp_path / "f.gz", grid=replace(wanted, runs=("unfinished",)))


def test_a_grid_can_be_packed_in_parts(tmp_path, store, path, records):
    """A part from a new store joins the archive of another; what was done again is replaced."""
    again = replace(records[3], parameters="0" * 64)
    part = write(tmp_path / "part", [records[2], again])
    known = tuple(one.id for one in records)
    for lost in records[2:]:
        (store / lost.id / "record.json").unlink()
    pack(store, tmp_path / "f.gz", grid=Grid("results/digits", "A title", runs=known))
    earlier, both = unpack(tmp_path / "f.gz")
    pack(
        part,
        tmp_path / "f.gz",
        grid=Grid("results/digits", "A title", runs=known),
        earlier=tmp_path / "f.gz",
    )
    header, packed = unpack(tmp_path / "f.gz")
    assert [one.id for one in packed] == [one.id for one in records[:4]]
    assert packed[3].parameters == "0" * 64
    assert [replace(one, about={}) for one in packed[:2]] == [
        replace(one, about={}) for one in both
    ]
    assert header["seconds"] == earlier["seconds"] + 4
    assert header["unfinished"] == [one.id for one in records[4:]]


def test_a_store_of_two_grids_is_refused(tmp_path, store):
    (store / "grid-other.json").write_text('{"name": "other", "runs": []}')
    with pytest.raises(ValueError, match=r"one grid.*other, results/digits"):
        pack(store, tmp_path / "f.gz")


def test_runs_done_again_with_the_same_bits_do_not_differ(store, path):
    again = [replace(one, about={"device": "other"}) for one in read_records(store)]
    assert differences(unpack(path)[1], again[::-1]) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: replace(one, parameters="f" * 64), "different weights"),
        (
            lambda one: changed(one, 1, tests=one.metrics[0]["tests"]),
            "test top1 10.0 instead of 70.0 in epoch 2",
        ),
        (lambda one: changed(one, 2, validation=20.000000000000004), "validation 20.00"),
        (lambda one: changed(one, 1, noise_fit=1.0), "noise_fit 1.0 instead of 12.0 in epoch 2"),
        (lambda one: replace(one, failed="the loss is nan"), "failed 'the loss is nan' instead"),
        (lambda one: replace(one, metrics=one.metrics[:2]), "loss of 2 epochs instead of 3"),
        (lambda one: replace(one, noise_rate=0.5), "noise_rate 0.5 instead of 0.4"),
    ],
)
def test_a_changed_run_is_named(store, path, change, told):
    again = read_records(store)
    again[3] = change(again[3])
    (line,) = differences(unpack(path)[1], again)
    assert line.startswith(f"{again[3].id} (data digits, loss JAL-CE, noise symmetric:0.4, seed 1)")
    assert told in line


def test_archives_of_earlier_versions_have_the_last_share_of_labels_fitted(store, path):
    header, *lines = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    for line in lines:
        line.pop("seal")
        line["metrics"] |= {name: line["metrics"][name][-1] for name in FITS}
    text = "".join(f"{json.dumps(one)}\n" for one in (header, *map(sealed, lines)))
    path.write_bytes(gzip.compress(text.encode()))
    again = read_records(store)
    for one, other in zip(again, unpack(path)[1], strict=True):
        for name in FITS:
            values = [epoch[name] for epoch in other.metrics]
            assert values == [None, None, one.metrics[-1][name]]
    assert differences(unpack(path)[1], again) == []
    again[3] = changed(again[3], 2, noise_fit=1.0)
    (line,) = differences(unpack(path)[1], again)
    assert line.endswith("noise_fit 1.0 instead of 13.0")


def test_missing_and_new_runs_are_named(store, path):
    again = read_records(store)
    new = made("GCE", "clean", 0, 50.0)
    missing, added = differences(unpack(path)[1], [*again[1:], new])
    assert missing.startswith(again[0].id)
    assert missing.endswith("missing")
    assert added.startswith(new.id)
    assert added.endswith("not archived")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        gzip.compress(b"", mtime=0),
        gzip.compress(b"{}\n", mtime=0),
        gzip.compress(b"[]\n", mtime=0),
        gzip.compress(b'{"format": "other"}\n', mtime=0),
    ],
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "f.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"f\.gz is not a file of packed runs"):
        read_records(tmp_path / "f.gz")


def test_a_file_that_was_cut_off_is_refused(path):
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"packed\.jsonl\.gz is not"):
        read_records(path)


def test_runs_of_fifty_epochs_are_small_enough(tmp_path):
    """With losses that nothing compresses, and accuracies of a test set of 360 samples."""
    source = random.Random(0)
    records = []
    for seed in range(40):
        one = made("CE", "clean", seed, 50.0)
        epochs = [
            {
                "epoch": i + 1,
                "loss": source.random(),
                "validation": 100 * source.randrange(145) / 144,
                "tests": {"test": {"top1": 100 * source.randrange(361) / 360, "top5": None}},
            }
            for i in range(50)
        ]
        records.append(replace(one, metrics=epochs))
    pack(write(tmp_path / "store", records), tmp_path / "f.gz")
    assert (tmp_path / "f.gz").stat().st_size / len(records) < LARGEST

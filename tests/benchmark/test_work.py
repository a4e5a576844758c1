"""One run from spec to record: paired, resumed, failed."""

import json

import pytest
import torch

from lossforge import data
from lossforge.benchmark import RunFolder, choose, execute, make_grid, noises
from lossforge.benchmark.prepare import prepare_data, prepare_model
from lossforge.benchmark.records import read_record, read_records

QUICK = {"epochs": 3, "batch_size": 256, "model_options": {"hidden": [16]}}


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)  # as outside the tests; conftest sets it back


def quick(loss="CE", noise="symmetric:0.4", seed=0, **settings):
    return choose.one_run("digits", noise, loss, seed=seed, settings={**QUICK, **settings})


def test_a_run_leaves_a_record(tmp_path):
    spec = quick(hold_out=0.2, keep_features=True)
    assert execute(tmp_path, spec) == "done"
    record = read_record(tmp_path / spec.id)
    assert record.spec == spec.model_dump()
    assert len(record.metrics) == 3
    assert record.noise_rate == pytest.approx(0.4, abs=0.05)
    assert record.selected() is not None
    assert sum(map(sum, record.transition)) == len(prepare_data(spec).train)
    assert record.about["command"] == spec.command()
    files = sorted(path.name for path in (tmp_path / spec.id).iterdir())
    assert files == ["about.json", "features.npz", "metrics.jsonl", "record.json", "spec.json"]
    lines = (tmp_path / spec.id / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == record.metrics
    assert execute(tmp_path, spec) == "finished before"


def test_the_same_spec_gives_the_same_bytes(tmp_path):
    spec = quick("BEF")
    for place in ("a", "b"):
        execute(tmp_path / place, spec)
    a, b = ((tmp_path / place / spec.id / "record.json").read_bytes() for place in "ab")
    assert a == b


def test_runs_are_paired():
    ce, bef = quick("CE"), quick("BEF")
    data_ce, data_bef = prepare_data(ce), prepare_data(bef)
    assert torch.equal(data_ce.train.given, data_bef.train.given)
    weights = [prepare_model(spec, data_ce).state_dict() for spec in (ce, bef)]
    for name in weights[0]:
        assert torch.equal(weights[0][name], weights[1][name])
    other = prepare_data(quick("CE", seed=1))
    assert not torch.equal(data_ce.train.given, other.train.given)


def test_a_run_that_diverges_is_recorded_as_failed(tmp_path):
    spec = quick("CE", optimizer="sgd", lr=1e30, schedule="constant")
    assert execute(tmp_path, spec) == "done"
    (record,) = read_records(tmp_path)
    assert record.failed
    assert record.last() is None
    assert execute(tmp_path, spec) == "finished before"


def test_labels_without_training(tmp_path):
    spec = quick("CE", epochs=0)
    assert execute(tmp_path, spec) == "done"
    record = read_record(tmp_path / spec.id)
    assert record.metrics == []
    assert record.transition is not None


def test_a_busy_run_is_left_alone(tmp_path):
    spec = quick()
    folder = RunFolder(tmp_path, spec)
    folder.open()
    with folder.claim() as ours:
        assert ours
        assert folder.status == "running"
        assert execute(tmp_path, spec) == "busy"
    assert folder.status == "waiting"


def test_a_subset_is_balanced_and_fixed():
    spec = quick(subset=200)
    train = prepare_data(spec).train
    assert torch.bincount(train.true).tolist() == [20] * 10
    assert len(train) == 200
    with pytest.raises(ValueError, match="subset must be a multiple of the 10 classes"):
        prepare_data(quick(subset=205))


@pytest.mark.parametrize(
    ("name", "text", "rate"),
    [
        ("digits", "clean", 0),
        ("digits", "symmetric:0.6", 0.6),
        ("digits", "pair:0.3", 0.3),
        ("digits", "asymmetric:0.4", 0.2),
        ("digits", "instance:0.4", 0.4),
        ("digits-pairs", "asymmetric:0.4", 0.4),
        ("breast-cancer", "symmetric:0.2", 0.2),
    ],
)
def test_noise_has_the_rate_it_says(name, text, rate):
    dataset = data.load(name)
    labels = noises.given_labels(dataset, text, seed=3)
    wrong = (labels != dataset.train.true).double().mean().item()
    assert wrong == pytest.approx(rate, abs=0.06)
    assert torch.equal(labels, noises.given_labels(dataset, text, seed=3))


def test_asymmetric_digits_follow_the_map_of_mnist():
    dataset = data.load("digits")
    labels = noises.given_labels(dataset, "asymmetric:0.4", seed=0)
    changed = {(int(a), int(b)) for a, b in zip(dataset.train.true, labels, strict=True) if a != b}
    assert changed == {(7, 1), (2, 7), (5, 6), (6, 5), (3, 8)}


def test_given_labels_are_those_of_the_files():
    dataset = data.load("digits").with_noise(torch.zeros(1438, dtype=torch.int64))
    assert noises.given_labels(dataset, "given", seed=0).sum() == 0


def test_a_small_grid(tmp_path):
    grid = make_grid(
        {
            "name": "tiny",
            "data": "breast-cancer",
            "model": "mlp",
            "model_options": {"hidden": [8]},
            "noise": ["clean", "symmetric:0.2"],
            "losses": ["CE", "BEF"],
            "seeds": [0],
            "training": {"epochs": 2},
        }
    )
    for spec in grid.runs():
        execute(tmp_path, spec)
    assert {(r.spec["loss"], r.spec["noise"]) for r in read_records(tmp_path)} == {
        (loss, noise) for loss in ("CE", "BEF") for noise in ("clean", "symmetric:0.2")
    }

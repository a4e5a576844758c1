"""One run from spec to record: paired, resumed, failed."""

import json

import pytest
import torch

from lossforge import data
from lossforge.benchmark import RunFolder, execute, make_grid, one_run, read_spec
from lossforge.benchmark.records import read_record, read_records
from lossforge.benchmark.run import prepare_data, prepare_model
from lossforge.noise import NoiseSpec
from lossforge.training import generator

QUICK = {"epochs": 3, "batch_size": 256, "model_options": {"hidden": [16]}}


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)  # as outside the tests; conftest sets it back


def quick(loss="CE", noise="symmetric:0.4", seed=0, **changes):
    return one_run("digits", noise, loss, seed=seed, changes={**QUICK, **changes}).spec


def labels_under(dataset, noise, seed):
    chance = generator(seed, "noise")
    return data.noisy_labels(dataset, NoiseSpec.parse(noise), generator=chance)


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
    labels = labels_under(dataset, text, seed=3)
    wrong = (labels != dataset.train.true).double().mean().item()
    assert wrong == pytest.approx(rate, abs=0.06)
    assert torch.equal(labels, labels_under(dataset, text, seed=3))


def test_asymmetric_digits_follow_the_map_of_mnist():
    dataset = data.load("digits")
    labels = labels_under(dataset, "asymmetric:0.4", seed=0)
    changed = {(int(a), int(b)) for a, b in zip(dataset.train.true, labels, strict=True) if a != b}
    assert changed == {(7, 1), (2, 7), (5, 6), (6, 5), (3, 8)}


def test_given_labels_are_those_of_the_files():
    dataset = data.load("digits").with_noise(torch.zeros(1438, dtype=torch.int64))
    assert labels_under(dataset, "given", seed=0).sum() == 0


@pytest.fixture
def matrix(tmp_path):
    """A transition matrix with class names, in a file."""
    path = tmp_path / "mine.csv"
    names = [f"digit {i}" for i in range(10)]
    rows = torch.full((10, 10), 0.3 / 9, dtype=torch.float64).fill_diagonal_(0.7).tolist()
    lines = [",".join(["", *names])]
    lines += [",".join([name, *map(repr, row)]) for name, row in zip(names, rows, strict=True)]
    path.write_text("\n".join(lines))
    return path


def test_a_matrix_is_kept_with_the_run(tmp_path, matrix):
    run = one_run("digits", str(matrix), "CE", changes=QUICK)
    assert run.spec.noise == str(run.noise)
    assert run.spec.noise.startswith("mine.csv@")
    assert "--noise mine.csv --loss" in run.spec.command()
    assert execute(tmp_path / "a", run) == "done"
    record = read_record(tmp_path / "a" / run.spec.id)
    assert record.noise_rate == pytest.approx(0.3, abs=0.05)
    # a worker has the folder alone
    RunFolder(tmp_path / "b", run.spec).open(run.noise)
    matrix.unlink()
    spec = read_spec(tmp_path / "b", run.spec.id)
    assert torch.equal(RunFolder(tmp_path / "b", spec).read_noise().weights, run.noise.weights)
    assert execute(tmp_path / "b", spec) == "done"
    a, b = ((tmp_path / place / spec.id / "record.json").read_bytes() for place in "ab")
    assert a == b


def test_a_changed_matrix_is_refused(tmp_path, matrix):
    run = one_run("digits", str(matrix), "CE", changes=QUICK)
    folder = RunFolder(tmp_path, run.spec)
    folder.open(run.noise)
    kept = folder.path / "noise.csv"
    kept.write_text(kept.read_text().replace("0.7", "0.70000000001", 1))
    with pytest.raises(
        ValueError, match=r"noise\.csv was changed: it is not the matrix mine\.csv@"
    ):
        execute(tmp_path, run.spec)


def test_the_text_of_a_matrix_names_its_file(tmp_path, matrix, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = one_run("digits", "mine.csv", "CE", changes=QUICK)
    again = one_run("digits", run.spec.noise, "CE", changes=QUICK)
    assert again.spec == run.spec
    assert torch.equal(again.noise.weights, run.noise.weights)
    assert torch.equal(prepare_data(run.spec).train.given, prepare_data(again.spec).train.given)
    matrix.write_text(matrix.read_text().replace("0.7", "0.70000000001", 1))
    with pytest.raises(ValueError, match=r"mine\.csv was changed: it is not the matrix mine\.csv@"):
        NoiseSpec.parse(run.spec.noise)


def test_a_matrix_must_fit_the_data(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("0.9,0.1\n0.2,0.8")
    assert one_run("breast-cancer", str(path), "CE").noise.kind == "matrix"
    with pytest.raises(ValueError, match="is over 2 classes, not 10"):
        one_run("digits", str(path), "CE")
    path.write_text("0.9,0.1\n0.2,0.7")
    with pytest.raises(ValueError, match=r"row 1 of .* must sum to 1"):
        one_run("breast-cancer", str(path), "CE")
    path.write_text("0.9,0.1")
    with pytest.raises(ValueError, match="describes one instance, not the labels of breast-cancer"):
        one_run("breast-cancer", str(path), "CE")


@pytest.mark.parametrize(
    ("loss", "parameters"),
    [
        ("GCE(q=0.5)", {"q": 0.5}),
        ("0.5*GCE + MAE", {"terms": [{"coefficient": 0.5, "loss": "GCE", "q": 0.7}, {}]}),
        ("BEF(lam=1, mu=0)", {"lam": 1.0, "mu": 0.0}),
    ],
)
def test_a_record_holds_the_parameters_of_the_loss(tmp_path, loss, parameters):
    spec = quick(loss, epochs=0)
    execute(tmp_path, spec)
    content = json.loads((tmp_path / spec.id / "record.json").read_text())
    found = content["loss_parameters"]
    if "terms" in parameters:
        assert found["terms"][0] == parameters["terms"][0]
        assert len(found["terms"]) == len(parameters["terms"])
    else:
        assert parameters.items() <= found.items()


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

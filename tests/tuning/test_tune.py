"""A search under a transition matrix, the devices of its final runs, and the end of its workers."""

import json
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import torch
from tiny_search import NOISE, SETTINGS

from lossforge.benchmark.records import read_records
from lossforge.tuning import tune, worker
from lossforge.tuning.plan import Plan, make_plan
from lossforge.tuning.score import visible
from lossforge.tuning.study import StaleTrials, is_orphaned, open_study
from lossforge.tuning.tune import compare


@pytest.fixture
def matrix(tmp_path):
    """A transition matrix in a file outside the working directory."""
    rows = torch.full((10, 10), 0.3 / 9, dtype=torch.float64).fill_diagonal_(0.7).tolist()
    path = tmp_path / "elsewhere" / "T.csv"
    path.parent.mkdir()
    path.write_text("\n".join(",".join(map(repr, row)) for row in rows))
    return path


def test_the_name_of_a_search_never_changes(matrix, monkeypatch):
    assert make_plan("digits", NOISE, "GCE", settings=SETTINGS).name == "GCE-372d6afd9e43"
    plan = make_plan("digits", str(matrix), "GCE", settings=SETTINGS)
    assert plan.name == "GCE-a705c760c221"
    monkeypatch.chdir(matrix.parent)
    assert make_plan("digits", "T.csv", "GCE", settings=SETTINGS) == plan


def test_a_plan_has_the_numbers_of_its_matrix(matrix):
    plan = make_plan("digits", str(matrix), "GCE", settings=SETTINGS)
    again = Plan.model_validate_json(json.dumps(plan.model_dump()))  # as a worker reads it
    (before,) = visible(plan)
    matrix.unlink()
    (seen,) = visible(again)
    assert torch.equal(seen.train.given, before.train.given)
    assert str(again.label_noise()) == plan.spec.noise
    assert make_plan("digits", NOISE, "GCE", settings=SETTINGS).noise is None


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_matrix_may_be_in_any_folder(workers, matrix, tmp_path):
    store = tmp_path / "store"
    options = {"trials": 2, "settings": SETTINGS, "final_seeds": 1, "workers": workers}
    found = tune("digits", str(matrix), "GCE", store=store, **options)
    assert len(found.trials) == 2
    assert [(test.seeds, len(test.tuned)) for test in found.final] == [((1,), 1)]
    records = read_records(store / found.study)
    assert {record.spec["noise"].partition("@")[0] for record in records} == {"T.csv"}
    assert all((record.folder / "noise.csv").exists() for record in records)


@pytest.mark.parametrize(("device", "gpus"), [("cpu", ()), ("cuda", None)])
def test_final_runs_are_done_on_the_device_of_the_search(device, gpus, tmp_path, monkeypatch):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    options = {}

    def note(executor, store, runs, **given):
        options.update(given)
        raise InterruptedError

    monkeypatch.setitem(compare.__globals__, "run_all", note)
    with pytest.raises(InterruptedError):
        compare(plan, "GCE(q=0.5)", [1], tmp_path, workers=2, device=device)
    assert options == {"workers": 2, "data_dir": None, "gpus": gpus, "trust": True}


def test_a_worker_ends_with_its_parent_after_an_epoch(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with open_study(plan, url) as study:
        study.prepare(list)
        task = {"plan": plan.model_dump(), "url": url, "limit": 1, "parent": -1}
        with pytest.raises(SystemExit):
            worker.work({**task, "data_dir": None, "device": "cpu", "code": []})
        assert [trial.state.name for trial in study.trials()] == ["FAIL"]  # the next one repeats it


def test_a_running_search_compares_no_clock_of_another_machine():
    started = datetime.now() - timedelta(hours=1)  # by a clock that is slow
    trial = SimpleNamespace(number=0, user_attrs={}, intermediate_values={}, datetime_start=started)
    stale = StaleTrials(timeout=60.0)
    assert not stale.is_stale(trial)
    assert not stale.is_stale(trial)
    assert is_orphaned(trial)
    assert StaleTrials(timeout=-1.0).is_stale(trial)

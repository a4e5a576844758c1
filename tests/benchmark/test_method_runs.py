"""Training methods in specs, grids and records: ids, pairing, resuming, the column of a report."""

import shlex
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from typer.testing import CliRunner

from lossforge.benchmark import RunFolder, RunSpec, execute, make_grid, narrow, one_run
from lossforge.benchmark import run as runs
from lossforge.benchmark.records import read_record, read_records
from lossforge.benchmark.run import prepare_networks
from lossforge.cli import main
from lossforge.errors import SpecError
from lossforge.report.results import Results
from lossforge.training import Method, Objective, Step, make_method, methods
from lossforge.tuning import tune

QUICK = {"epochs": 3, "batch_size": 256, "model_options": {"hidden": [16]}}
GRID = {
    "name": "methods",
    "data": "digits",
    "model": "mlp",
    "noise": ["clean", "symmetric:0.4"],
    "losses": ["CE", "BEF"],
    "methods": ["plain", "swap(factor=1)"],
    "seeds": [0],
    "training": {"epochs": 1},
}


@dataclass(frozen=True, kw_only=True)
class Swap(Method):
    """Each of two networks weights the samples of the other, and both remember."""

    name: ClassVar[str] = "swap"
    networks: ClassVar[int] = 2
    factor: float

    def step(self, epoch, batch):
        seen = epoch.memory.setdefault("seen", torch.zeros(len(epoch.samples)))
        seen[batch.rows] += torch.rand(len(batch.rows), generator=epoch.generator)
        first, second = (network(batch.inputs) for network in epoch.networks)
        one, two = (epoch.loss(logits, batch.target) for logits in (first, second))
        weights = self.factor * (seen[batch.rows] + two.detach())
        return Step(
            first, [Objective(weights * one, batch.kept), Objective(two * weights, batch.kept)]
        )


@pytest.fixture(autouse=True)
def _swap(monkeypatch):
    torch.set_default_dtype(torch.float32)  # as outside the tests; conftest sets it back
    monkeypatch.setitem(methods.METHODS, "swap", Swap)
    monkeypatch.setenv("LOSSFORGE_CHECKPOINT_SECONDS", "0")


def swapped(**changes):
    return one_run(
        "digits", "symmetric:0.4", "BEF", method="swap(factor=1)", changes={**QUICK, **changes}
    )


def test_plain_runs_are_written_and_hashed_as_before_there_were_methods():
    plain = one_run("digits", "symmetric:0.4", "BEF", changes=QUICK).spec
    assert "method" not in plain.model_dump()
    assert plain.method == "plain"
    spec = swapped().spec
    assert spec.model_dump()["method"] == "swap(factor=1.0)"
    assert spec.id != plain.id
    assert RunSpec(**spec.model_dump()) == spec
    assert spec.model_copy(update={"method": "plain"}).id == plain.id


def test_the_command_names_the_method(monkeypatch):
    seen = []
    monkeypatch.setattr(runs, "execute", lambda store, run, **_: seen.append(run.spec) or "busy")
    spec = swapped().spec
    CliRunner().invoke(main.app, shlex.split(spec.command())[1:])
    assert seen[0].model_copy(update={"loss": spec.loss}) == spec


def test_grids_cross_losses_with_methods():
    grid = make_grid(GRID)
    specs = grid.runs()
    assert len({spec.id for spec in specs}) == 8
    assert {spec.method for spec in specs} == {"plain", "swap(factor=1.0)"}
    small = narrow(grid, methods=["swap(factor=2)"], losses=["CE"])
    assert {spec.method for spec in small.runs()} == {"swap(factor=2.0)"}
    assert small.parts[0].protocol == grid.parts[0].protocol


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["plain", "plain()"], "methods must be one or more, each once"),
        ([], "methods must be one or more"),
        (["swap"], "swap must have the option factor"),
        (["swapp(factor=1)"], "did you mean swap"),
    ],
)
def test_wrong_methods_of_a_grid_are_refused(texts, complaint):
    with pytest.raises(SpecError, match=complaint):
        make_grid({**GRID, "methods": texts}).runs()


def test_runs_are_paired_across_methods():
    run = swapped()
    dataset = runs.prepare_data(run.spec)
    plain = run.spec.model_copy(update={"method": "plain"})
    assert torch.equal(dataset.train.given, runs.prepare_data(plain).train.given)
    first, second = prepare_networks(run.spec, dataset, run.method)
    (alone,) = prepare_networks(plain, dataset, make_method("plain"))
    for one, other, peer in zip(
        first.parameters(), alone.parameters(), second.parameters(), strict=True
    ):
        assert torch.equal(one, other)
        assert one.dim() < 2 or not torch.equal(one, peer)


class StoppedError(Exception):
    """Ends a run in the middle."""


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path, epoch):
    spec = swapped().spec

    def stop(state):
        if state.epoch == epoch:
            raise StoppedError

    assert execute(tmp_path / "whole", spec) == "done"
    with pytest.raises(StoppedError):
        execute(tmp_path / "stopped", spec, on_epoch=stop)
    assert execute(tmp_path / "stopped", spec) == "done"
    whole, stopped = (
        (tmp_path / place / spec.id / "record.json").read_bytes() for place in ("whole", "stopped")
    )
    assert whole == stopped
    assert read_record(tmp_path / "whole" / spec.id).spec["method"] == "swap(factor=1.0)"


def test_a_checkpoint_of_another_method_is_not_continued(tmp_path):
    spec = swapped().spec
    plain = spec.model_copy(update={"method": "plain"})
    kept = []
    execute(tmp_path / "plain", plain, on_epoch=lambda state: kept.append(state.to_bytes()))
    folder = RunFolder(tmp_path / "swap", spec)
    folder.open()
    folder.save_checkpoint(2, kept[1])
    with pytest.warns(UserWarning, match="ignored: it does not fit the model"):
        execute(tmp_path / "swap", spec)
    execute(tmp_path / "again", spec)
    a, b = (
        (tmp_path / place / spec.id / "record.json").read_bytes() for place in ("swap", "again")
    )
    assert a == b


def test_reports_have_a_column_for_each_method(tmp_path):
    for run in make_grid({**GRID, "noise": ["clean"]}).runs():
        execute(tmp_path, run)
    results = Results(read_records(tmp_path))
    assert {column.label for column in results.columns} == {
        "clean",
        "clean, method swap(factor=1.0)",
    }


def test_a_method_of_one_process_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(Swap, "distributed", False)
    monkeypatch.setattr("lossforge.training.distributed.world", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"swap\(factor=1.0\) must run in one process, got 2"):
        execute(tmp_path, swapped().spec)


@pytest.mark.slow
def test_a_search_trains_by_the_method(tmp_path):
    pytest.importorskip("optuna")
    options = {"trials": 1, "final_seeds": 1, "settings": QUICK}
    found = tune("digits", "clean", "GCE", method="swap(factor=1)", store=tmp_path, **options)
    plain = tune("digits", "clean", "GCE", store=tmp_path, **options)
    assert found.study != plain.study
    assert found.score != plain.score
    for record in read_records(tmp_path / found.study):
        assert record.spec["method"] == "swap(factor=1.0)"

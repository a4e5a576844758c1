"""Ids never change: every archived run still has the id it was recorded under."""

from pathlib import Path

import pytest

from lossforge import parse
from lossforge.benchmark import RunSpec, one_run, presets
from lossforge.benchmark.records import read_records
from lossforge.benchmark.spec import HASHED, HASHED_TRAINING
from lossforge.noise import NoiseSpec
from lossforge.training import Settings

ARCHIVES = sorted((Path(__file__).parents[2] / "results").glob("*.jsonl.gz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_archived_runs_keep_their_ids(archive):
    records = read_records(archive)
    assert records
    for record in records:
        assert RunSpec(**record.spec).id == record.id
    for text in {record.spec["expression"] for record in records}:
        assert str(parse(text)) == text
    for text in {record.spec["noise"] for record in records}:
        assert str(NoiseSpec.parse(text)) == text


def test_every_grid_of_results_has_an_archive():
    grids = {name for name in presets() if name.startswith("results/")}
    assert {f"results/{path.name.partition('.')[0]}" for path in ARCHIVES} == grids


def test_the_hash_of_the_first_version():
    run = one_run("digits", "symmetric:0.6", "BEF", changes={"epochs": 2}).spec
    assert run.id == "293fb19e93a21fb8"
    assert set(HASHED) <= set(RunSpec.model_fields)


class Later(RunSpec):
    """A spec of a later version, with one more field."""

    warm_up: int = 0


def test_a_new_field_at_its_default_is_not_hashed():
    run = one_run("digits", "clean", "CE").spec
    assert Later(**run.model_dump()).id == run.id
    assert Later(**run.model_dump(), warm_up=1).id != run.id


def test_a_new_training_setting_at_its_default_is_not_hashed(monkeypatch):
    run = one_run("digits", "clean", "CE").spec
    assert set(run.training) == set(HASHED_TRAINING)
    monkeypatch.setattr(Settings, "warm_up", 0, raising=False)  # a setting of a later version
    later = [
        run.model_copy(update={"training": {**run.training, "warm_up": value}}) for value in (0, 1)
    ]
    assert [spec.id == run.id for spec in later] == [True, False]


def test_fused_steps_make_another_run():
    usual, plain, fused = (
        one_run("digits", "clean", "CE", changes=changes).spec
        for changes in ({}, {"fused": False}, {"fused": True})
    )
    assert usual == plain
    assert fused.id != usual.id


def test_spellings_of_a_noise_are_one_run():
    ids = {one_run("digits", text, "CE").spec.id for text in ("symmetric:0.4", "Symmetric:0.40")}
    assert len(ids) == 1

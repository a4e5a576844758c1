"""Runs of the results are repeated as they were done: kernel, store, and which of them."""

import json
import os

import pytest
from made_page import results
from made_records import archive, metrics, write

from lossforge.benchmark import read_grid
from lossforge.benchmark.records import Record

SWITCH = "LOSSFORGE_KERNEL"
KERNEL = "C, x86-64-v4, 12.2.0"


@pytest.fixture
def started(monkeypatch):
    """Collect the calls of `run_all`: store, ids of runs, switch of the kernel."""
    calls = []

    def run_all(executor, store, runs, *, workers, on_progress, on_wait):
        assert (executor, workers) == ("local", 2)
        ids = [run.spec.id for run in runs]
        calls.append((store, ids, os.environ[SWITCH]))
        on_progress(dict.fromkeys(ids, "finished"))

    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(results, "run_all", run_all)
    return calls


def made(spec, kernel):
    numbers = metrics(90.0, 90.0, top5=True, tests=("test",))
    return Record(spec.id, spec.model_dump(), numbers, 10, 0.4, "", about={"kernel": kernel})


def commit(folder, name, kernels):
    """Commit the first runs of a grid, made by these kernels; return the ids of all its runs."""
    specs = read_grid(f"results/{name}").runs()
    archive(folder, name, [made(*pair) for pair in zip(specs, kernels, strict=False)])
    return [spec.id for spec in specs]


def do(verb, folder, *words):
    options = ["--runs", str(folder / "runs"), "--results", str(folder)]
    return results.main([*options, verb, *words, "--workers", "2"])


def test_without_committed_runs_the_kernel_is_on(tmp_path, started):
    ids = [spec.id for spec in read_grid("results/flatness").runs()]
    assert do("run", tmp_path, "flatness") == 0
    store = tmp_path / "runs" / "flatness"
    assert started == [(store, ids, "on")]
    (grid,) = store.glob("grid-results-flatness-*.json")
    assert json.loads(grid.read_text())["runs"] == ids


@pytest.mark.parametrize("shell", [None, "on", "off"])
def test_committed_runs_are_repeated_with_or_without_kernel_as_they_were(
    tmp_path, started, capsys, monkeypatch, shell
):
    if shell is not None:
        monkeypatch.setenv(SWITCH, shell)
    ids = commit(tmp_path, "flatness", [KERNEL, "composed (LOSSFORGE_KERNEL=off)", None])
    assert do("run", tmp_path, "flatness") == 0
    store = tmp_path / "runs" / "flatness"
    assert started == [(store, [ids[0], *ids[3:]], "on"), (store, ids[1:3], "off")]
    assert os.environ.get(SWITCH) == shell
    rest = len(ids) - 2
    assert capsys.readouterr().err.splitlines() == [
        f"results/flatness, kernel on: {rest} of {rest} runs",
        "results/flatness, kernel off: 2 of 2 runs",
    ]


def test_a_sample_has_all_seeds_of_its_settings(tmp_path, started):
    specs = read_grid("results/flatness").runs()
    commit(tmp_path, "flatness", [KERNEL] * len(specs))
    assert do("run", tmp_path, "flatness", "--sample", "7") == 0
    ((store, found, _),) = started
    assert store == tmp_path / "runs" / "flatness-sample"
    cells = {}
    for spec in specs:
        cells.setdefault((spec.data, spec.loss, spec.noise), []).append(spec.id)
    chosen = [cell for cell in cells.values() if set(cell) & set(found)]
    # three whole settings, by the smallest hash of each and not by their place in the grid
    assert sorted(found) == sorted(run for cell in chosen for run in cell)
    assert sorted(map(min, chosen)) == sorted(map(min, cells.values()))[:3]


def test_a_sample_is_of_committed_runs_alone(tmp_path, started, capsys):
    ids = commit(tmp_path, "flatness", [KERNEL] * 2)
    assert do("run", tmp_path, "flatness", "--sample", "50") == 0
    assert [found for _, found, _ in started] == [ids[:2]]
    for verb in ("run", "check"):
        capsys.readouterr()
        assert do(verb, tmp_path, "ablation", "--sample", "5") == 0
        assert "ablation: nothing is committed" in capsys.readouterr().err
    assert len(started) == 1


def test_a_sample_is_compared_with_its_own_runs_alone(tmp_path, capsys):
    specs = read_grid("results/flatness").runs()
    commit(tmp_path, "flatness", [KERNEL] * len(specs))
    assert do("check", tmp_path, "flatness", "--sample", "7") == 1
    assert "`results.py run flatness --sample 7` makes them" in capsys.readouterr().out
    write(tmp_path / "runs" / "flatness-sample", [made(spec, KERNEL) for spec in specs])
    assert do("check", tmp_path, "flatness", "--sample", "7") == 0
    told = capsys.readouterr()
    assert told.out == "flatness: as committed (9 runs; equal bits)\n"
    assert told.err == ""


def test_runs_that_are_not_committed_are_counted_and_not_compared(tmp_path, capsys):
    specs = read_grid("results/flatness").runs()
    commit(tmp_path, "flatness", [KERNEL] * 5)
    write(tmp_path / "runs" / "flatness", [made(spec, KERNEL) for spec in specs])
    assert do("check", tmp_path, "flatness") == 0
    told = capsys.readouterr()
    assert told.out == "flatness: as committed (5 runs; equal bits)\n"
    assert told.err == f"flatness: {len(specs) - 5} more runs are not committed\n"


def test_both_parts_of_a_grid_are_run_before_a_failure_is_told(tmp_path, monkeypatch, capsys):
    commit(tmp_path, "flatness", [KERNEL, None])

    def run_all(*_, **__):
        raise RuntimeError(f"1 run failed, {os.environ[SWITCH]}")

    monkeypatch.setattr(results, "run_all", run_all)
    assert do("run", tmp_path, "flatness") == 1
    assert capsys.readouterr().err == "error: 1 run failed, on\n1 run failed, off\n"


def test_missing_data_are_named_before_anything_runs(tmp_path, started, monkeypatch, capsys):
    monkeypatch.setenv("LOSSFORGE_DATA", str(tmp_path))
    assert do("run", tmp_path, "flatness", "clinc150") == 2
    assert "is missing; `lossforge data doctor clinc150`" in capsys.readouterr().err
    assert not started


def test_an_unknown_grid_is_named(capsys):
    with pytest.raises(SystemExit) as stopped:
        results.main(["check", "nothing"])
    assert stopped.value.code == 2
    assert "unknown grid 'nothing', known: ablation, banking77" in capsys.readouterr().err


def test_a_sample_of_nothing_is_refused(capsys):
    with pytest.raises(SystemExit):
        results.main(["check", "digits", "--sample", "0"])
    assert "--sample must be 1 or more, got 0" in capsys.readouterr().err

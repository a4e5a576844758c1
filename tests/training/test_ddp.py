"""Two real processes train as one does."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import ddp_worker
import pytest
import torch
from training_problems import assert_identical

from lossforge.training import State

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no distributed package"
)


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """The results of two processes, trained once for all tests."""
    folder = tmp_path_factory.mktemp("ddp")
    torch.multiprocessing.spawn(ddp_worker.work, (2, str(folder)), nprocs=2)
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(2)]


def assert_same_run(actual: State, expected: State) -> None:
    for name, value in expected.model.items():
        torch.testing.assert_close(actual.model[name], value, rtol=0, atol=1e-6)
    for one, other in zip(actual.metrics, expected.metrics, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)
        for key in other.keys() - {"loss"}:
            assert one[key] == other[key], key


@pytest.mark.slow
@pytest.mark.parametrize("name", ddp_worker.CASES)
def test_parameters_and_metrics_are_those_of_one_process(processes, name):
    alone, _ = ddp_worker.CASES[name].train()
    start = ddp_worker.network().state_dict()["3.weight"]
    assert (alone.model["3.weight"] - start).abs().max() > 1e-4  # something was learnt
    assert_same_run(processes[0][name], alone)
    assert_identical(processes[1][name], processes[0][name])


@pytest.mark.slow
def test_a_run_continues_to_the_bit_when_only_rank_0_knows_the_state(processes):
    for extras in (process["extras"] for process in processes):
        assert_identical(extras["resumed"], extras["whole"])


@pytest.mark.slow
def test_only_rank_0_is_called_back(processes):
    assert [process["extras"]["callbacks"] for process in processes] == [(3, 2), (0, 0)]


@pytest.mark.slow
def test_all_processes_agree_with_batch_norm_and_augmentation(processes):
    first, second = (process["extras"]["normed"] for process in processes)
    assert first.metrics == second.metrics
    assert_identical(second, first)


@pytest.mark.slow
def test_all_processes_stop_when_training_diverges(processes):
    for process in processes:
        assert process["extras"]["diverged"].startswith("training diverged in epoch 1")


@pytest.mark.slow
def test_a_method_for_one_process_is_refused_by_all(processes):
    for process in processes:
        assert process["extras"]["refused"].endswith("must run in one process, got 2")


@pytest.mark.slow
def test_torchrun_starts_it(tmp_path):
    here = Path(ddp_worker.__file__)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *(str(here), str(tmp_path)),
    ]
    paths = [str(here.parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    alone, _ = ddp_worker.CASES["BEF, weights"].train()
    for rank in range(2):
        assert_same_run(State.from_bytes((tmp_path / f"{rank}.state").read_bytes()), alone)

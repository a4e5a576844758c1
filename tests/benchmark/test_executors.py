"""However the runs of a grid are started, the records are the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_grid import impossible_run, long_runs, longer, owners, records, tiny_runs

from lossforge.benchmark import RunFolder
from lossforge.benchmark.executors import EXECUTORS, Options, commands, local, run_all
from lossforge.benchmark.executors.options import GridStatus


def enter(store: Path, runs) -> None:
    for run in runs:
        RunFolder(store, run).open()


def wait_for(condition, seconds: float = 60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


@pytest.mark.slow
def test_local_workers_give_the_same_records_though_one_is_killed(undisturbed, tmp_path):
    runs, killed, seen = tiny_runs(), [], []

    def kill_one(statuses):
        seen.append(statuses)
        if not killed and owners(tmp_path):
            killed.append(owners(tmp_path).pop())
            os.kill(killed[0], signal.SIGKILL)

    slow = long_runs()[0]
    run_all("local", tmp_path, [slow, *runs], workers=2, gpus=(), on_progress=kill_one)
    found = records(tmp_path)
    assert len(killed) == 1
    assert found.pop(slow.id)
    assert found == undisturbed
    assert set(seen[-1].values()) == {"finished"}
    assert set(seen[0]) == {slow.id, *undisturbed}


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_leaves_quietly_and_can_be_followed(tmp_path):
    run = longer(tiny_runs()[0], 4000)
    enter(tmp_path, [run])
    folder = tmp_path / run.id

    def newest() -> str:
        return max((path.name for path in folder.glob("checkpoint-*")), default="")

    for signum in (signal.SIGTERM, signal.SIGINT):
        before = newest()
        worker = subprocess.Popen(
            [sys.executable, "-m", "lossforge.benchmark.worker", str(tmp_path), run.id],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        wait_for(lambda before=before: newest() > before)
        worker.send_signal(signum)
        said, _ = worker.communicate(timeout=20)
        assert (said, worker.returncode) == (b"", 128 + signal.SIGTERM)
        assert not list(folder.glob("claim.*"))
        assert not list(folder.glob(".*"))


@pytest.mark.slow
def test_failures_are_told_after_all_others_are_done(undisturbed, tmp_path):
    good = tiny_runs()[0]
    missing = impossible_run()
    with pytest.raises(RuntimeError, match="1 of 2 runs failed") as failure:
        run_all("local", tmp_path, [missing, good], workers=1, gpus=())
    assert f"{missing.id} (nothing, clean, CE, seed 0): " in str(failure.value)
    assert "nothing" in str(failure.value).rpartition("): ")[2]
    assert records(tmp_path) == {good.id: undisturbed[good.id]}


@pytest.mark.slow
def test_ctrl_c_stops_the_workers_and_says_how_to_go_on(tmp_path):
    run = longer(tiny_runs()[0], 4000)

    def interrupt(statuses):
        if "running" in statuses.values():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="the same command continues"):
        run_all("local", tmp_path, [run], workers=1, gpus=(), on_progress=interrupt)
    assert not owners(tmp_path)


@pytest.mark.slow
def test_workers_do_not_outlive_the_one_who_started_them(tmp_path):
    run = longer(tiny_runs()[0], 4000)
    enter(tmp_path, [run])
    code = (
        "import sys; from pathlib import Path; from lossforge.benchmark import read_spec\n"
        "from lossforge.benchmark.executors import run_all; store = Path(sys.argv[1])\n"
        "run_all('local', store, [read_spec(store, sys.argv[2])], workers=1, gpus=())"
    )
    starter = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), run.id])
    (worker,) = wait_for(lambda: owners(tmp_path))
    starter.kill()
    starter.wait()
    wait_for(lambda: not owners(tmp_path))
    wait_for(lambda: not Path(f"/proc/{worker}").exists() or is_zombie(worker))


def is_zombie(pid: int) -> bool:
    """Dead, in a container where nobody cares for orphans."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_workers_that_die_in_a_row_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "POLL", 0.01)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="5 workers died in a row without progress"):
        run_all("local", tmp_path, tiny_runs()[:1], workers=2, gpus=())


def test_a_finished_grid_starts_nothing(tmp_path, monkeypatch, capsys):
    run = tiny_runs()[0]
    enter(tmp_path, [run])
    RunFolder(tmp_path, run).finish({"id": run.id}, {})
    monkeypatch.setattr(sys, "executable", "/bin/false")
    for name in ("local", "print", "slurm"):
        run_all(name, tmp_path, [run])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "threads", "gpus"),
    [
        (Options(workers=3, gpus=()), 1, [None] * 3),
        (Options(gpus=("0", "2")), 4, ["0", "2"]),
        (Options(gpus=("0", "1"), runs_per_gpu=2), 1, ["0", "1", "0", "1"]),
        (Options(gpus=("0", "1"), workers=3), 1, ["0", "1", "0"]),
        (Options(gpus=()), 10**6, [None]),
    ],
)
def test_gpus_and_processors_are_divided(options, threads, gpus):
    assert local.worker_gpus(options, threads) == gpus


def test_a_worker_gets_its_gpu_its_threads_and_the_data(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(local, "Worker", lambda *args: started.append(args))
    run = tiny_runs()[0].model_copy(update={"threads": 2})
    options = Options(gpus=("GPU-7",), data_dir=tmp_path)
    store = tmp_path / "store"
    local.make_pool(store, GridStatus(store, [run], options), options).fill(lambda: True)
    ((command, task, environment, _),) = started
    assert environment == {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "GPU-7"}
    assert command[-4:] == ["--data-dir", str(tmp_path), "--device", "cuda"]
    assert task.splitlines() == [run.id]


def test_bad_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown executor .*known: local, print, ray, slurm"):
        run_all("cloud", tmp_path, [])
    with pytest.raises(ValueError, match="workers must be an integer of 1 or more, got 0"):
        run_all("local", tmp_path, [], workers=0)
    with pytest.raises(TypeError, match="colour"):
        run_all("local", tmp_path, [], colour="blue")
    assert set(EXECUTORS) == {"local", "print", "ray", "slurm"}


def test_print_writes_a_line_for_each_unfinished_run(tmp_path, capsys):
    runs, store = tiny_runs()[:3], tmp_path / "my store"
    enter(store, runs)
    RunFolder(store, runs[1]).finish({"id": runs[1].id}, {})
    run_all("print", store, runs, data_dir=tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        f"lossforge run '{store}' {run.id} --data-dir {tmp_path}" for run in (runs[0], runs[2])
    ]


@pytest.mark.slow
def test_the_printed_lines_can_be_run(undisturbed, tmp_path):
    run = tiny_runs()[0]
    lines = commands(tmp_path / "my store", [run], Options())
    script = 'lossforge() { "$PYTHON" -m lossforge "$@"; }\n' + "\n".join(lines)
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["sh", "-e"], input=script.encode(), env=environment, check=True)
    assert records(tmp_path / "my store") == {run.id: undisturbed[run.id]}


@pytest.mark.slow
def test_slurm_jobs_give_the_same_records_and_tell_what_failed(undisturbed, tmp_path):
    pytest.importorskip("submitit")
    runs, parameters = [*tiny_runs(), impossible_run()], {"name": "tiny"}
    with pytest.raises(RuntimeError, match=r"1 of 13 .*\n.*unknown.* \(see .*logs.*\.err\)"):
        run_all("slurm", tmp_path, runs, workers=2, gpus=(), cluster="local", parameters=parameters)
    assert records(tmp_path) == undisturbed
    assert len(list((tmp_path / "logs").glob("*_log.out"))) == 2

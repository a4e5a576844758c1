"""However the runs of a grid are started, the records are the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_grid import impossible_run, long_runs, longer, owners, records, result_of, tiny_runs

from lossforge.benchmark import Run, RunFolder, one_run
from lossforge.benchmark.executors import (
    EXECUTORS,
    Options,
    commands,
    local,
    options,
    ray_tasks,
    run_all,
)
from lossforge.benchmark.executors.options import GridStatus
from lossforge.benchmark.worker import FAILURE, read_failure, report_failure


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


UNSAFE = {
    # the handler runs inside the start of the thread that renews the claim
    "the start of a thread": """
import threading
start = threading.Thread.start
def start_and_stop(thread):
    start(thread)
    send()
threading.Thread.start = start_and_stop
""",
    # what an import makes of an exception
    "a lazy import": """
from lossforge.benchmark import run
load = run.prepare_data
def import_and_load(*args, **options):
    try:
        send()
    except BaseException as error:
        raise ImportError("partially initialized module") from error
    return load(*args, **options)
run.prepare_data = import_and_load
""",
    "a destructor": """
from lossforge.benchmark import run
load = run.prepare_data
class Last:
    def __del__(self):
        send()
def drop_and_load(*args, **options):
    Last()
    return load(*args, **options)
run.prepare_data = drop_and_load
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("place", UNSAFE)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_at_an_unsafe_place_is_neither_lost_nor_a_failure(
    place, signum, undisturbed, tmp_path
):
    run = tiny_runs()[0]
    enter(tmp_path, [run])
    script = (
        "import os, sys\nfrom lossforge.benchmark.worker import main\n"
        f"def send():\n    os.kill(os.getpid(), {int(signum)})\n{UNSAFE[place]}\nmain()"
    )
    words = [sys.executable, "-c", script, str(tmp_path), run.id]
    stopped = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (143, "", "")
    assert {path.name for path in (tmp_path / run.id).iterdir()} <= {"spec.json"}


def test_waiting_for_other_workers_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "POLL", 0.01)
    run, told = tiny_runs()[0], []
    folder = RunFolder(tmp_path, run)
    folder.open()
    claim = folder.path / "claim.1"
    claim.write_text("elsewhere pid:[1] 17")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    seen = []

    def finish(statuses):
        seen.append(statuses)
        if len(seen) == 10:
            folder.finish(result_of(run), {})

    run_all("local", tmp_path, [run], on_progress=finish, on_wait=told.append)
    assert told == [[run.id]]


def test_no_worker_is_started_for_runs_that_are_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "POLL", 0.01)
    monkeypatch.setattr(options, "REST", 10**6)  # statuses are as old as they can be
    runs, started = tiny_runs()[:2], []

    class Done:
        has_ended, has_died = True, False

        def __init__(self, *_):
            started.append(self)
            for run in runs:
                RunFolder(tmp_path, run).finish(result_of(run), {})

        def close(self, *_):
            pass

    monkeypatch.setattr(local, "Worker", Done)
    run_all("local", tmp_path, runs, workers=1, gpus=())
    assert len(started) == 1


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
    RunFolder(tmp_path, run).finish(result_of(run), {})
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


def test_a_failure_is_read_from_its_own_line_alone(capfd):
    message = report_failure("0123456789abcdef", ValueError("bad\n  luck"))
    *_, line = capfd.readouterr().out.splitlines(keepends=True)
    assert message == "ValueError: bad luck"
    assert read_failure(line) == ("0123456789abcdef", message)
    for other in (
        "failed to allocate memory",
        "failed again",
        f"{FAILURE}",
        f"{FAILURE} 0123456789abcdef",
        f"note: {line}",
        "",
    ):
        assert read_failure(other + "\n") is None


def test_lines_that_look_like_failures_do_not_end_a_grid(tmp_path, monkeypatch):
    run, lines = tiny_runs()[0], []
    monkeypatch.setattr(local, "Worker", lambda *args: lines.append(args[-1]))
    status = GridStatus(tmp_path, [run], Options(gpus=()))
    local.make_pool(tmp_path, status, Options(workers=1, gpus=())).fill(lambda: True)
    (on_line,) = lines
    for line in ("failed to allocate memory\n", "failed again\n", f"{FAILURE} 0123 no such run\n"):
        on_line(line)
    status.raise_failures()
    on_line(f"{FAILURE} {run.id} ValueError: bad luck\n")
    with pytest.raises(RuntimeError, match=r"1 of 1 runs failed:\n.*: ValueError: bad luck"):
        status.raise_failures()


def matrix_run(folder: Path) -> Run:
    """A run whose transition matrix is in a file of a folder."""
    rows = [[0.7 if i == j else 0.3 / 9 for j in range(10)] for i in range(10)]
    path = folder / "elsewhere" / "T.csv"
    path.parent.mkdir()
    path.write_text("\n".join(",".join(map(repr, row)) for row in rows))
    return one_run("digits", str(path), "CE")


def test_a_grid_keeps_the_matrix_of_its_runs(tmp_path, capsys):
    run, store = matrix_run(tmp_path), tmp_path / "store"
    run_all("print", store, [run.spec])
    kept = store / run.spec.id / "noise.csv"
    assert not kept.exists()
    run_all("print", store, [run, tiny_runs()[0]])
    before = kept.read_bytes()
    assert RunFolder(store, run.spec).read_noise() == run.noise
    run_all("print", store, [run, run.spec])
    assert kept.read_bytes() == before


def test_a_folder_of_data_may_be_text_and_relative(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = Options(data_dir="data", gpus=())
    assert options.data_dir == tmp_path / "data"
    assert Options().data_dir is None
    run_all("print", tmp_path, tiny_runs()[:1], data_dir="data")
    assert capsys.readouterr().out.endswith(f" --data-dir {tmp_path / 'data'}\n")
    started = []
    monkeypatch.setattr(local, "Worker", lambda command, *args: started.append(command))
    status = GridStatus(tmp_path, tiny_runs()[:1], options)
    local.make_pool(tmp_path, status, options).fill(lambda: True)
    assert started[0][-2:] == ["--data-dir", str(tmp_path / "data")]


@pytest.mark.parametrize(
    ("gpus", "device"), [(None, "cuda"), (("0",), "cuda"), ((), "cpu"), ([], "cpu")]
)
def test_ray_tasks_use_gpus_unless_there_shall_be_none(gpus, device, tmp_path):
    class Ray:
        def cluster_resources(self):
            return {"CPU": 2.0, "GPU": 1.0}

        def remote(self, **options):
            return lambda task: task

    options = Options(gpus=gpus)
    status = GridStatus(tmp_path, tiny_runs()[:1], options)
    assert ray_tasks._Tasks(Ray(), tmp_path, status, options)._device == device


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
    RunFolder(store, runs[1]).finish(result_of(runs[1]), {})
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

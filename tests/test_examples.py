"""The scripts that no module imports, run as a user runs them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import lossforge

pytest.importorskip("matplotlib")
pytest.importorskip("PIL")
pytest.importorskip("sklearn")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
TRAINABILITY = ROOT / "examples" / "trainability.py"
TRANSITIONS = ROOT / "examples" / "transitions.py"
LOADING = ROOT / "benchmarks" / "loading.py"
SAMPLES = 50_000


@pytest.fixture
def environment(tmp_path):
    """This very package, one thread, and no data but what a test makes."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(lossforge.__file__).parents[1]),
        "LOSSFORGE_DATA": str(tmp_path / "none"),
        "MPLCONFIGDIR": str(tmp_path / "matplotlib"),
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
    }


def run(environment, *command):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def labels(tmp_path):
    """The label files of CIFAR-10N and of the frozen noise, a known part of them wrong."""
    true = np.arange(SAMPLES) % 10
    position = np.arange(SAMPLES) // 10 % 100  # runs through 0..99 in every class
    shifted = (true + 1) % 10
    table = {"clean_label": true, "worse_label": np.where(position < 40, shifted, true)}
    torch.save(table, tmp_path / "CIFAR-10_human.pt")
    frozen = np.where(position < 60, shifted, true).tolist()
    (tmp_path / "cifar10_dependent_0.6.json").write_text(json.dumps(frozen))
    return tmp_path


def test_transitions_prints_four_rates_and_draws(labels, environment):
    picture = labels / "picture.png"
    done = run(environment, TRANSITIONS, "--data-dir", labels, "--out", picture)
    assert done.returncode == 0, done.stderr
    rates = dict(re.findall(r"^(.+?) +([\d.]+) % of labels are wrong$", done.stdout, re.MULTILINE))
    rates = {name: float(rate) for name, rate in rates.items()}
    # half of the ten classes are confused in the asymmetric noise; the drawn rates vary by 0.2
    assert rates == {
        "symmetric 0.8": pytest.approx(80, abs=1),
        "asymmetric 0.4": pytest.approx(20, abs=1),
        "instance-dependent 0.6": 60,
        "CIFAR-10N worst": 40,
    }
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {picture}" in done.stdout


@pytest.mark.parametrize("fault", ["no folder", "one file missing", "broken file"])
def test_transitions_without_data_says_so_in_a_line(labels, environment, fault):
    folder = labels / "none" if fault == "no folder" else labels
    file = labels / "cifar10_dependent_0.6.json"
    if fault == "one file missing":
        file.unlink()
    elif fault == "broken file":
        file.write_text("[1, 2")
    picture = labels / "picture.png"
    done = run(environment, TRANSITIONS, "--data-dir", folder, "--out", picture)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert ("CIFAR-10_human.pt" if fault == "no folder" else file.name) in line
    assert not picture.exists()


@pytest.mark.parametrize(("fewest", "code"), [(0, 0), (1e9, 1)], ids=["met", "missed"])
def test_the_loading_benchmark_fails_if_a_promise_is_missed(environment, fewest, code):
    script = (
        f"import sys; sys.path.insert(0, {str(LOADING.parent)!r}); import loading; "
        f"loading.IMAGES, loading.FEWEST_TIMES = 128, {fewest}; sys.exit(loading.main())"
    )
    done = run(environment, "-c", script, "--repeats", 1)
    assert done.returncode == code, done.stderr
    verdicts = [line.split()[0] for line in done.stdout.splitlines()[-2:]]
    assert verdicts == ["MISSED" if code else "met"] * 2


@pytest.mark.skipif(
    sys.platform == "win32" or signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    reason="Ctrl-C is another thing here, or programs in the background are deaf to it",
)
def test_the_loading_benchmark_stops_at_ctrl_c(environment):
    command = [sys.executable, str(LOADING), "--repeats", "2"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert first == "crop, mirror: warming up\n"
    assert process.returncode == 130
    assert rest.splitlines()[-1] == "stopped"
    assert "Traceback" not in rest


def test_descent_without_a_network(environment):
    done = run(environment, TRAINABILITY, "--starts", "6", "--steps", "300")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    proved = [line for line in lines if "monotone PROVED" in line]
    assert len(proved) == 2
    assert all(line.count("100 %") == 2 for line in proved)

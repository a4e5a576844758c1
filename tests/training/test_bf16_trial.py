"""bf16 is tried in a child process before it is used on a CPU."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from training_problems import plain_samples

from lossforge.training import Settings, precision, train

CPU = torch.device("cpu")
REMEDY = 'set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, or precision = "float32"'


@pytest.fixture(autouse=True)
def forget():
    """Trials of this process, before and after a test."""
    precision.bf16_failure.cache_clear()
    yield
    precision.bf16_failure.cache_clear()


def run(**settings):
    samples = plain_samples(torch.eye(4), torch.arange(4))
    model = nn.Linear(4, 4)
    return train(model, nn.CrossEntropyLoss(), samples, {}, Settings(epochs=1, **settings), seed=0)


@pytest.mark.parametrize(
    ("trial", "failure"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "was killed by SIGILL"),
        (
            "raise RuntimeError('could not create a primitive')",
            "failed with 'RuntimeError: could not create a primitive'",
        ),
        ("raise SystemExit(3)", "exited with status 3"),
    ],
)
def test_a_cpu_that_cannot_run_bf16_is_reported_in_one_line(monkeypatch, trial, failure):
    monkeypatch.setattr(precision, "TRIAL", trial)
    with pytest.raises(RuntimeError) as caught:
        run(precision="bf16")
    assert str(caught.value) == f"bf16 does not work on this CPU: a trial {failure}; {REMEDY}"


def test_a_trial_that_hangs_is_stopped(monkeypatch):
    monkeypatch.setattr(precision, "TRIAL", "import time; time.sleep(60)")
    monkeypatch.setattr(precision, "TIMEOUT", 0.5)
    with pytest.raises(RuntimeError, match=r"did not finish within 0\.5 seconds"):
        precision.check_precision("bf16", CPU)


@pytest.mark.slow
def test_the_command_line_reports_it(tmp_path):
    """A process whose trial is killed by SIGILL, as on such a CPU; workers are processes, too."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if any('bfloat16' in word for word in sys.orig_argv):\n"
        "    os.kill(os.getpid(), signal.SIGILL)\n"
    )
    (tmp_path / "grid.toml").write_text(
        'name = "grid"\ntitle = "bf16"\nnoise = ["clean"]\nlosses = ["CE"]\nseeds = [0]\n'
        '[[part]]\ndata = "digits"\nmodel = "mlp"\n'
        '[part.training]\nepochs = 1\nprecision = "bf16"\n'
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "lossforge", "bench", "grid.toml", "--store", "runs"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert "a trial was killed by SIGILL" in said
    assert "Traceback" not in said


def test_it_is_tried_once_for_each_process(monkeypatch):
    calls = []
    real = subprocess.run
    monkeypatch.setattr(precision, "TRIAL", "")
    monkeypatch.setattr(
        subprocess, "run", lambda *args, **kwargs: calls.append(args) or real(*args, **kwargs)
    )
    run(precision="float32")
    assert not calls
    for _ in range(2):
        run(precision="bf16")
    assert len(calls) == 1


def test_nothing_is_tried_on_another_device_or_without_an_epoch_to_train(monkeypatch):
    monkeypatch.setattr(precision, "TRIAL", "raise SystemExit(1)")
    precision.check_precision("bf16", torch.device("cuda"))
    done = run(precision="float32")
    model = nn.Linear(4, 4)
    samples = plain_samples(torch.eye(4), torch.arange(4))
    settings = Settings(epochs=1, precision="bf16")
    train(model, nn.CrossEntropyLoss(), samples, {}, settings, seed=0, state=done)


def test_the_trial_passes_here():
    assert precision.bf16_failure() is None

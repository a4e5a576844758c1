"""What conftest.py at the root settles about the machine holds here and in child processes."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
CAP = "ONEDNN_MAX_CPU_ISA"
# a plugin that imports torch early, and a test that prints what its processes see
EARLY = "import torch\n"
SEEN = f"""
import os, subprocess, sys
import torch

def test_seen():
    child = [sys.executable, "-c", "import os; print(os.environ[{CAP!r}])"]
    print("cap", os.environ[{CAP!r}], subprocess.check_output(child, text=True))
"""


def test_the_instruction_set_was_capped_before_torch_was_imported(pytestconfig):
    (settled,) = (
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(ROOT / "conftest.py")
    )
    assert not settled.TORCH_CAME_FIRST
    assert os.environ[CAP]


def run(folder, *words, **variables):
    """Run the test that prints, below a copy of this project's conftest."""
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]")
    (folder / "early.py").write_text(EARLY)
    (folder / "test_seen.py").write_text(SEEN)
    environment = {key: value for key, value in os.environ.items() if key != CAP} | variables
    environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("cap "))


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["-n1"], ["-pearly"]], ids=["alone", "xdist", "torch first"])
def test_children_and_workers_are_capped(tmp_path, words):
    assert run(tmp_path, *words) == ["AVX512_CORE_BF16"] * 2


@pytest.mark.slow
def test_a_cap_of_the_user_is_kept(tmp_path):
    assert run(tmp_path, **{CAP: "AVX2"}) == ["AVX2"] * 2


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available(),
    reason="oneDNN's instruction sets of x86-64 are not used here",
)
def test_the_cap_holds_also_where_torch_is_imported_first():
    """As under a plugin that imports torch: oneDNN reads the variable when it is first used."""
    code = (
        "import os, torch; os.environ.update(ONEDNN_MAX_CPU_ISA='SSE41', ONEDNN_VERBOSE='1'); "
        "torch.nn.Conv2d(16, 16, 3)(torch.randn(8, 16, 32, 32))"
    )
    environment = {key: value for key, value in os.environ.items() if key != CAP}
    command = [sys.executable, "-c", code]
    shown = subprocess.check_output(command, env=environment, text=True)
    (isa,) = (line for line in shown.splitlines() if ",isa:" in line)
    assert "SSE4.1" in isa

"""Skips are printed with their reasons, and one that is not expected fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
SOURCE = """
import pytest

def test_that_passes(): pass

@pytest.mark.skip(reason="no such program")
def test_program(): pass

@pytest.mark.xfail(reason="known")
def test_that_fails_as_expected(): assert False
"""
MODULE = "import pytest; pytest.skip('no such package', allow_module_level=True)"
FULL = "test_one.py::test_program | no such *\ntest_two.py | no such package  # a comment"
PARALLEL = ("-n2", "-pxdist")


def run(folder, listed, *options):
    (folder / "test_one.py").write_text(SOURCE)
    (folder / "test_two.py").write_text(MODULE)
    (folder / "list.txt").write_text(listed)
    (folder / "pytest.ini").write_text("[pytest]")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "plugins.skips",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--skips-list", str(folder / "list.txt"), *options]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("options", [(), PARALLEL], ids=["one process", "parallel"])
def test_expected_skips_are_printed(tmp_path, options):
    done = run(tmp_path, FULL, *options)
    assert done.returncode == 0, done.stdout
    assert "test_one.py::test_program: no such program" in done.stdout
    assert "test_two.py: no such package" in done.stdout
    assert "EXPECTED" not in done.stdout


@pytest.mark.parametrize("options", [(), PARALLEL], ids=["one process", "parallel"])
@pytest.mark.parametrize("listed", FULL.splitlines(), ids=["module", "test"])
def test_an_unexpected_skip_fails_the_run(tmp_path, listed, options):
    done = run(tmp_path, listed, *options)
    assert done.returncode == 1
    assert "1 passed, 1 skipped" in done.stdout or "1 passed, 2 skipped" in done.stdout
    assert done.stdout.count("NOT EXPECTED: ") == 1
    assert "1 skips were not expected: see tests/skips.txt" in done.stdout


def test_another_reason_is_not_expected(tmp_path):
    done = run(tmp_path, FULL.replace("no such *", "no compiler"))
    assert done.returncode == 1
    assert "NOT EXPECTED: test_one.py::test_program: no such program" in done.stdout


def test_no_skip_may_be_demanded(tmp_path):
    done = run(tmp_path, FULL, "--no-skips")
    assert done.returncode == 1
    assert "2 skips were not expected: none is allowed here" in done.stdout


def test_a_list_that_cannot_be_read_is_refused(tmp_path):
    done = run(tmp_path, "test_one.py::test_program no such program")
    assert done.returncode != 0
    assert "a line must be TEST | REASON" in done.stdout + done.stderr

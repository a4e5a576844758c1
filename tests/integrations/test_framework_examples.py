"""The examples of the frameworks, run as a user runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks import FRAMEWORKS, need, torchvision_without_operators

FOLDER = Path(__file__).parents[2] / "examples"
# torchvision may need help to be imported, which is no business of an example
RUN = """
import runpy, sys
from frameworks import torchvision_without_operators
torchvision_without_operators()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def accuracies(name, *options, example="digits", script=None):
    """The percentages that an example prints, in its order."""
    torchvision_without_operators()
    need(*FRAMEWORKS[name])
    script = FOLDER / (script or f"{name}_{example}.py")
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(script), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return [float(found) for found in re.findall(r"([\d.]+) % of the", done.stdout)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name != "boosting"])
def test_the_robust_loss_is_better_on_wrong_labels(name, record_property):
    cross_entropy, robust, *searched = accuracies(name)
    text = f"{name}: {cross_entropy} % with CE, {robust} % with BEF"
    record_property("summary", text)
    assert robust > cross_entropy + 3, text
    assert all(found > cross_entropy for found in searched)


@pytest.mark.slow
def test_the_robust_objective_is_better_boosting(record_property):
    found = accuracies("boosting")
    record_property("summary", f"boosting: {found}")
    assert found[1] > found[0] + 2
    assert found[3] > found[2] + 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huggingface"])
def test_a_language_model_learns_the_right_answers_from_partly_wrong_ones(name, record_property):
    cross_entropy, robust = accuracies(name, "--seeds", "1", example="answers")
    text = f"language model: {cross_entropy} % with CE, {robust} % with BEF"
    record_property("summary", text)
    assert robust > cross_entropy + 10, text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["skorch"])
def test_a_pipeline_learns_from_raw_text_with_wrong_labels(name, record_property):
    cross_entropy, robust = accuracies(name, script="sklearn_text.py")
    text = f"pipeline of raw text: {cross_entropy} % with CE, {robust} % with BEF"
    record_property("summary", text)
    assert robust > cross_entropy + 3, text

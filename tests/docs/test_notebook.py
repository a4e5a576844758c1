"""The notebook is what its code gives, and small."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT, unlike

sys.path.insert(0, str(ROOT / "tools"))
import notebook as tool

PATHS = sorted(tool.NOTEBOOKS.glob("*.ipynb"))
LARGEST = 500_000  # bytes


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def printed(notebook):
    """What each cell of code prints."""
    return [
        "".join(line for output in cell["outputs"] for line in output.get("text", ()))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def pictures(notebook):
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output for output in outputs if "image/png" in output.get("data", {})]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_it_is_small_and_executed_in_order(path):
    assert path.stat().st_size < LARGEST
    found = read(path)
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert (found["nbformat"], len({cell["id"] for cell in found["cells"]})) == (
        4,
        len(found["cells"]),
    )
    assert pictures(found)
    assert not any(line.startswith(("%", "!")) for cell in code for line in cell["source"])


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_its_outputs_are_what_its_code_gives(path, tmp_path):
    again = shutil.copy(path, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, tool.__file__, again], check=True, env=environment, timeout=900)
    shown, real = read(path), read(Path(again))
    for before, after in zip(printed(shown), printed(real), strict=True):
        assert unlike(before, after) is None
    assert len(pictures(real)) == len(pictures(shown))


def test_outputs_are_those_of_the_cells():
    cells = [
        {"cell_type": "markdown", "source": ["x = 5"]},
        {"cell_type": "code", "source": ["x = 2\n", "print(x)"], "outputs": ["old"]},
        {"cell_type": "code", "source": ["x += 1"]},
        {"cell_type": "code", "source": ["print('a')\n", "print(x)"]},
    ]
    found = tool.execute({"cells": cells, "nbformat": 4})
    assert [cell.get("execution_count") for cell in found["cells"]] == [None, 1, 2, 3]
    assert printed(found) == ["2\n", "", "a\n3\n"]
    assert found["cells"][1]["outputs"][0]["output_type"] == "stream"

"""Run the notebooks of the documentation, and keep what they print and draw.

    python tools/notebook.py [FILE ...]        # docs/tutorials/*.ipynb by default

Cells are plain Python, without the commands of IPython, so that neither Jupyter nor a kernel is
needed: a cell's printed text and its pyplot figures become its outputs, as Jupyter shows them.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "tutorials"


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the outputs of its code, run in the working folder.

    Args:
        notebook: Its JSON, of format 4; what it has of outputs is replaced.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _run("".join(cell["source"]), names)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _run(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102
    text = printed.getvalue().splitlines(keepends=True)
    outputs = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    return [*outputs, *_figures()]


def _figures() -> list[dict[str, Any]]:
    """Take the figures that pyplot holds, as Jupyter does at the end of a cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    found = []
    for number in pyplot.get_fignums():
        stream = io.BytesIO()
        pyplot.figure(number).savefig(stream, format="png", dpi=80, metadata={"Software": None})
        picture = base64.b64encode(stream.getvalue()).decode()
        data = {"image/png": picture, "text/plain": ["<Figure>"]}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return found


def main() -> None:
    """Run the notebooks, each in an empty folder, and write them with their outputs."""
    os.environ["MPLBACKEND"] = "agg"
    for path in [Path(word).resolve() for word in sys.argv[1:]] or sorted(
        NOTEBOOKS.glob("*.ipynb")
    ):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            done = execute(notebook)
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

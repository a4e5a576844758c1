"""A copy of the project's pages and scripts, where tests run the targets of the Makefile."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("benchmarks", "docs", "results")  # what targets write to, or take as their place
OUTPUT = ("build", "dist", "runs")


def copy_project(folder: Path) -> Path:
    """What the targets read and write; the environment is the one that runs the tests."""
    project = folder / "project"
    project.mkdir()
    for name in COPIED:
        shutil.copytree(
            ROOT / name,
            project / name,
            ignore=shutil.ignore_patterns("_plots", "_extra", "__pycache__"),
        )
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, project)  # a link in a page leads on from where the page really is
        elif path.name not in (*COPIED, *OUTPUT) and not path.name.startswith("."):
            (project / path.name).symlink_to(path)
    (project / ".venv").symlink_to(sys.prefix)
    return project


def make(project: Path, target: str, arguments: str = "") -> subprocess.CompletedProcess[str]:
    """Run a target of the copy's Makefile, installing nothing, without data and with one thread.

    A make that another make started tells which folder it enters and leaves: not here.
    """
    installed = [word for stamp in ("bench", "dev") for word in ("-o", f".venv/.{stamp}")]
    return subprocess.run(
        ["make", "--no-print-directory", *installed, target, f"ARGS={arguments}"],
        cwd=project,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "LOSSFORGE_DATA": str(project / "none"),
            "MPLBACKEND": "agg",
            "OMP_NUM_THREADS": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )

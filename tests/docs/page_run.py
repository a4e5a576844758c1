"""What the script of a page calls beside the page's own code."""

import shlex
import subprocess
import sys
from pathlib import Path

MARK = "\x00"


def mark(line: int) -> None:
    """Say that what follows is printed by the block at this line."""
    print(f"{MARK}{line}{MARK}", end="", flush=True)  # noqa: T201


def shell(command: str) -> None:
    """Run a `lossforge` command in a process of its own, and fail with it."""
    program, *words = shlex.split(command, comments=True)
    if program != "lossforge":
        raise ValueError(f"only lossforge commands can be run, got {command}")
    subprocess.run([sys.executable, "-m", "lossforge", *words], check=True)


def write(name: str, text: str) -> None:
    """Save a file that the page shows."""
    Path(name).write_text(text)

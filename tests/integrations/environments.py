"""Make the environments of environments.toml and run their tests, none of which may be skipped.

    python tests/integrations/environments.py [NAME ...] [--fast]

An environment is made again when its packages, pyproject.toml or constraints.txt change. Two
run at a time; the output of an environment follows when its tests end.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SHARED = ["test_framework_examples.py", "test_integrations_page.py"]
TOOLS = ["pytest", "hypothesis"]
AT_ONCE = 2
installing = Lock()  # installers would write the same files of the checkout


def make(name: str, packages: list[str]) -> Path:
    """The Python of an environment, which is made unless it is there already."""
    folder = ROOT / ".venvs" / name
    python, stamp = folder / "bin" / "python", folder / "stamp"
    parts = [*packages, *TOOLS]
    parts += [(ROOT / file).read_text() for file in ("pyproject.toml", "constraints.txt")]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    editable = [part for package in packages if package[0] == "." for part in ("-e", package)]
    others = [package for package in packages if package[0] != "."]
    command = [*install, "-c", "constraints.txt", *editable, *others, *TOOLS]
    # the kernel of the checkout is there already; building it again would take it from others
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "LOSSFORGE_PURE": "1"})
    stamp.write_text(digest)
    return python


def run_tests(python: Path, settings: dict[str, Any], *, fast: bool) -> tuple[bool, str]:
    """Run the tests of an environment; return whether they pass, and what they print."""
    files = [str(HERE / file) for file in settings["tests"]]
    chosen = " or ".join(settings["examples"])
    runs = [files, *([str(HERE / file), "-k", chosen] for file in SHARED if chosen)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings.get("variables", {})}
    options = ["--no-skips", *(["-m", "not slow"] if fast else [])]
    passed, printed = True, ""
    for run in runs:
        command = [python, "-m", "pytest", *options, *run]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        passed &= done.returncode in ((0, 5) if fast else (0,))  # 5: all of them are slow
        printed += done.stdout
    return passed, printed


def make_and_test(name: str, settings: dict[str, Any], *, fast: bool) -> bool:
    """Make an environment and run its tests; return whether they pass."""
    with installing:
        say(f"{name}: installing")
        python = make(name, settings["install"])
    say(f"{name}: testing")
    began = time.monotonic()
    passed, printed = run_tests(python, settings, fast=fast)
    result = "passed" if passed else "FAILED"
    say(f"{printed}{name}: {result} in {time.monotonic() - began:.0f} s")
    return passed


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    with (HERE / "environments.toml").open("rb") as file:
        environments = tomllib.load(file)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(environments))
    parser.add_argument("--fast", action="store_true", help="leave out tests marked slow")
    options = parser.parse_args()
    unknown = set(options.names) - set(environments)
    if unknown:
        parser.error(f"NAME must be one of {', '.join(environments)}, got {', '.join(unknown)}")
    names = options.names or list(environments)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        work = partial(make_and_test, fast=options.fast)
        passed = list(pool.map(work, names, [environments[name] for name in names]))
    failed = [name for name, good in zip(names, passed, strict=True) if not good]
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

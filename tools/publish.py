"""Publish a release: check the tree, build, check the distributions, upload them, tag the commit.

    python tools/publish.py --dry-run      everything but the upload
    python tools/publish.py --built        upload what that has built, to PyPI
    python tools/publish.py --built --yes --repository-url http://127.0.0.1:8080

twine asks for the token, or reads it from its own configuration. The compiled wheel is published
for the oldest Linux that it runs on (`auditwheel repair`), since PyPI refuses a plain linux one;
for other machines there are the pure wheel and the sdist.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(words: Sequence[str] | None = None) -> None:
    """Do one step after the other; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="upload nothing, tag nothing")
    parser.add_argument("--repository-url", default="", help="another index than PyPI")
    parser.add_argument("--built", action="store_true", help="take what is in build/dist")
    parser.add_argument("--yes", action="store_true", help="do not ask before the upload")
    chosen = parser.parse_args(words)
    version = read_version(ROOT)
    refusals = find_refusals(ROOT, version)
    if refusals:
        raise SystemExit("".join(f"refused: {one}\n" for one in refusals).rstrip())
    if not chosen.built:
        run(sys.executable, ROOT / "tests" / "clean_install.py")
    elif is_stale(ROOT):
        raise SystemExit("refused: build/dist is older than the last commit: leave out --built")
    files = distributions(ROOT / "build" / "dist", version)
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    where = chosen.repository_url or "PyPI"
    print(f"lossforge {version} for {where}:", *(file.name for file in files), sep="\n  ")
    if chosen.dry_run:
        return
    if not chosen.yes and input(f"type {version} to upload: ") != version:
        raise SystemExit("nothing was uploaded")
    index = ["--repository-url", chosen.repository_url] if chosen.repository_url else []
    run(sys.executable, "-m", "twine", "upload", *index, *files)
    if not chosen.repository_url:
        run("git", "-C", ROOT, "tag", "-a", f"v{version}", "-m", f"lossforge {version}")
        print(f"next: git push origin v{version}")


def read_version(root: Path) -> str:
    """Read the version that the package states, without importing it."""
    text = (root / "src" / "lossforge" / "__init__.py").read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise SystemExit("src/lossforge/__init__.py states no __version__")


def find_refusals(root: Path, version: str) -> list[str]:
    """Say what stands against a release of this tree, a line each."""
    found = []
    changed = output("git", "-C", root, "status", "--porcelain").splitlines()
    if changed:
        found.append(f"the tree has {len(changed)} changes: commit or remove them")
    changes = section(root / "CHANGELOG.md", version)
    if changes is None:
        found.append(f"CHANGELOG.md has no section [{version}]")
    elif not changes.strip():
        found.append(f"the section [{version}] of CHANGELOG.md is empty")
    if section(root / "CHANGELOG.md", "Unreleased"):
        found.append(f"CHANGELOG.md has unreleased changes: move them into [{version}]")
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff states another version than {version}")
    tagged = output("git", "-C", root, "tag", "--list", f"v{version}").strip()
    if tagged:
        found.append(f"{tagged} is released already: raise __version__")
    return found


def section(path: Path, name: str) -> str | None:
    """Return the text under a heading of the changelog; None if there is no such heading."""
    pattern = rf"^## \[{re.escape(name)}\].*?\n(.*?)(?=^## |\Z)"
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return None if found is None else found[1].strip()


def is_stale(root: Path) -> bool:
    """Whether a distribution was built before the last commit."""
    committed = int(output("git", "-C", root, "log", "-1", "--format=%ct"))
    return any(path.stat().st_mtime < committed for path in (root / "build" / "dist").glob("*"))


def distributions(folder: Path, version: str) -> list[Path]:
    """Return the files to upload: plain linux wheels are replaced by what indexes accept."""
    strange = [path.name for path in folder.glob("*") if f"-{version}" not in path.name]
    if strange or not folder.is_dir():
        found = ", ".join(strange) or "nothing"
        raise SystemExit(f"refused: build/dist must hold version {version}, got {found}")
    for wheel in sorted(folder.glob("*-linux_*.whl")):
        if shutil.which("auditwheel") is None:
            print(f"left out: {wheel.name}, as auditwheel is not installed")
        else:
            run("auditwheel", "repair", "--wheel-dir", folder, wheel)
        wheel.unlink()
    return sorted(folder.iterdir())


def run(*words: object) -> None:
    """Run a command; one that fails ends the script with its status."""
    done = subprocess.run(list(map(str, words)))
    if done.returncode:
        raise SystemExit(done.returncode)


def output(*words: object) -> str:
    """Return what a command prints."""
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

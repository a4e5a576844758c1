"""The layers of the package: who may import whom, and what the core may need."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lossforge

ROOT = Path(lossforge.__file__).parent


def layers(page: str) -> dict[str, set[str]]:
    """Who may import whom, from the table of layers in CONTRIBUTING.md."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    found = {package: {word for word in may.split(", ") if word != "-"} for package, may in rows}
    for place, (package, may) in enumerate(found.items()):
        above = [*found][:place]
        assert {word.partition(".")[0] for word in may} <= {*above, "anything"}, package
    # every package may import the version; the command line may import anything
    for package, may in found.items():
        may |= {*found, "__version__"} if "anything" in may else {"__version__"}
        may -= {package, "anything"}
    return found | {"__main__": {"cli", "interrupts"}}


MAY_IMPORT = layers((Path(__file__).parents[1] / "CONTRIBUTING.md").read_text())
MATHEMATICAL = ("errors", "numerics", "base", "loss", "constructions", "catalog", "theory")
MAX_LINES = 450


def package_of(path: Path) -> str:
    """The top-level package or module that a source file belongs to; "" for the root."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported_modules(tree: ast.AST, path: Path) -> set[str]:
    """Absolute names of everything a file imports, relative imports resolved."""
    here = ("lossforge", *path.relative_to(ROOT).with_suffix("").parts)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            anchor = list(here[: -node.level]) if node.level else []
            module = [*anchor, *(node.module or "").split(".")] if node.module else anchor
            found |= {".".join([*module, alias.name]) for alias in node.names}
    return found


def violations(source: str, path: Path) -> list[str]:
    """Every import of `source` that its place in the tree forbids."""
    package = package_of(path)
    found = []
    for name in imported_modules(ast.parse(source), path):
        top, *rest = name.split(".")
        if top == "lossforge" and package:
            target = rest[0] if rest else ""
            allowed = {target, ".".join(rest[:2])} & MAY_IMPORT[package]
            if target != package and not allowed:
                found.append(f"{package} imports {name}")
        elif package in MATHEMATICAL and top not in {
            "lossforge",
            "torch",
            *sys.stdlib_module_names,
        }:
            found.append(f"{package} imports {name}, which is not torch")
    return found


SOURCES = sorted(ROOT.rglob("*.py"))


def test_every_package_has_its_row_in_contributing():
    assert {package_of(path) for path in SOURCES} - {""} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    assert violations(path.read_text(), path) == []


@pytest.mark.parametrize(
    ("planted", "place"),
    [
        ("from ..catalog import BEF", "base/paper.py"),
        ("from lossforge.constructions.target import TargetLoss", "loss/loss.py"),
        ("import lossforge.loss", "numerics/rows.py"),
        ("def late():\n    from .. import base", "loss/scores.py"),
        ("import numpy as np", "numerics/chebyshev.py"),
        ("import typer", "catalog/describe.py"),
        ("from ..cli import main", "catalog/describe.py"),
        ("from ..benchmark import RunSpec", "report/page.py"),
        ("from ..benchmark.store import RunFolder", "report/page.py"),
        ("import lossforge.benchmark", "report/page.py"),
    ],
)
def test_a_planted_violation_is_found(planted, place):
    assert violations(planted, ROOT / place)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_small_and_never_evaluate_text(path):
    source = path.read_text()
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if ast.unparse(node) != "exec('')"  # of no text, see `interrupts`
    }
    assert len(source.splitlines()) <= MAX_LINES
    assert not calls & {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize("loss", lossforge.catalog.CLASSES, ids=lambda loss: loss.__name__)
def test_catalogue_classes_add_no_behaviour(loss):
    methods = {name for name, member in vars(loss).items() if callable(member)}
    # a loss that fits no construction implements per_sample itself
    assert methods <= {"__init__"} or methods == {"__init__", "per_sample"}
    assert loss.__doc__


def test_importing_the_package_needs_torch_alone():
    script = (
        "import sys, torch; before = set(sys.modules); import lossforge; "
        "more = {'audit', 'benchmark', 'data', 'load', 'report', 'tuning'}; "
        "[getattr(lossforge, name) for name in lossforge.__all__ if name not in more]; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(new - {'lossforge', 'torch'} - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []


def test_names_are_imported_when_they_are_asked_for():
    script = "import sys, lossforge.__main__; print('torch' in sys.modules); lossforge.BEF"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["False"]


def test_a_misspelt_name_is_answered_with_the_right_one():
    with pytest.raises(AttributeError, match="no attribute 'BEFF'; did you mean BEF"):
        lossforge.BEFF  # noqa: B018
    assert not hasattr(lossforge, "__wrapped__")


def test_every_public_name_exists_and_every_catalogue_loss_is_public():
    assert all(hasattr(lossforge, name) for name in lossforge.__all__)
    assert {loss.__name__ for loss in lossforge.catalog.CLASSES} <= set(lossforge.__all__)
    assert set(lossforge.__all__) <= set(dir(lossforge))
    starred: dict[str, object] = {}
    for package in (lossforge, lossforge.base, lossforge.catalog):
        assert len(set(package.__all__)) == len(package.__all__)
        starred |= {name: getattr(package, name) for name in package.__all__}
    assert starred["BEF"] is lossforge.BEF

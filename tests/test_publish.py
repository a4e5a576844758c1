"""What stands against a release is found before anything is built."""

import os
import shutil
import subprocess
import sys

import pytest
from project import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import publish

FILES = {
    "src/lossforge/__init__.py": '"""The package."""\n\n__version__ = "1.2.0"\n',
    "CHANGELOG.md": "# Changes\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n\n- New.\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *words):
    named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", folder, *named, *words], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


@needs_git
def test_a_clean_tree_with_a_section_is_released(tree):
    assert publish.read_version(tree) == "1.2.0"
    assert publish.find_refusals(tree, "1.2.0") == []


@needs_git
@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CHANGELOG.md", "## [1.2.0]", "## [1.1.0]", "CHANGELOG.md has no section [1.2.0]"),
        ("CHANGELOG.md", "- New.", "", "the section [1.2.0] of CHANGELOG.md is empty"),
        ("CHANGELOG.md", "sed]\n", "sed]\n\n- Later.\n", "CHANGELOG.md has unreleased changes"),
        ("CITATION.cff", "version: 1.2.0\n", "version: 1.1.0\n", "CITATION.cff states another"),
    ],
)
def test_what_does_not_fit_the_version_is_refused(tree, name, old, new, said):
    path = tree / name
    path.write_text(path.read_text().replace(old, new))
    git(tree, "commit", "-am", "changed")
    (refusal,) = publish.find_refusals(tree, "1.2.0")
    assert refusal.startswith(said)


@needs_git
@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_a_tree_with_changes_is_refused(tree, name):
    with (tree / name).open("a") as file:
        file.write("- More.\n")
    assert publish.find_refusals(tree, "1.2.0") == ["the tree has 1 changes: commit or remove them"]


@needs_git
def test_a_version_that_is_tagged_is_refused(tree):
    git(tree, "tag", "-a", "v1.2.0", "-m", "lossforge 1.2.0")
    (refusal,) = publish.find_refusals(tree, "1.2.0")
    assert refusal == "v1.2.0 is released already: raise __version__"


@needs_git
def test_distributions_from_before_the_last_commit_are_stale(tree):
    built = tree / "build" / "dist" / "a-1.tar.gz"
    built.parent.mkdir(parents=True)
    built.touch()
    assert not publish.is_stale(tree)
    os.utime(built, (0, 0))
    assert publish.is_stale(tree)


def test_plain_linux_wheels_are_left_out_without_auditwheel(tmp_path, monkeypatch, capsys):
    for name in ("a-1-cp311-abi3-linux_x86_64.whl", "a-1-py3-none-any.whl", "a-1.tar.gz"):
        (tmp_path / name).touch()
    monkeypatch.setattr("shutil.which", lambda name: None)
    kept = [path.name for path in publish.distributions(tmp_path, "1")]
    assert kept == ["a-1-py3-none-any.whl", "a-1.tar.gz"]
    assert "left out: a-1-cp311-abi3-linux_x86_64.whl" in capsys.readouterr().out


def test_distributions_of_another_version_are_refused(tmp_path):
    (tmp_path / "a-1.tar.gz").touch()
    with pytest.raises(SystemExit, match=r"must hold version 2, got a-1\.tar\.gz"):
        publish.distributions(tmp_path, "2")
    with pytest.raises(SystemExit, match="got nothing"):
        publish.distributions(tmp_path / "none", "2")


def test_the_citation_has_the_version_of_the_package():
    version = publish.read_version(ROOT)
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"  version = {{{version}}},\n" in (ROOT / "docs" / "index.md").read_text()
    assert publish.section(ROOT / "CHANGELOG.md", version)

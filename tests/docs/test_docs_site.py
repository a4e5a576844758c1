"""The site builds without a warning; its pictures and links are there."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from doc_pages import ROOT
from project import copy_project, make

from lossforge.catalog import names

DOCS = ROOT / "docs"


class Page(HTMLParser):
    """The ids and the local targets of a built page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.pictures: list[str] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        target = found.get("href") if tag in ("a", "link") else found.get("src")
        if target and not re.match(r"[a-z]+:", target):
            self.targets.append(target)
        if tag == "img":
            self.pictures.append(found["src"])


def broken(site: Path) -> list[str]:
    """Targets in a built site that are not there."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    found = []
    for file, page in pages.items():
        for target in page.targets:
            path, _, part = unquote(target).partition("#")
            there = (file.parent / path.partition("?")[0]).resolve() if path else file
            known = there.exists() and (not part or there not in pages or part in pages[there].ids)
            found += [] if known else [f"{file.name}: {target}"]
    return found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_site_builds_without_a_warning_and_lacks_nothing(tmp_path):
    project = copy_project(tmp_path)
    done = make(project, "docs")
    assert done.returncode == 0, done.stderr
    site = project / "build" / "docs"
    assert broken(site) == []
    (home,) = Page(site / "index.html").pictures
    assert "cross entropy" in (site / home).read_text()
    # all but GJS, which one prediction does not determine
    assert len(Page(site / "catalog.html").pictures) == len(names()) - 1


def test_what_a_built_page_lacks_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x"></a><a href="#y"></a><img src="no.svg"><a href="b.html#z"></a>'
    )
    (tmp_path / "b.html").write_text('<a id="z" href="a.html?v=1#x"></a>')
    assert broken(tmp_path) == ["a.html: #y", "a.html: no.svg"]


def test_the_picture_of_the_first_page_shows_the_committed_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import plots

    def texts(picture: bytes) -> list[str]:
        return re.findall(r"<text[^>]*>(.*?)</text>", picture.decode(), re.DOTALL)

    kept = plots.HOME.read_bytes()
    assert texts(kept) == texts(plots.svg(plots.draw_home)), "run `python docs/plots.py`"
    assert len(texts(kept)) > 30

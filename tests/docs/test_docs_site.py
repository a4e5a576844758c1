"""The site builds without a warning; its pictures and links are there."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from chromium import PROGRAM
from doc_pages import ROOT
from project import copy_project, make

from lossforge.catalog import names
from lossforge.plot import explorer

DOCS = ROOT / "docs"
PHONE = 390  # pixels


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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What `make docs` builds."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    project = copy_project(tmp_path_factory.mktemp("site"))
    done = make(project, "docs")
    assert done.returncode == 0, done.stderr
    return project / "build" / "docs"


@pytest.mark.slow
def test_the_site_lacks_nothing(site):
    assert broken(site) == []
    (home,) = Page(site / "index.html").pictures
    assert "cross entropy" in (site / home).read_text()
    assert len(Page(site / "catalog.html").pictures) == len(names())
    assert "explorer.html" in Page(site / "explore.html").targets
    assert (site / "explorer.html").read_text() == explorer()


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
def test_nothing_is_clipped_on_a_phone(site, browser):
    """No page is wider than the screen; a wide table or formula scrolls within its own frame."""
    wide = {}
    for page in sorted(site.rglob("*.html")):
        browser.open(page, PHONE)
        width = browser.run("document.documentElement.scrollWidth")
        if width > PHONE:
            wide[page.relative_to(site).as_posix()] = width
    assert wide == {}


def test_what_a_built_page_lacks_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x"></a><a href="#y"></a><img src="no.svg"><a href="b.html#z"></a>'
    )
    (tmp_path / "b.html").write_text('<a id="z" href="a.html?v=1#x"></a>')
    assert broken(tmp_path) == ["a.html: #y", "a.html: no.svg"]


@pytest.mark.parametrize("name", ["home.svg", "designer.svg", "memorising.svg"])
def test_committed_pictures_are_fresh(name, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    import pictures

    from lossforge import plot

    def texts(picture: bytes) -> list[str]:
        return re.findall(r"<text[^>]*>(.*?)</text>", picture.decode(), re.DOTALL)

    kept = (pictures.IMAGES / name).read_bytes()
    drawn = plot.save(pictures.PICTURES[name](), tmp_path / name).read_bytes()
    assert texts(kept) == texts(drawn), "run `python docs/pictures.py`"
    assert len(texts(kept)) >= 8

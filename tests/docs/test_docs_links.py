"""Links and pictures of the pages lead somewhere, also to a part of a page."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from doc_pages import ROOT, ids, links, name, pages


def broken(page: Path) -> list[str]:
    """The internal links of a page that lead nowhere."""
    found = []
    for line, link in links(page):
        target, _, part = unquote(link).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        if not file.exists() or (part and part not in ids(file.resolve())):
            found.append(f"line {line}: {link}")
    return found


@pytest.mark.parametrize("page", pages(), ids=map(name, pages()))
def test_internal_links_lead_somewhere(page):
    assert broken(page) == []


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A & B\n\n[a](#a--b) [b](#b) [c](none.md) ![d](none.svg) [e](https://none.org/x#y)\n"
        '\n<a id="own"></a><img src="gone.png">\n\n[f](page.md#own) [g](page.md#ow)\n'
    )
    lines = [line.split(": ")[1] for line in broken(page)]
    assert lines == ["#b", "none.md", "none.svg", "gone.png", "page.md#ow"]


def test_every_page_of_docs_is_on_the_site():
    docs = ROOT / "docs"
    listed = re.findall(r"^.* <([\w/-]+)>$", (docs / "index.md").read_text(), re.MULTILINE)
    listed += [f"api/{one}" for one in (docs / "api" / "index.md").read_text().split()]
    pages = [page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")]
    assert {*pages} - {*listed} == {"index"}

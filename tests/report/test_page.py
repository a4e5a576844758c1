"""The page holds everything, asks for nothing, and says what it is."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from record_fixtures import grid, write

from lossforge.report import make_report, write_report
from lossforge.report.finding import seeds_text

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Checker(HTMLParser):
    """Collects ids, addresses and text, and checks that elements close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.addresses, self.open, self.words = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self._look(attrs)

    def handle_startendtag(self, tag, attrs):
        self._look(attrs)

    def _look(self, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                self.addresses.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    fields = {"name": "digits", "title": "Four losses on <digits>"}
    store = write(folder / "store", grid(), **fields)
    path = write_report(make_report(store), folder / "out", "lossforge report runs")
    return path, path.read_text(encoding="utf-8")


def make_page(tmp_path, records, **fields):
    store = write(tmp_path / "store", records, **fields)
    path = write_report(make_report(store), tmp_path / "out", "lossforge report runs")
    return path.read_text(encoding="utf-8")


def test_it_is_well_formed_and_ids_are_unique(made):
    checked = Checker(made[1])
    assert len(checked.ids) == len(set(checked.ids))


def test_it_refers_to_nothing_outside(made):
    path, text = made
    checked = Checker(text)
    targets = {f"#{name}" for name in checked.ids}
    targets |= {str(file.relative_to(path.parent)) for file in path.parent.rglob("*.*")}
    for address in checked.addresses:
        assert address in targets or address.startswith("data:"), address
    assert not re.search(r"@import|url\((?![\"']?(#|data:))", text)
    assert not re.search(r"""\b(src|href)\s*=\s*["']?(https?:)?//""", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


def test_it_says_how_everything_was_made(made):
    words = "".join(Checker(made[1]).words)
    assert "lossforge report runs" in words
    assert "lossforge bench digits" in words
    for record in grid():
        # under the table of runs and under figures
        assert words.count(record.about["command"]) >= 2
        assert record.id in words
    for value in ("2.13.0", "3.11.9", "b56a772", "desk", "cpu"):
        assert value in words


def test_every_figure_has_a_caption_and_its_commands(made):
    sections = re.findall(r'<section id="\w+" class="?figures"?>.*?</section>', made[1], re.S)
    assert len(sections) == 7
    for section in sections:
        assert re.search(r"<h2>.+?</h2>\s*<p>.{20,}?</p>", section, re.S)
        assert '<svg role="img" aria-label="' in section
        assert "lossforge train --noise" in section


def test_it_opens_with_the_finding_and_the_ranks(made):
    path, text = made
    finding = make_report(path.parents[1] / "store").finding
    words = "".join(Checker(text).words)
    assert finding.sentence in words
    assert f"--seeds {seeds_text(finding.seeds)}" in words
    places = [
        text.index(part)
        for part in (finding.sentence, 'id="ranks"', 'id="results"', 'id="differences"')
    ]
    assert places == sorted(places)


def test_every_file_can_be_downloaded(made):
    path, text = made
    offered = {address for address in Checker(text).addresses if not address.startswith(("#", "d"))}
    files = {str(file.relative_to(path.parent)) for file in path.parent.rglob("*.*")}
    assert offered == files - {"index.html"}


def test_titles_are_escaped(made):
    assert "<h1>Four losses on &lt;digits&gt;</h1>" in made[1]


def test_all_files_are_written(made):
    folder = made[0].parent
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "figures",
        *(f"tables.{ending}" for ending in ("txt", "md", "tex", "csv")),
    }
    names = {path.name for path in (folder / "figures").iterdir()}
    expected = ("accuracy-clean.svg", "difference-ce-clean.png", "ranks.svg", "cost-digits.png")
    assert set(expected) <= names
    assert len(names) == 2 * len({name.rpartition(".")[0] for name in names})


@pytest.mark.parametrize(
    ("protocols", "said"),
    [
        (("paper", "paper"), None),
        (("reduced", "reduced"), "All 2 runs follow a reduced protocol"),
        (("paper", "reduced"), "1 of the 2 runs follow a reduced protocol"),
        (("own", "own"), "All 2 runs follow a protocol of their own"),
    ],
)
def test_a_footnote_says_when_the_protocol_is_not_the_papers(tmp_path, protocols, said):
    records = [
        *grid(("CE",), ("clean",), (0,), protocol=protocols[0]),
        *grid(("GCE",), ("clean",), (1,), protocol=protocols[1]),
    ]
    text = make_page(tmp_path, records)
    if said is None:
        assert 'id="protocol"' not in text
    else:
        assert said in text
        assert text.index('href="#protocol"') < text.index('id="results"') < text.index(said)


@pytest.mark.slow
def test_the_papers_numbers_stand_beside_where_the_grid_is_a_table_of_it(tmp_path):
    records = grid(("CE", "BEF"), ("symmetric:0.4",), (0, 1), data="cifar10", protocol="paper")
    text = make_page(tmp_path, records, name="paper/cifar10", table="cifar10")
    assert '<span class="aside">paper 58.07 ± 0.19</span>' in text
    assert "Not measured with lossforge" in text


def test_the_papers_numbers_are_not_guessed_from_commands(tmp_path):
    records = grid(("CE",), ("symmetric:0.4",), (0,), data="cifar10")
    records[0].about["command"] = "lossforge train --set 'weights=\"paper/cifar10\"'"
    assert make_report(write(tmp_path, records, name="mine")).paper is None


def test_features_of_runs_that_diverged_are_noted_instead_of_drawn(tmp_path):
    records = grid(("CE",), ("clean",), (0,))
    folder = write(tmp_path / "store", records) / records[0].id
    np.savez(folder / "features.npz", features=np.full((9, 2), np.nan), labels=np.arange(9))
    path = write_report(make_report(folder.parent), tmp_path / "out", "lossforge report runs")
    text = path.read_text(encoding="utf-8")
    Checker(text)
    (section,) = re.findall(r'<section id="tsne".*?</section>', text, re.S)
    assert "Not drawn: CE, clean, seed 0: features must be finite" in section
    assert "<svg" not in section
    assert "How it was made" not in section


@pytest.mark.slow
def test_every_panel_has_files_of_its_own(tmp_path):
    records = [
        *grid(("CE", "GCE", "BEF"), ("symmetric:0.4",), (0,)),
        *grid(("CE", "GCE", "BEF"), ("symmetric:0.4",), (0,), subset=500),
    ]
    text = make_page(tmp_path, records)
    files = list((tmp_path / "out" / "figures").glob("*.svg"))
    assert len(files) == text.count('<div class="panel">')


def test_runs_without_times_and_commands_are_counted_all_the_same(tmp_path):
    """Packed runs have neither."""
    records = grid(("CE", "GCE"), ("clean",), (0, 1))
    whole = make_page(tmp_path / "whole", records)
    bare = [replace(one, about={"versions": one.about["versions"]}) for one in records]
    text = make_page(tmp_path / "bare", bare)
    for page in (whole, text):
        assert "How it was made: 4 runs" in page
    assert "<dt>training</dt>" in whole
    assert "<dt>training</dt>" not in text


def test_the_smallest_store_has_a_page(tmp_path):
    records = grid(("CE",), ("clean",), (0,))
    text = make_page(tmp_path, records)
    assert "Noisy labels on digits" in text
    assert 'id="differences"' not in text


@pytest.mark.slow
def test_a_page_is_the_same_again(tmp_path):
    records = grid(("CE", "GCE"), ("symmetric:0.4",), (0,))
    pages = [make_page(tmp_path / name, records, name="g") for name in ("a", "b")]
    assert pages[0] == pages[1]


def test_it_says_how_many_runs_are_unfinished(tmp_path):
    records = grid(("CE",), ("clean",), (0,))
    text = make_page(tmp_path, records, name="g", runs=[records[0].id, "later", "later still"])
    assert "<dd>1 of 3</dd>" in text

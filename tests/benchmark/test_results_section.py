"""Sections of hand-written pages are made of the archives alone."""

import importlib

import pytest
from made_page import ROOT, results
from made_records import archive, made

section, choose, methods = map(
    importlib.import_module, ("results_section", "results_choose", "results_methods")
)

NOISES = ("clean", "symmetric:0.4", "asymmetric:0.1")
MEANS = {"CE": (90.0, 60.0, 80.0), "GCE": (88.0, 66.0, 81.5)}


def rows(folder):
    lines = choose.make_section(folder).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    return {name: rest for name, *rest in cells if name in ("loss", *MEANS)}


@pytest.fixture
def folder(tmp_path):
    records = [
        made(loss, noise, seed, mean + seed, data="cifar10")
        for seed in (0, 1)
        for loss, accuracies in MEANS.items()
        for noise, mean in zip(NOISES, accuracies, strict=True)
    ]
    archive(tmp_path, "cifar10", records)
    return tmp_path


def test_the_table_of_choices_has_means_and_distances_to_the_best(folder):
    found = rows(folder)
    head = ["clean", "symmetric 0.4", "behind the best, mean", "at most"]
    assert found["loss"] == head  # asymmetric 0.1 counts, but is not shown
    assert found["GCE"] == ["88.5", "**66.5**", "0.0", "0.0 (symmetric 0.4)"]
    assert found["CE"] == ["**90.5**", "60.5", "3.8", "6.0 (symmetric 0.4)"]
    assert list(found) == ["loss", "GCE", "CE"]  # the nearest first
    assert "over all 2 kinds of noise" in choose.make_section(folder)


@pytest.mark.parametrize("module", [choose, methods], ids=["choose", "methods"])
def test_without_an_archive_there_is_no_section(module, tmp_path):
    assert module.make_section(tmp_path) == ""


def test_only_the_section_of_a_page_is_replaced(tmp_path):
    page, (begin, end) = tmp_path / "page.md", section.marks("digits")
    page.write_text(f"before\n{begin}\nstale text\n{end}\nafter\n")
    assert section.replace_section(page, "digits", "new\n") == [page]
    assert page.read_text() == f"before\n{begin}\n\nnew\n\n{end}\nafter\n"
    assert section.replace_section(page, "digits", "") == []
    page.write_text("no marks")
    with pytest.raises(ValueError, match="must have the lines"):
        section.replace_section(page, "digits", "new\n")


def test_all_pages_are_written(tmp_path, monkeypatch):
    """Those of this project, with other text between the marks."""
    monkeypatch.setattr(results, "write_page", lambda folder, docs: [docs / "results.md"])
    for module in (choose, methods):
        begin, end = section.marks(module.GRID)
        (tmp_path / module.PAGE).write_text(f"{begin}\nstale\n{end}\n")
    written = results.write_all(ROOT / "results", tmp_path)
    assert {path.name for path in written} == {"results.md", "choose.md", "methods.md"}
    for module in (choose, methods):
        assert module.make_section(ROOT / "results") in (tmp_path / module.PAGE).read_text()


@pytest.mark.parametrize("module", [choose, methods], ids=["choose", "methods"])
def test_the_committed_section_is_that_of_the_committed_runs(module):
    page = (ROOT / "docs" / module.PAGE).read_text()
    begin, end = section.marks(module.GRID)
    found = page.partition(begin)[2].partition(end)[0]
    assert found == f"\n\n{module.make_section(ROOT / 'results')}\n"

"""docs/catalog.md and the references are complete and fresh."""

import inspect
from pathlib import Path

import pytest
import torch

import lossforge
from lossforge.catalog import ENTRIES, REFERENCES, describe
from lossforge.catalog.describe import render_markdown
from lossforge.catalog.references import CONSTRUCTION_REFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "catalog.md"


def test_the_page_is_fresh():
    fresh = PAGE.read_text(encoding="utf-8") == render_markdown()
    assert fresh, "docs/catalog.md is stale: run `make docs-catalog`"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_every_loss_is_on_the_page_with_every_field(entry):
    sections = [
        section
        for section in PAGE.read_text(encoding="utf-8").split("\n## ")
        if section.split("\n")[0].split(" (also ")[0] == entry.name
    ]
    assert len(sections) == 1
    for field in ("Formula", "Parameters", "Kind", "Python", "Reference", "Caveats"):
        assert f"- **{field}:** " in sections[0]
    assert entry.formula in sections[0]


def test_anchors_are_distinct():
    anchors = [line for line in render_markdown().splitlines() if line.startswith("<a id=")]
    assert len(set(anchors)) == len(anchors) == len(ENTRIES)


def test_every_reference_exists_and_is_used():
    used = {entry.reference for entry in ENTRIES.values()}
    assert used | set(CONSTRUCTION_REFERENCES.values()) == set(REFERENCES)
    assert all(hasattr(lossforge.constructions, name) for name in CONSTRUCTION_REFERENCES)


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=lambda reference: reference.key)
def test_bibtex_is_well_formed(reference):
    text = reference.bibtex
    assert text.isascii()
    assert text.count("{") == text.count("}")
    kinds = ("inproceedings", "article", "unpublished")
    assert text.startswith(tuple(f"@{kind}{{{reference.key}," for kind in kinds))
    assert reference.url == "" or reference.url.startswith("https://")
    names = next(line for line in text.splitlines() if line.startswith("  author"))
    assert names.count(" and ") == len(reference.authors) - 1
    assert all("," not in author for author in reference.authors)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_the_python_line_builds_the_loss(entry):
    line = describe.python(entry)
    if inspect.isclass(entry.make):
        assert line.startswith(f"lossforge.{entry.make.__name__}(")
        assert getattr(lossforge, entry.make.__name__) is entry.make
    else:
        assert line.startswith(f'lossforge.make("{entry.name}"')
    required = {"T": torch.eye(3)} if "T" in entry.parameters() else {}
    spelt_out = entry.parameters() | required
    made = lossforge.make(entry.name, **spelt_out)
    assert repr(made) == repr(lossforge.make(entry.name, **required))

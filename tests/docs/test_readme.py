"""The README is short, and its numbers are those of the committed runs."""

import re
from statistics import fmean, stdev

import pytest
from doc_pages import ROOT

from lossforge import names
from lossforge.benchmark.records import read_records

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()


def test_it_is_read_in_a_minute():
    assert len(LINES) <= 120
    assert max(map(len, LINES)) <= 120


@pytest.fixture(scope="module")
def accuracies():
    """Last-epoch accuracies on Banking77 by loss and noise."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in read_records(ROOT / "results" / "banking77.jsonl.gz"):
        found.setdefault((record.spec["loss"], record.spec["noise"]), []).append(record.last())
    return found


def test_its_table_is_that_of_the_runs(accuracies):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in LINES
        if line.startswith("|") and not line.startswith("|:")
    ]
    header, *losses = rows
    assert len(losses) == 5
    for loss, *cells in losses:
        for noise, cell in zip(header[1:], cells, strict=True):
            values = accuracies[loss.strip("`"), noise.replace(" ", ":")]
            assert cell == f"{fmean(values):.1f} ± {stdev(values):.1f}", (loss, noise)
            assert len(values) == 5


def test_it_counts_the_losses():
    (count,) = re.findall(r"(\d+) losses with their published settings", README)
    assert int(count) == len(names())

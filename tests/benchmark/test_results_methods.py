"""The section of docs/methods.md is made of the archive alone, and says first what is missing."""

import json
import statistics
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import results_methods as section  # noqa: E402

from lossforge.benchmark import read_grid  # noqa: E402
from lossforge.benchmark.archive import encode  # noqa: E402
from lossforge.benchmark.records import Grid, Record  # noqa: E402
from lossforge.training import make_method  # noqa: E402

PRESET = read_grid("results/methods")
ARCHIVE = ROOT / "results" / "methods.jsonl.gz"


def accuracy(spec):
    """CE 80, others 5 more under plain and 1 less under ELR; the seed adds to all.

    BEF has a point more under Co-teaching, and CE two more under ELR, with all other losses.
    """
    robust = 0 if spec.loss == "CE" else -1 if spec.method.startswith("elr") else 5
    more = spec.loss == "BEF" and spec.method.startswith("coteaching")
    return 80.0 + robust + more + 2 * spec.method.startswith("elr") + spec.seed


def record(spec):
    metrics = [
        {
            "epoch": 1,
            "loss": 1.0,
            "validation": 50.0,
            "tests": {"test": {"top1": accuracy(spec), "top5": None}},
            "noise_fit": None,
            "noise_recovered": None,
            "clean_fit": None,
        }
    ]
    return Record(spec.id, spec.model_dump(), metrics, 10, 0.25, "0" * 64)


@pytest.fixture
def folder(tmp_path):
    """Runs of digits under symmetric noise with the plain loop, Co-teaching and ELR."""
    planned = [spec for part in PRESET.parts for spec in part.runs()]
    chosen = [
        spec
        for spec in planned
        if (spec.data, spec.noise) == ("digits", "symmetric:0.6")
        and spec.method.partition("(")[0] in ("plain", "coteaching", "elr")
    ]
    grid = Grid(PRESET.name, PRESET.title, None, tuple(spec.id for spec in planned))
    (tmp_path / ARCHIVE.name).write_bytes(encode(grid, [record(spec) for spec in chosen]))
    return tmp_path


def test_missing_runs_are_named_before_anything_else(folder):
    first = section.make_section(folder).splitlines()[0]
    assert first.startswith("**Unfinished: 1275 of 1350 runs are missing, 375 of 450 on digits")
    assert "450 of 450 on clinc150" in first


def test_the_section_begins_with_the_best_of_losses_methods_and_both(folder):
    lines = section.make_section(folder).splitlines()
    row = next(line for line in lines if line.startswith("| digits, symmetric 0.6 |"))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells == ["82.0", "87.0 GCE", "84.0 elr", "**88.0 coteaching + BEF**"]


def test_differences_are_paired_by_seed(folder):
    lines = section.make_section(folder).splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| symmetric 0.6, ")]
    table = {(row[0].removeprefix("| symmetric 0.6, "), len(row)): row[1:] for row in rows}
    spread = statistics.stdev(range(5))
    assert table["elr", 6][0] == f"84.0 ± {spread:.1f} (5)"
    assert table["elr", 5][0] == "-1.0 [-1.0, -1.0]"
    assert table["plain", 5][0] == "+5.0 [+5.0, +5.0]"


def test_the_forget_rate_stands_beside_the_true_share(folder):
    text = section.make_section(folder)
    assert "digits, symmetric 0.6: 0.63, estimated (0.25)" in text
    assert "**On digits, a robust loss in place of cross entropy" in text
    assert "loop, is better in 4 of 8 comparisons and worse in 4. Such a method" in text
    assert "under a robust loss, is better in 1 of 8 comparisons and worse in 4.**" in text


def test_costs_are_relative_to_the_plain_loop(folder):
    rows = [
        {"data": "digits", "method": "plain", "seconds": 2.0, "bytes": 10**6},
        {"data": "digits", "method": "elr", "seconds": 3.0, "bytes": 1.5 * 10**6},
    ]
    (folder / section.COSTS).write_text(json.dumps({"rounds": 3, "rows": rows}))
    text = section.make_section(folder)
    assert "| elr | 1.50 | 1.50 MB |" in text
    assert "the plain loop takes 2.0 s on digits" in text


def test_the_grid_is_that_of_the_issue():
    """Six methods, five losses, three noises on three data sets, five seeds; rates are given."""
    names = ["plain", "coteaching", "elr", "mixup", "mixture", "forward"]
    cells = [(part.data, *part.noise) for part in PRESET.parts]
    noises = ["symmetric:0.6", "asymmetric:0.4", "instance:0.4"]
    assert cells == [(data, one) for data in ("digits", "clinc150", "banking77") for one in noises]
    for part in PRESET.parts:
        assert [make_method(text).name for text in part.methods] == names
        assert part.losses == ["CE", "GCE", "JAL-CE", "BEF", "BQF"]
        assert part.seeds == [0, 1, 2, 3, 4]
        if (part.data, *part.noise) not in section.AUDITED:
            assert make_method(part.methods[1]).forget_rate == 0.2


@pytest.mark.parametrize(("name", "shared"), [("digits", 3), ("clinc150", 1), ("banking77", 1)])
def test_runs_of_the_plain_loop_are_those_of_the_other_grids(name, shared):
    other = read_grid(f"results/{name}").parts[0]
    known = {spec.id for spec in other.runs()}
    parts = [part for part in PRESET.parts if part.data == name and part.noise[0] in other.noise]
    assert len(parts) == shared
    for part in parts:
        assert {spec.id for spec in part.runs() if spec.method == "plain"} <= known

"""The paper's result tables as data: whole, as printed, and consistent with each other."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

import lossforge

SOURCE = resources.files("lossforge") / "benchmark" / "paper_results.json"
RESULTS = json.loads(SOURCE.read_text(encoding="utf-8"))
TABLES: dict[str, Any] = RESULTS["tables"]

SIZES = {
    "cifar10": (17, 9),
    "cifar100": (17, 9),
    "idn-human": (15, 10),
    "tuned": (4, 8),
    "realworld": (11, 6),
}

# Read off the printed tables by eye: table, loss, column, mean, deviation.
SPOTS = [
    ("cifar10", "CE", "Clean", 90.44, 0.06),
    ("cifar10", "NCE+AGCE", "Symmetric 0.8", 45.27, 5.04),
    ("cifar10", "FLeps+MAE", "Asymmetric 0.1", 90.01, 0.19),
    ("cifar10", "BQF", "Asymmetric 0.4", 81.10, 0.14),
    ("cifar100", "GCE", "Clean", 64.58, 2.48),
    ("cifar100", "CE+LC", "Symmetric 0.6", 17.70, 0.08),
    ("cifar100", "CEeps+MAE", "Asymmetric 0.3", 59.25, 2.02),
    ("cifar100", "JAL-FL", "Asymmetric 0.2", 68.13, 0.51),
    ("cifar100", "BEF", "Symmetric 0.8", 32.81, 0.66),
    ("idn-human", "NCE", "CIFAR-100N Noisy", 22.78, 0.52),
    ("idn-human", "SCE", "CIFAR-10N Random 1", 85.82, 0.12),
    ("idn-human", "ANL-CE", "CIFAR-100 IDN 0.6", 47.56, 0.05),
    ("idn-human", "BEF", "CIFAR-10N Worst", 81.95, 0.46),
    ("tuned", "BEF+", "CIFAR-10 Asy. 0.4", 84.02, 0.15),
    ("tuned", "BQF+", "CIFAR-100 Noisy", 60.67, 0.14),
    ("realworld", "GCE", "Clothing1M Top-5", 98.54, None),
    ("realworld", "JAL-FL", "ILSVRC12 Top-1", 63.84, None),
    ("realworld", "BEF", "WebVision Top-1", 72.16, None),
    ("realworld", "FLeps+MAE", "WebVision Top-5", 88.36, None),
]

# Where the paper's bold entries are not its two best: none at all on clean labels, and all that
# share a number with the two best where tuning changed nothing.
OTHER_BOLD = {
    ("cifar10", "Clean"): set(),
    ("cifar100", "Clean"): set(),
    ("tuned", "CIFAR-10 Sym. 0.8"): {"BEF", "BEF+", "BQF", "BQF+"},
    ("tuned", "CIFAR-100 Sym. 0.8"): {"BEF", "BEF+", "BQF+"},
}
COLUMNS = [(key, column["printed"]) for key, table in TABLES.items() for column in table["columns"]]


def column(key: str, printed: str) -> dict[str, dict[str, Any]]:
    """The cells of a column, by loss."""
    place = [one["printed"] for one in TABLES[key]["columns"]].index(printed)
    return {row["loss"]: row["cells"][place] for row in TABLES[key]["rows"]}


def cells(key: str) -> Iterator[dict[str, Any]]:
    return (cell for row in TABLES[key]["rows"] for cell in row["cells"])


def test_the_five_tables_are_there_with_their_source():
    assert list(TABLES) == list(SIZES)
    assert RESULTS["source"].startswith("Robust Losses from Univariate Base Functions")


@pytest.mark.parametrize("key", SIZES)
def test_a_table_is_whole_and_says_where_it_is_from(key):
    table, (losses, columns) = TABLES[key], SIZES[key]
    assert set(table) == {"label", "caption", "columns", "rows"}
    assert table["label"].startswith("table_")
    assert table["caption"].startswith("Test accuracies")
    assert len(table["rows"]) == len({row["loss"] for row in table["rows"]}) == losses
    assert len(table["columns"]) == columns
    assert {len(row["cells"]) for row in table["rows"]} == {columns}
    assert all(set(one) == {"data", "noise", "test", "k", "printed"} for one in table["columns"])


@pytest.mark.parametrize("key", SIZES)
def test_numbers_are_accuracies_and_only_the_real_world_has_no_spread(key):
    assert all(0 < cell["mean"] < 100 for cell in cells(key))
    if key == "realworld":
        assert all(cell["std"] is None for cell in cells(key))
    else:
        assert all(0 < cell["std"] < 10 for cell in cells(key))


@pytest.mark.parametrize("key", SIZES)
def test_losses_are_called_as_in_the_catalogue(key):
    tuned = {"BEF+", "BQF+"} if key == "tuned" else set()
    assert {row["loss"] for row in TABLES[key]["rows"]} <= set(lossforge.names()) | tuned


@pytest.mark.parametrize(("key", "loss", "printed", "mean", "std"), SPOTS)
def test_values_are_the_printed_ones(key, loss, printed, mean, std):
    cell = column(key, printed)[loss]
    assert (cell["mean"], cell["std"]) == (mean, std)


@pytest.mark.parametrize(("key", "printed"), COLUMNS)
def test_bold_entries_are_the_two_best(key, printed):
    found = column(key, printed)
    best = sorted(found, key=lambda loss: found[loss]["mean"], reverse=True)[:2]
    if key == "tuned":  # compares two pairs, and marks the better of each
        best = [max(pair, key=lambda loss: found[loss]["mean"]) for pair in PAIRS]
    bold = {loss for loss, cell in found.items() if cell["bold"]}
    assert bold == OTHER_BOLD.get((key, printed), set(best))


PAIRS = (("BEF", "BEF+"), ("BQF", "BQF+"))


@pytest.mark.parametrize("loss", ["BEF", "BQF"])
@pytest.mark.parametrize("place", range(8))
def test_the_tuned_table_repeats_the_shared_settings_of_the_others(loss, place):
    here = TABLES["tuned"]["columns"][place]
    key = here["data"] if here["noise"].startswith(("sym", "asym")) else "idn-human"
    there = next(
        one["printed"]
        for one in TABLES[key]["columns"]
        if (one["data"], one["noise"]) == (here["data"], here["noise"])
    )
    repeated, first = column("tuned", here["printed"])[loss], column(key, there)[loss]
    assert (repeated["mean"], repeated["std"]) == (first["mean"], first["std"])


@pytest.mark.parametrize(
    ("loss", "printed", "gain"),
    [
        ("BEF", "CIFAR-10 Asy. 0.4", 3.29),
        ("BEF", "CIFAR-10 IDN 0.6", 1.29),
        ("BQF", "CIFAR-10 Asy. 0.4", 3.07),
        ("BQF", "CIFAR-10 IDN 0.6", 2.06),
    ],
)
def test_gains_of_tuning_are_those_of_the_papers_text(loss, printed, gain):
    found = column("tuned", printed)
    assert found[loss + "+"]["mean"] - found[loss]["mean"] == pytest.approx(gain, abs=1e-9)

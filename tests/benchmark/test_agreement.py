"""Rank correlations, against their definitions and by simulation."""

import importlib
import itertools
import math
import random
import sys
from pathlib import Path

import pytest
from made_records import made

from lossforge.report.results import Results

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
agreement = importlib.import_module("results_agreement")

OURS = [61.0, 58.5, 64.0, 58.5, 40.0, 63.0, 70.5]
THEIRS = [87.0, 80.0, 83.0, 84.0, 61.0, 61.0, 90.0]


def naive_ranks(values):
    """1 + the number of larger values, plus half the number of other equal ones."""
    return [1 + sum(w > v for w in values) + (values.count(v) - 1) / 2 for v in values]


def naive_spearman(a, b):
    a, b = naive_ranks(a), naive_ranks(b)
    centre = (len(a) + 1) / 2
    products = sum((x - centre) * (y - centre) for x, y in zip(a, b, strict=True))
    squares = [sum((x - centre) ** 2 for x in side) for side in (a, b)]
    return products / math.sqrt(squares[0] * squares[1])


def naive_kendall(a, b):
    """Concordant minus discordant pairs, by those that are not tied on either side (tau-b)."""
    pairs = list(itertools.combinations(range(len(a)), 2))
    sign = [[(side[i] > side[j]) - (side[i] < side[j]) for i, j in pairs] for side in (a, b)]
    agreed = sum(x * y for x, y in zip(*sign, strict=True))
    return agreed / math.sqrt(math.prod(sum(map(abs, side)) for side in sign))


@pytest.mark.parametrize(
    ("method", "naive"), [("spearman", naive_spearman), ("kendall", naive_kendall)]
)
def test_correlations_are_those_of_the_definition_with_ties(method, naive):
    for pair in ((OURS, THEIRS), (THEIRS, OURS), (OURS, [-v for v in THEIRS])):
        assert agreement.correlate(*pair, method).value == pytest.approx(naive(*pair))


def test_intervals_are_those_of_the_formula():
    """n = 7: 1.959964 sqrt((1 + r^2/2)/4) and 1.959964 sqrt(0.437/3) around atanh(r)."""
    r, tau = naive_spearman(OURS, THEIRS), naive_kendall(OURS, THEIRS)
    for method, value, variance in (
        ("spearman", r, (1 + r * r / 2) / 4),
        ("kendall", tau, 0.437 / 3),
    ):
        found = agreement.correlate(OURS, THEIRS, method)
        half = 1.959964 * math.sqrt(variance)
        assert found.low == pytest.approx(math.tanh(math.atanh(value) - half), abs=1e-6)
        assert found.high == pytest.approx(math.tanh(math.atanh(value) + half), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spearman", "kendall"])
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_intervals_of_17_losses_contain_the_truth_about_as_often_as_they_say(method, rho):
    """For normals of correlation rho: Spearman 6/pi asin(rho/2), Kendall 2/pi asin(rho)."""
    truth = 6 / math.pi * math.asin(rho / 2)
    truth = truth if method == "spearman" else 2 / math.pi * math.asin(rho)
    draw, hits, trials = random.Random(0), 0, 1000
    for _ in range(trials):
        first = [draw.gauss(0, 1) for _ in range(17)]
        other = [rho * x + math.sqrt(1 - rho**2) * draw.gauss(0, 1) for x in first]
        found = agreement.correlate(first, other, method)
        hits += found.low <= truth <= found.high
    assert 0.92 <= hits / trials <= 0.975


def test_the_verdict_is_that_of_the_interval():
    ordered = list(range(17))
    shuffled = random.Random(1).sample(ordered, 17)
    near = [*ordered[1:], 0]
    assert agreement.correlate(ordered, near, "spearman").verdict == "agrees"
    assert agreement.correlate(ordered, near[::-1], "spearman").verdict == "contradicts"
    assert agreement.correlate(ordered, shuffled, "spearman").verdict == "unclear"


def test_few_or_equal_losses_have_no_interval():
    assert agreement.correlate([1, 1, 1], [1, 2, 3], "kendall") is None
    few = agreement.correlate([1, 2, 3, 4], [1, 3, 2, 4], "spearman")
    assert (few.value, few.low, few.verdict) == (pytest.approx(0.8), None, "unknown")
    same = agreement.correlate(range(9), range(9), "spearman")
    assert (same.low, same.high) == (pytest.approx(1), pytest.approx(1))
    assert same.verdict == "agrees"


def test_our_order_is_compared_with_the_papers_over_the_losses_that_both_have():
    accuracies = {"CE": 60.0, "GCE": 70.0, "BEF": 80.0, "BQF": 50.0, "own": 99.0}
    records = [
        made(loss, noise, 0, value, data="cifar10")
        for loss, value in accuracies.items()
        for noise in ("symmetric:0.6", "human:random2")
    ]
    paper = {"CE": 38.8, "GCE": 68.2, "BEF": 82.6, "BQF": 82.7, "SCE": 61.1}
    column = {"data": "cifar10", "noise": "symmetric:0.6", "test": "test", "k": "top1"}
    rows = [{"loss": loss, **column, "mean": mean, "std": None} for loss, mean in paper.items()]
    (found,) = agreement.with_paper(Results(records), rows, "last")
    assert found.column.noise == "symmetric:0.6"
    assert found.ours == {"CE": 3, "GCE": 2, "BEF": 1, "BQF": 4}
    assert found.theirs == {"CE": 4, "GCE": 3, "BEF": 2, "BQF": 1}
    assert found.spearman.value == pytest.approx(naive_spearman([3, 2, 1, 4], [4, 3, 2, 1]))
    assert agreement.mean_ranks([found])["BQF"] == (4, 1)
    assert agreement.with_paper(Results(records), rows[:2], "last") == []
    unfinished = Results(records[1:])  # CE under the other noise is still there
    assert agreement.with_paper(unfinished, rows, "last") == []


def test_a_loss_with_more_seeds_is_compared_on_those_that_all_have():
    records = [
        made("CE", "clean", 0, 60.0),
        made("CE", "clean", 1, 90.0),
        made("GCE", "clean", 0, 70.0),
    ]
    results = Results(records)
    (column,) = results.columns
    assert results.means(column) == {"CE": 60.0, "GCE": 70.0}
    apart = Results([records[1], records[2]])
    assert apart.means(apart.columns[0]) == {}

"""Intervals and ranks against scipy's own tests and naive computations."""

import dataclasses
import itertools
import math

import pytest
import scipy.stats
from record_fixtures import grid, record
from test_tables import flat

from lossforge.report import statistics
from lossforge.report.results import Results
from lossforge.report.tables import best_sheet, difference_sheet, rank_sheet


def made(table: dict[str, list[list[float]]]) -> Results:
    """Results with these accuracies: by loss, settings of seeds."""
    return Results(
        [
            dataclasses.replace(record(loss, f"symmetric:{j / 10}", s), metrics=flat(value))
            for loss, settings in table.items()
            for j, seeds in enumerate(settings)
            for s, value in enumerate(seeds)
        ]
    )


def test_intervals_are_those_of_the_paired_t_test():
    results = Results(grid())
    for one in statistics.differences_to(results, "CE"):
        ours = list(results.values(one.loss, one.column).values())
        theirs = list(results.values("CE", one.column).values())
        test = scipy.stats.ttest_rel(ours, theirs)
        low, high = test.confidence_interval(0.95)
        assert (one.low, one.high) == pytest.approx((low, high))
        assert one.n == 3
        assert (one.verdict == "level") == (test.pvalue > 0.05)


def test_only_seeds_that_both_have_are_paired():
    records = [r for r in grid(("CE", "GCE")) if (r.spec["loss"], r.spec["seed"]) != ("CE", 1)]
    results = Results(records)
    one = statistics.differences_to(results, "CE")[0]
    ours, theirs = (results.values(loss, one.column) for loss in ("GCE", "CE"))
    assert one.n == 2
    assert one.mean == pytest.approx((ours[0] - theirs[0] + ours[2] - theirs[2]) / 2)


def test_one_pair_has_no_interval():
    (one,) = statistics.differences_to(made({"CE": [[50.0]], "GCE": [[60.0]]}), "CE")
    assert (one.n, one.mean, one.low, one.high, one.verdict) == (1, 10, None, None, "unknown")


def test_equal_differences_have_an_interval_without_width():
    (one,) = statistics.differences_to(made({"CE": [[50.0, 52]], "GCE": [[60.0, 62]]}), "CE")
    assert (one.low, one.high, one.verdict) == (10, 10, "better")
    (one,) = statistics.differences_to(made({"CE": [[50.0, 52]], "GCE": [[50.0, 52]]}), "CE")
    assert (one.low, one.high, one.verdict) == (0, 0, "level")


def test_the_best_is_the_best_other_loss():
    results = made({"A": [[90.0, 91]], "B": [[80.0, 82]], "C": [[70.0, 70]]})
    found = {one.loss: (one.other, one.mean) for one in statistics.differences_to_best(results)}
    assert found == {"A": ("B", 9.5), "B": ("A", -9.5), "C": ("A", -20.5)}


def test_a_loss_with_fewer_seeds_is_not_the_best_to_compare_with():
    results = made({"A": [[99.0]], "B": [[80.0, 82]], "C": [[70.0, 70]]})
    found = {one.loss: one.other for one in statistics.differences_to_best(results)}
    assert found == {"A": "B", "B": "C", "C": "B"}


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="no loss 'XYZ' here, only CE, GCE"):
        statistics.differences_to(Results(grid()), "XYZ")


def test_ranks_against_a_naive_count():
    results = Results(grid())
    ranking = statistics.rank_losses(results)
    total = dict.fromkeys(results.losses, 0.0)
    for column in results.columns:
        means = {
            loss: math.fsum(values.values()) / 3
            for loss in results.losses
            if (values := results.values(loss, column))
        }
        for one, other in itertools.product(means, means):
            total[one] += (means[other] > means[one]) + (means[other] == means[one]) / 2
    naive = {loss: sums / 3 + 0.5 for loss, sums in total.items()}
    assert ranking.ranks == pytest.approx(naive)
    assert list(ranking.ranks.values()) == sorted(ranking.ranks.values())


def test_friedman_against_the_textbook_formula():
    table = {name: [[v] for v in row] for name, row in zip("ABC", TABLE, strict=True)}
    ranking = statistics.rank_losses(made(table))
    k, n = 3, 4
    squares = sum(rank**2 for rank in ranking.ranks.values())
    chi2 = 12 * n / (k * (k + 1)) * (squares - k * (k + 1) ** 2 / 4)
    assert ranking.statistic == pytest.approx(chi2)
    assert ranking.p == pytest.approx(math.exp(-chi2 / 2))  # of two degrees of freedom


TABLE = [(90.0, 80, 70, 60), (85.0, 82, 65, 50), (70.0, 60, 66, 40)]


@pytest.mark.parametrize(("losses", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_uses_the_published_values(losses, q):
    # Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006, table 5
    expected = q * math.sqrt(losses * (losses + 1) / (6 * 14))
    assert statistics.critical_difference(losses, 14) == pytest.approx(expected, rel=1e-3)


def test_ties_everywhere_leave_nothing_to_test():
    ranking = statistics.rank_losses(made({name: [[50.0], [60.0]] for name in "ABC"}))
    assert ranking.p is ranking.statistic is None
    assert set(ranking.ranks.values()) == {2.0}
    assert "tied" in rank_sheet(ranking).notes[0]


def test_losses_that_lack_a_setting_are_not_ranked():
    table = {**{name: [[50.0], [60.0]] for name in "ABC"}, "D": [[99.0]]}
    ranking = statistics.rank_losses(made(table))
    assert set(ranking.ranks) == set("ABC")
    assert ranking.left_out == ["D"]
    assert any("D" in note for note in rank_sheet(ranking).notes)


def test_ranks_are_over_the_seeds_that_all_losses_have():
    """A has the highest mean only by a second seed that the others lack."""
    table = {"A": [[50.0, 90], [50.0, 90]], "B": [[60.0], [60.0]], "C": [[40.0], [40.0]]}
    ranking = statistics.rank_losses(made(table))
    assert ranking.ranks == {"B": 1, "A": 2, "C": 3}
    ranking = statistics.rank_losses(made({**table, "D": [[70.0]]}))  # D lacks a setting
    assert ranking.ranks == {"B": 1, "A": 2, "C": 3}
    records = [r for r in made({**table, "D": [[70.0, 70]]}).records if r.spec["loss"] != "D"]
    late = dataclasses.replace(record("D", "symmetric:0.0", 1), metrics=flat(70.0))
    assert statistics.rank_losses(Results([*records, late])).ranks == {"B": 1, "A": 2, "C": 3}


def test_ranks_are_of_the_epoch_that_is_asked_for():
    """The epoch with the best held-out accuracy is the second of three."""

    def run(loss: str, noise: str, last: float, chosen: float):
        first = flat(last)
        rows = [{**first[-1], "validation": 1.0}, {**first[-1], "validation": 2.0}]
        rows[1]["tests"] = {"test": {"top1": chosen, "top5": None}}
        last_row = {**first[-1], "validation": 0.0}
        metrics = [{**row, "epoch": k + 1} for k, row in enumerate([*rows, last_row])]
        return dataclasses.replace(record(loss, noise, 0), metrics=metrics)

    values = {"A": (90.0, 40.0), "B": (80.0, 50.0), "C": (70.0, 60.0)}
    results = Results(
        [run(loss, noise, *v) for loss, v in values.items() for noise in ("clean", "pair:0.1")]
    )
    assert list(statistics.rank_losses(results, "last").ranks) == ["A", "B", "C"]
    assert list(statistics.rank_losses(results, "selected").ranks) == ["C", "B", "A"]


def test_too_little_to_rank():
    assert statistics.rank_losses(made({name: [[50.0]] for name in "ABC"})) is None
    assert statistics.rank_losses(made({name: [[50.0], [60.0]] for name in "AB"})) is None


def test_the_sheets_count_where_an_interval_lies_above_or_below_0():
    results = Results(grid())
    differences = statistics.differences_to_best(results)
    sheet = best_sheet(results, differences)
    assert list(sheet.head[:3]) == ["loss", "better", "worse"]
    for name, row in zip(sheet.names, sheet.rows, strict=True):
        for field, verdict in zip(row, ("better", "worse"), strict=False):
            own = [one for one in differences if one.loss == name and one.verdict == verdict]
            assert field.text == str(len(own))
    assert [field.text for field in sheet.rows[0][:2]] == ["0", "2"]  # CE
    sheet = difference_sheet(results, "CE", statistics.differences_to(results, "CE"))
    assert list(sheet.names) == ["GCE", "JAL-CE", "BEF"]
    assert sheet.notes[0] == "n = 3 pairs"


def test_counts_that_are_all_0_are_left_out():
    results = made({"CE": [[50.0, 60.0]], "A": [[60.0, 50.0]], "B": [[50.0, 70.0]]})
    sheet = difference_sheet(results, "CE", statistics.differences_to(results, "CE"))
    assert "better" not in sheet.head
    assert sheet.notes == ["n = 2 pairs", "every interval contains 0"]
    assert len(sheet.rows[0]) == len(sheet.head) - 1


def test_no_difference_makes_an_empty_sheet():
    for sheet in (difference_sheet(Results(grid()), "CE", []), best_sheet(Results(grid()), [])):
        assert (list(sheet.names), list(sheet.rows), list(sheet.notes)) == ([], [], [])

"""The sentences of a report say what its numbers say."""

import statistics
from dataclasses import replace

import pytest
import scipy.stats
from record_fixtures import grid, write
from test_statistics import made

from lossforge.benchmark.archive import pack
from lossforge.report import make_report, write_report
from lossforge.report.finding import NOTABLE, find, seeds_text, visible_difference
from lossforge.report.results import Results
from lossforge.report.statistics import differences_to, rank_losses


def found(table, other="CE"):
    results = made(table)
    return find(results, rank_losses(results), other, differences_to(results, other))


def test_the_leader_has_the_best_mean_rank_and_is_compared_with_the_baseline():
    one = found({"CE": [[50, 52], [60, 62]], "A": [[70, 72], [61, 63]], "B": [[60, 62], [50, 52]]})
    assert one.leaders == ["A"]
    assert one.sentence == (
        "A has the best mean rank of 3 losses over 2 settings (1.0), 10.5 points above CE on "
        "average."
    )
    assert one.certainty.startswith("A is better than CE beyond luck in 2 of 2 settings (95 % int")
    assert one.certainty.endswith("; no other loss is significantly worse by rank (Nemenyi, 5 %).")


def test_a_baseline_that_leads_is_not_compared_with_itself():
    one = found({"CE": [[70, 72], [80, 82]], "A": [[60, 62], [70, 71]], "B": [[50, 52], [60, 62]]})
    assert one.sentence == "CE has the best mean rank of 3 losses over 2 settings (1.0)."


def test_equal_ranks_share_the_lead():
    one = found({"CE": [[50.0], [50.0]], "A": [[70.0], [60.0]], "B": [[60.0], [70.0]]})
    assert one.leaders == ["A", "B"]
    assert one.sentence == (
        "A and B share the best mean rank of 3 losses over 2 settings (1.5), A 15.0 points above "
        "CE on average."
    )


def test_losses_that_are_significantly_worse_are_not_called_level():
    means = [95.0, 90.0, 85.0, 80.0, 60.0, 50.0]
    table = {"ABCDEF"[k]: [[mean + j] for j in range(6)] for k, mean in enumerate(means)}
    one = found(table, other="F")
    critical = rank_losses(made(table)).critical
    level = sum(rank < critical for rank in range(1, 6))
    assert 0 < level < 5
    assert f"{level} of the 5 other losses are not significantly worse" in one.certainty


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.csv", "`--true COLUMN` tests"), ("photos/", "A folder `test` beside `train` tests")],
)
def test_test_labels_as_given_are_told_under_the_headline(tmp_path, name, advice):
    plain = grid(("CE", "GCE"), ("clean",), (0, 1), data=name)
    assert not find(Results(plain), None, "CE", []).caveat
    given = [replace(one, tested_as_given=True, noise_rate=None) for one in plain]
    store = write(tmp_path / "runs", given)
    caveat = (
        "Tested on labels as given; wrong ones among them lower every figure. "
        f"{advice} on checked labels."
    )
    pack(store, tmp_path / "packed.jsonl.gz")
    for place in (tmp_path / "packed.jsonl.gz", store):
        report = make_report(place)
        assert report.closing()[1] == f"note  {caveat}"
    page = write_report(report, tmp_path / "page", "").read_text()
    first, second, _ = caveat.split("`", 2)
    head = page.split("</header>")[0]
    assert f"{first}<code>{second}</code>" in head
    assert head.index(first) < head.index("seeds")


def test_without_ranks_the_mean_accuracy_leads():
    one = found({"CE": [[50, 54]], "A": [[70, 72]]})
    assert one.sentence == (
        "A has the highest accuracy of 2 losses, 71.0 % (symmetric 0.0), 19.0 points above CE."
    )
    assert found({"CE": [[50.0], [70.0]]}).sentence == "CE reaches 60.0 % over 2 settings."


def test_a_loss_that_lacks_a_setting_does_not_lead():
    one = found({"CE": [[50.0], [60.0]], "A": [[99.0]]})
    assert one.leaders == ["CE"]


def test_runs_that_all_failed_have_no_leader(tmp_path):
    records = grid(("CE", "GCE"), ("clean",), (0,))
    for record in records:
        object.__setattr__(record, "failed", "the loss is nan")
    report = make_report(write(tmp_path, records))
    assert report.finding.sentence == "No run has an accuracy to compare."
    assert len(report.closing()) == 3


def test_the_hint_is_the_median_half_width_and_what_more_seeds_would_give():
    table = {"CE": [[50, 52, 60]], "A": [[70, 62, 80]], "B": [[50, 59, 61]], "C": [[40, 42, 43]]}
    results = made(table)
    widths = []
    for name in "ABC":
        pairs = [a - b for a, b in zip(table[name][0], table["CE"][0], strict=True)]
        low, high = scipy.stats.t.interval(0.95, 2, statistics.fmean(pairs), scipy.stats.sem(pairs))
        widths.append((high - low) / 2)
    n, width = visible_difference(differences_to(results, "CE"))
    assert (n, width) == (3, pytest.approx(statistics.median(widths)))
    assert width > NOTABLE
    one = found(table)
    deviation = width * 3**0.5 / scipy.stats.t.ppf(0.975, 2)
    with_10 = deviation * scipy.stats.t.ppf(0.975, 9) / 10**0.5
    assert with_10 > NOTABLE  # so the most that is suggested
    assert one.hint == (
        f"3 seeds: differences under {width:.1f} points cannot be seen here; 10 seeds would show "
        f"{with_10:.1f}"
    )
    assert one.seeds == list(range(10))


def test_the_fewest_seeds_that_show_a_notable_difference_are_suggested():
    # deviation of the difference 1: 2 seeds show 9 points, 5 seeds 1.24, 10 seeds 0.72
    one = found({"CE": [[50.0, 50.0]], "A": [[60.0, 60.0 + 2**0.5]]})
    assert one.hint.endswith("9.0 points cannot be seen here; 10 seeds would show 0.7")
    assert one.seeds == list(range(10))


def test_no_hint_where_a_notable_difference_shows():
    one = found({"CE": [[50, 51, 52]], "A": [[60, 61.1, 62]]})
    assert (one.hint, one.seeds) == ("", [])
    assert found({"CE": [[50.0]]}).hint == ""  # nothing to compare


def test_one_seed_shows_nothing():
    one = found({"CE": [[50.0]], "A": [[60.0]]})
    assert one.hint == "1 seed: no difference can be told from luck here"
    assert one.seeds == [0, 1, 2, 3, 4]


def test_suggested_seeds_continue_those_that_are_there():
    results = Results(grid(("CE", "GCE"), ("clean",), (3, 5)))
    one = find(results, None, "CE", differences_to(results, "CE"))
    assert one.seeds[:2] == [3, 5]
    assert one.seeds[2:] == list(range(6, 6 + len(one.seeds) - 2))


def test_the_closing_lines_name_the_seeds_to_add(tmp_path):
    report = make_report(write(tmp_path, grid(), name="digits"))
    seen, sure, following = report.closing()
    assert seen == f"seen  {report.finding.sentence}"
    assert sure == f"sure  {report.finding.certainty} {report.finding.hint}."
    seeds = seeds_text(report.finding.seeds)
    assert following.startswith(f"next  the same `lossforge bench` with --seeds {seeds} adds to")
    for line in "\n".join(report.closing(80)).splitlines():
        assert len(line) <= 80

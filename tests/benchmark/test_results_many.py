"""The section on more than 150 classes compares with the former defaults, setting by setting."""

from made_page import page, runs, section
from made_records import made

HEADING = "More than 150 classes"
POINTS = {"CEeps+MAE": 68.0, "BEF with BR": 66.0, "BEF": 72.0, "BQF": 68.0}


def many(**changes):
    """Two seeds at two numbers of classes of one data set under one noise.

    CEeps+MAE loses nothing with more classes, and gains a point with the second seed.
    """
    return [
        made(
            loss,
            "symmetric:0.6",
            seed,
            changes.get(loss, last) + (seed if loss == "CEeps+MAE" else -classes / 100),
            data="digits-triples",
            classes=classes,
            data_options={"classes": classes},
            text=f"BEF(mu={classes})" if loss == "BEF with BR" else None,
        )
        for classes in (300, 1000)
        for loss, last in POINTS.items()
        for seed in (0, 1)
    ]


def test_settings_are_named_by_their_number_of_classes_and_marked(tmp_path):
    text = section(page(tmp_path, digits=runs(), many_classes=many()), HEADING)
    assert "| loss | 300 classes, symmetric 0.6 † | 1,000 classes, symmetric 0.6 † |" in text
    assert "| BEF | **69.0 ± 0.0** | **62.0 ± 0.0** |" in text
    assert "settings of the search" not in text


def test_both_are_compared_with_what_they_were_and_with_a_strong_loss(tmp_path):
    text = section(page(tmp_path, digits=runs(), many_classes=many()), HEADING)
    assert (
        "- BEF is ahead of BEF with BR in 2 of 2 settings (mean differences from +6.0 to +6.0 "
        "points; the 95 % interval is above 0 in 2 and below 0 in 0) and ahead of CEeps+MAE in 1 "
        "of 2 settings (mean differences from -6.5 to +0.5 points; the 95 % interval is above 0 in "
        "0 and below 0 in 1)." in text
    )
    assert "- BQF is ahead of CEeps+MAE in 0 of 2 settings" in text
    assert "from -10.5 to -3.5 points;" in text


def test_the_summary_counts_the_settings(tmp_path):
    text = section(page(tmp_path, digits=runs(), many_classes=many()), "In short")
    assert (
        "- [More than 150 classes, settings that no search saw](#more-than-150-classes): BEF is "
        "ahead of BEF with BR in 2 of 2 and ahead of CEeps+MAE in 1 of 2; BQF is ahead of "
        "CEeps+MAE in 0 of 2." in text
    )


def test_seeds_that_one_of_two_losses_lacks_do_not_count(tmp_path):
    kept = [run for run in many() if (run.spec["loss"], run.spec["seed"]) != ("BEF", 1)]
    text = section(page(tmp_path, digits=runs(), many_classes=kept), HEADING)
    assert "ahead of CEeps+MAE in 1 of 2 settings" in text
    assert "from -6.0 to +1.0 points;" in text


def test_the_search_is_shown_beside_but_not_compared(tmp_path):
    grids = {"many_classes": many(), "many_classes_search": many(BEF=10.0)}
    text = section(page(tmp_path, digits=runs(), **grids), HEADING)
    assert "ahead of BEF with BR in 2 of 2" in text
    searched = text.partition("The settings of the search")[2]
    assert "| BEF | 7.0 ± 0.0 | 0.0 ± 0.0 |" in searched
    assert "†" not in searched


def test_a_parameter_that_depends_on_the_classes_does_not_depend_on_the_noise(tmp_path):
    text = page(tmp_path, digits=runs(), many_classes=many())
    assert "The published parameters of" not in text
    rows = [line for line in text.splitlines() if line.startswith("| many-classes, digits-triples")]
    assert [row.split(" | ")[1] for row in rows] == ["300", "1,000"]
    assert "| BEF with BR | `BEF(mu=300)` | none | 300 classes |" in text
    assert "| BEF with BR | `BEF(mu=1000)` | none | 1,000 classes |" in text
    assert "| CEeps+MAE | `CEeps+MAE` | none | all |" in text


def test_its_settings_are_listed_among_those_that_no_search_used(tmp_path):
    text = page(tmp_path, digits=runs(), many_classes=many())
    assert "(all of banking77, breast-cancer and many-classes, and asymmetric 0.3" in text
    assert "many-classes, and asymmetric" not in page(tmp_path / "without", digits=runs())

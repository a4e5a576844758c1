"""The section on all of CIFAR-10 stands beside the paper and says where it contradicts it."""

import statistics
from dataclasses import replace

import pytest
from made_page import page, pages, runs, section
from made_records import LOSSES, archive, made

from lossforge.benchmark.records import paper_results

HEADING = "About cifar10"
NOISES = ("clean", "symmetric:0.8", "asymmetric:0.4", "instance:0.6", "human:worst")


def printed(noise):
    """The paper's column of a noise."""
    rows = [r for t in ("cifar10", "idn-human") for r in paper_results(t)["rows"]]
    return {
        row["loss"]: row["mean"]
        for row in rows
        if (row["data"], row["noise"]) == ("cifar10", noise)
    }


def as_printed(noises=NOISES, seeds=(0, 1), sign=1, losses=LOSSES, **fields):
    """Runs with the paper's accuracies, or with their reverse."""
    return [
        made(loss, noise, seed, 50 + sign * (printed(noise).get(loss, 20.0) - 50), **fields)
        for seed in seeds
        for noise in noises
        for loss in losses
    ]


def cifar(**fields):
    return {"data": "cifar10", **fields}


def shifted(records, noise, loss, value):
    changed = {"tests": {"test": {"top1": value, "top5": None}}}
    return [
        replace(one, metrics=[*one.metrics[:-1], {**one.metrics[-1], **changed}])
        if (one.spec["noise"], one.spec["loss"]) == (noise, loss)
        else one
        for one in records
    ]


def test_the_same_order_agrees_everywhere(tmp_path):
    records = shifted(as_printed(data="cifar10"), "clean", "CE", 99.0)
    text = section(page(tmp_path, digits=runs(), cifar10=records), HEADING)
    assert "compared with 5 columns of the paper's tables" in text
    noises = "clean, symmetric 0.8, asymmetric 0.4, instance 0.6 and human worst"
    assert f"in 5 ({noises}) it is positively correlated with the paper's" in text
    assert "is the best loss in 4 of these 5 columns of the paper and in 4 here" in text
    assert "first here: CE (1)" in text
    assert "move by 5 places" not in text
    assert "- Mean ranks that move by less: BEF " in text


def test_a_contradiction_is_said_first(tmp_path):
    records = shifted(as_printed(sign=-1, data="cifar10"), "clean", "CE", 50.0)
    text = section(page(tmp_path, digits=runs(), cifar10=records), HEADING)
    lines = [one for one in text.splitlines()[1:] if one]
    assert lines[0] == "**Where the ranks contradict the paper's:**"
    noises = "clean, symmetric 0.8, asymmetric 0.4, instance 0.6 and human worst"
    assert f"in 5 ({noises}) it is negatively correlated with the paper's" in lines[1]
    assert "is the best loss in 4 of these 5 columns of the paper and in none here" in lines[2]
    assert lines[3].startswith("- Mean ranks over these columns that move by 5 places or more")
    for loss in ("NCE", "BEF", "BQF"):
        assert f"{loss} " in lines[3]


def test_the_summary_counts_the_settings_without_a_clear_relation(tmp_path):
    records = shifted(as_printed(data="cifar10"), "clean", "CE", 99.0)
    values = {loss: float(place * 7 % 17) for place, loss in enumerate(LOSSES)}
    records += [made(loss, "symmetric:0.2", 0, value, **cifar()) for loss, value in values.items()]
    text = page(tmp_path, digits=runs(), cifar10=records)
    (found,) = [one for one in text.splitlines() if one.startswith(f"- {HEADING}: ")]
    assert "BQF has place 1 of 17 by mean rank and is at worst " in found
    assert "with 6 columns of the paper's tables: in 1 it shows no clear relation" in found
    assert "relation to the paper's; in 5 (" in found
    assert "in 1 (symmetric 0.2) it shows no clear relation" in section(text, HEADING)


def test_mean_ranks_are_over_the_losses_that_both_have(tmp_path):
    """Two losses of ours are not in the paper's table of instance-dependent noise."""
    records = as_printed(("instance:0.6",), data="cifar10", sign=-1)
    text = section(page(tmp_path, digits=runs(), cifar10=records), HEADING)
    column = printed("instance:0.6")
    assert len(column) == 15
    order = sorted(column, key=lambda loss: -column[loss])
    there, here = order.index("BEF") + 1, 15 - order.index("BEF")
    assert f"BEF {there:.1f} → {here:.1f}" in text
    assert "| instance 0.6 † | 15 | -1.00 [-1.00, -1.00] |" in text


def test_the_level_the_images_and_the_learning_rate_are_explained(tmp_path):
    records = as_printed(data="cifar10")
    text = section(page(tmp_path, digits=runs(), cifar10=records), HEADING)
    for words in ("JPEG-compressed copies", "level is not the paper's", "frozen features"):
        assert words in text
    assert "CE on clean labels reaches 90.4 %." in text
    assert "](benchmark-presets.md#cifar-10-on-patch-features)" in text
    assert "| CE | 90.4 ± 0.0 (paper 90.4 ± 0.1) |" in text
    kinds = ("Clean labels and symmetric", "Asymmetric", "Instance-dependent", "Human labels")
    places = [text.index(f"<summary>{kind}") for kind in kinds]
    assert places == sorted(places)


def test_unfinished_noises_are_shown_but_not_ranked_against_the_paper(tmp_path):
    records = as_printed(data="cifar10")
    started = made("CE", "symmetric:0.2", 0, 60.0, data="cifar10")
    archive(tmp_path, "cifar10", [*records, started], unfinished=["one"])
    text = section(page(tmp_path, digits=runs()), HEADING)
    assert "1 of 172 runs are not finished: this section is provisional." in text
    assert "compared with 5 columns" in text
    assert "60.0 (1/2) (paper 74.8 ± 0.3)" in text


def test_without_runs_there_is_no_section_but_a_command(tmp_path):
    text = page(tmp_path, digits=runs())
    assert "patch features, a head" not in text
    assert '`make results ARGS="cifar10"`' in text
    assert '`make results ARGS="cifar10-rate"`' in text


def test_the_other_learning_rate_stands_beside(tmp_path):
    noises = ("symmetric:0.4", "asymmetric:0.4")
    training = made("CE", "clean", 0, 1.0).spec["training"]
    first = as_printed(noises, data="cifar10")
    again = [
        made(
            one.spec["loss"],
            one.spec["noise"],
            0,
            one.last() - 40 * (one.spec["loss"] == "BEF"),
            data="cifar10",
            training={**one.spec["training"], "lr": 0.3},
        )
        for one in first
        if one.spec["seed"] == 0
    ]
    assert training["lr"] == 0.1
    text = page(tmp_path, digits=runs(), cifar10=first, cifar10_rate=again)
    part = text[text.index("### At a learning rate of 0.3 in place of 0.1") :]
    for noise in noises:
        column = {loss: value for loss, value in printed(noise).items() if loss in LOSSES}
        before = sorted(column, key=lambda loss: -column[loss]).index("BEF") + 1
        assert f"- {noise.replace(':', ' ')}: Spearman's correlation" in part
        assert f"places of 17 at 0.1 → 0.3: BEF {before} → 17" in part
    assert "symmetric 0.4, lr 0.3" in part


def test_balances_and_parameters_have_their_figures(tmp_path):
    balances = [
        made(
            f"BEF {lam}",
            "human:worst",
            0,
            60 + lam,
            data="cifar10",
            text=f"BEF(lam={lam}, mu={mu})",
        )
        for lam, mu in ((1, 0), (0.5, 0.5), (0, 1))
    ]
    plane = [
        made(
            f"b {b} t {t}",
            "symmetric:0.8",
            0,
            50 + b + t,
            data="cifar10",
            text=f"BEF(beta={b}, tau={t})",
        )
        for b in (-1, 1)
        for t in (0, 1)
    ]
    for name, records in (
        ("digits", runs()),
        ("cifar10", as_printed(data="cifar10")),
        ("cifar10-balance", balances),
        ("cifar10-parameters", plane),
    ):
        archive(tmp_path, name, records)
    text, figures = pages.make_text(tmp_path)
    for name in (
        "results-cifar10-accuracy.svg",
        "results-cifar10-noise-fit.svg",
        "results-cifar10-balance-balance-bef-human-worst.svg",
        "results-cifar10-balance-ablation-human-worst.svg",
        "results-cifar10-parameters-parameters-bef-symmetric-0.8.svg",
    ):
        assert f"](images/{name})" in text
        assert figures[name]().axes
    (axis,) = figures["results-cifar10-noise-fit.svg"]().axes
    assert [one.get_label() for one in axis.lines] == ["CE", "GCE", "NCE+AUL", "BEF", "BQF"]
    assert axis.lines[0].get_ydata().tolist() == [11.0, 12.0, 13.0]


def test_seeds_are_averaged_before_ranking(tmp_path):
    """A loss that wins by its mean over seeds, though it loses on most of them."""
    records = as_printed(("clean",), seeds=(0, 1, 2), data="cifar10")
    lucky = {0: 99.9, 1: 91.0, 2: 91.0}
    records = [
        shifted([one], "clean", "CE", lucky[one.spec["seed"]])[0]
        if one.spec["loss"] == "CE"
        else one
        for one in records
    ]
    assert statistics.fmean(lucky.values()) == pytest.approx(93.97, abs=0.01)
    text = section(page(tmp_path, digits=runs(), cifar10=records), HEADING)
    assert "first here: CE (1)" in text

"""The page of results says what the runs say, in both directions."""

import json
import re
import statistics
from dataclasses import replace

import pytest
from made_page import (
    HELD_OUT,
    OUT_OF_17,
    ROOT,
    SEARCHED,
    SEEDS,
    accuracy,
    checks,
    line,
    page,
    pages,
    results,
    runs,
    section,
    sentence,
)
from made_records import ABOUT, LOSSES, archive, made, write

from lossforge.benchmark import presets, read_grid
from lossforge.benchmark.archive import unpack
from lossforge.data import load


def test_the_claim_holds(tmp_path):
    text = page(tmp_path, digits=runs())
    found = sentence(text)
    assert OUT_OF_17 in found
    assert "on the 2 held-out settings" in found
    assert "**holds for BEF and BQF**" in found
    assert (
        "BEF has mean rank 1.0 (place 1 of 17) and is at worst 2.0 points above the best" in found
    )
    assert (
        "BQF has mean rank 2.0 (place 2 of 17) and is at worst 1.0 points above the best" in found
    )
    assert "BEF is below the best of the other 15 in none of the 2 settings; BQF" in text
    assert "| BEF, held-out settings, last epoch | 2 | 1.0 | 1 of 17 | 0 | 0 |" in text
    assert "fails" not in text


def test_the_claim_fails_by_rank(tmp_path):
    """A point below three others: still close, no longer among the two best."""
    text = page(tmp_path, digits=runs(changes={"BQF": 86.5}))
    found = sentence(text)
    assert "**holds for BEF and fails for BQF**" in found
    assert "BQF has mean rank 5.0 (place 5 of 17)" in found
    assert "is at worst 2.5 points below" in found
    assert "fails: rank and distance" in line(text, "| BQF, held-out settings, last epoch")
    text = page(tmp_path, digits=runs(changes={"BQF": 87.5}))
    assert line(text, "| BQF, held-out settings, last epoch").endswith("| fails: rank |")
    assert "BQF is below the best of the other 15 in 2 of the 2 settings, by 1.5 points" in text


def test_the_claim_fails_by_distance(tmp_path):
    """Best in one setting, second in the other but three points behind."""
    changes = {("CE", "instance:0.6"): 94.0, ("BQF", "instance:0.6"): 80.0}
    text = page(tmp_path, digits=runs(changes=changes))
    found = sentence(text)
    assert "**fails for BEF and BQF**" in found
    assert "BEF has mean rank 1.5 (place 1 of 17) and is at worst 3.0 points below" in found
    assert "the best of the other 15 (digits, instance 0.6, CE); BQF" in found
    row = line(text, "| BEF, held-out settings, last epoch")
    assert "| 1 | 1 | -3.0 [-3.0, -3.0] (digits, instance 0.6, CE) | fails: distance |" in row


@pytest.mark.parametrize(("gap", "verdict"), [(1.99, "holds"), (2.01, "fails")])
def test_one_decimal_never_hides_the_verdict(tmp_path, gap, verdict):
    changes = {("CE", "instance:0.6"): 91 + gap, ("CE", "asymmetric:0.3"): 50.0}
    found = sentence(page(tmp_path, digits=runs(changes=changes)))
    assert f"**{verdict} for BEF" in found
    assert f"at worst {gap:.2f} points below" in found


def test_held_out_and_searched_settings_are_judged_apart(tmp_path):
    records = [*runs(), *runs(SEARCHED, changes={"BEF": 70.0})]
    text = page(tmp_path, digits=records, banking77=runs(SEARCHED, data="banking77", classes=77))
    assert "on the 4 held-out settings, last epoch, **holds for BEF and BQF**" in sentence(text)
    assert "**holds for BQF and fails for BEF**" in sentence(text, "searched")
    assert "on the 2 searched settings" in sentence(text, "searched")
    assert "| loss | asymmetric 0.3 † | instance 0.6 † | clean | symmetric 0.4 |" in text
    assert "| loss | clean † | symmetric 0.4 † |" in section(text, "banking77")


def test_the_selected_epoch_is_judged_apart(tmp_path):
    text = page(tmp_path, digits=runs(selected={"BEF": 60.0}))
    assert "**holds for BEF and BQF**" in sentence(text)
    found = line(text, "- With the epoch selected on noisy validation labels")
    assert "holds for BQF and fails for BEF on the held-out settings" in found
    assert "fails: rank and distance" in line(text, "| BEF, held-out settings, selected epoch")


def test_no_verdict_without_runs(tmp_path):
    others = [loss for loss in LOSSES if loss != "BQF"]
    found = sentence(page(tmp_path, digits=runs(losses=others)))
    assert "**holds for BEF**" in found
    assert "BQF lacks runs there" in found
    found = sentence(page(tmp_path, digits=runs(losses=others[:-1])))
    assert "cannot be judged" in found


def test_tables_show_means_spreads_and_the_two_best(tmp_path):
    text = section(page(tmp_path, digits=runs(selected={"CE": 95.0})), "digits: About digits")
    last, selected = text.split("epoch selected on held-out noisy labels")
    assert "| BEF | **91.1 ± 0.1** | **91.1 ± 0.1** |" in last
    assert "| CE | 89.1 ± 0.1 | 89.1 ± 0.1 |" in last
    assert "| CE | **95.1 ± 0.1** |" in selected
    assert "| BQF | 90.1 ± 0.1 |" in selected
    assert "ANL-CE, ANL-FL, JAL-CE, JAL-FL: trained with l1_decay 5e-05" in last
    row = line(text, "| asymmetric 0.3 † | +2.0")
    assert "| +2.0 [+2.0, +2.0] (against CE) | +1.0 [+1.0, +1.0] (against CE) |" in row
    assert "| -4.0 [-4.0, -4.0] (against CE) | -5.0 [-5.0, -5.0] (against CE) |" in row


def test_mean_ranks_come_with_the_critical_difference(tmp_path):
    text = section(page(tmp_path, digits=[*runs(), *runs(SEARCHED)]), "Mean ranks")
    assert "| BEF | **1.0** | **1.0** | **1.0** |" in text
    assert "| CE | 3.0 | 3.0 | 3.0 |" in text
    # q of 17 losses is 3.458: 3.458 sqrt(17 18 / (6 n)), for 2, 2 and 4 settings
    assert "| critical difference (Nemenyi) | 17.5 | 17.5 | 12.3 |" in text
    assert "images/results-ranks-held-out.svg" in text


def test_another_test_set_of_a_data_set_does_not_count_twice(tmp_path):
    records = runs(data="clinc150", classes=150, tests=("test", "val"))
    text = page(tmp_path, clinc150=records)
    assert "on the 2 held-out settings" in sentence(text)
    assert "val" not in section(text, "Mean ranks")


def balances(name, gaps, noises=SEARCHED):
    """Rows of the ablation, below the default's accuracy by the gaps."""
    found = []
    for share, gap in gaps.items():
        row = f"{name} {share:g}:{1 - share:g}"
        text = f"{name}(lam={share:g}, mu={1 - share:g})"
        found += [
            made(row, noise, seed, accuracy(name) - gap + seed / 10, text=text)
            for noise in noises
            for seed in SEEDS
        ]
    return found


def test_the_balance_is_compared_with_its_terms_alone(tmp_path):
    """The default, 0.9 : 0.1, is no row of the ablation: it comes from the main runs."""
    records = balances("BEF", {1.0: 3.0, 0.5: 1.0, 0.0: -2.0})
    text = section(page(tmp_path, digits=runs(SEARCHED), ablation=records), "The balance")
    assert "BEF's default balance minus target separation alone is +3.0 [+3.0, +3.0]" in text
    assert "over 2 settings, minus binary reduction alone -2.0 [-2.0, -2.0]" in text
    assert "| BEF | default balance | 2.0 | 91.1 |" in text
    assert "| BEF 1:0 | TS alone | 4.0 | 88.1 |" in text
    assert "| BEF 0:1 | BR alone | 1.0 | 93.1 |" in text
    assert "images/results-balance-digits.svg" in text


def test_a_row_of_the_ablation_may_be_the_default_balance(tmp_path):
    records = balances("BEF", {1.0: 3.0, 0.9: 0.5, 0.0: 2.0})
    text = section(page(tmp_path, digits=runs(SEARCHED), ablation=records), "The balance")
    assert "| BEF 0.9:0.1 | default balance | 1.0 | 90.6 |" in text
    assert "target separation alone is +2.5 [+2.5, +2.5]" in text
    assert "| BEF |  " not in text


def test_flatness_tells_the_mean_and_the_worst_change(tmp_path):
    rows = {"default": 80.0, "beta x2": 81.0, "BEF beta /2": 78.0}
    records = [
        made(row, noise, seed, value - (noise == "clean") * (row != "default"), text=expression)
        for row, value in rows.items()
        for expression in (f"BEF(beta={value}, lam=0.9, mu=0.1)",)
        for noise in SEARCHED
        for seed in SEEDS
    ]
    text = section(page(tmp_path, digits=runs(), flatness=records), "How flat")
    assert (
        "moves BEF by -1.0 points on average, and by -3.0 at worst (beta /2, digits, clean)" in text
    )
    assert "| beta x2 | +0.5 [-5.9, +6.9] | 0.0 (digits, clean) | 2 |" in text
    assert "| digits, clean | -1.5 | -3.0 (beta /2) |" in text
    assert "| digits, symmetric 0.4 | -0.5 | -2.0 (beta /2) |" in text


def test_cifar_is_labelled_and_stands_beside_the_paper(tmp_path):
    losses = ("CE", "GCE", "BEF", "BQF")
    records = runs(("symmetric:0.6", "human:worst"), data="cifar10", losses=losses)
    text = page(tmp_path, digits=runs(), cifar10_mini=records)
    found = section(text, "CIFAR-10 at reduced scale")
    assert "**This is not the protocol of the paper.**" in found
    assert "the scales differ" in found
    assert "| CE | 89.1 ± 0.1 (paper 38.8 ± 0.3) |" in found
    assert "Over 2 settings, last epoch: BEF has mean rank 1.0 (place 1 of 4)" in found
    assert "| About cifar10-mini | 2 | 1 of 4 | 2.0 points above (" in text
    assert "on the 2 held-out settings" in sentence(text)  # where CIFAR does not count


def test_two_and_a_thousand_classes_do_not_count_in_the_ranks(tmp_path):
    few = runs(("clean", "symmetric:0.4"), {"BEF": 50.0}, data="breast-cancer", classes=2)
    text = page(tmp_path, digits=runs(), breast_cancer=few)
    assert "do not count in the mean ranks" in section(text, "breast-cancer")
    assert "BEF has mean rank 17.0 (place 17 of 17)" in section(text, "breast-cancer")
    assert "| About breast-cancer | 2 | 17 of 17 | 39.0 points below (clean) |" in text
    assert "on the 2 held-out settings" in sentence(text)


def test_tuned_losses_stand_beside_their_defaults(tmp_path):
    assert "## Tuned" not in page(tmp_path, digits=runs())
    rows = [
        {
            "data": "digits",
            "noise": "symmetric:0.6",
            "loss": loss,
            "trials": 20,
            "expression": loss,
            "default": [80.0, 82.0],
            "tuned": [80.0 + gain, 82.0 + gain],
        }
        for loss, gain in (("CE", -0.5), ("GCE", 1.0), ("BEF", 2.0))
    ]
    (tmp_path / "tuned.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = section(page(tmp_path), "Tuned")
    assert "20 trials" in text
    assert "| CE | 81.0 → 80.5 | -0.5 |" in text
    assert "| BEF → BEF+ | **81.0 → 83.0** | +2.0 |" in text
    (tmp_path / "tuned.jsonl").write_text('{"data": "digits"}\n')
    with pytest.raises(ValueError, match="line 1 has no noise, loss"):
        page(tmp_path)


def test_what_is_missing_is_said_with_its_command(tmp_path):
    text = page(tmp_path, digits=runs())
    assert "The balance" not in text
    missing = section(text, "Not run")
    assert '`make results ARGS="ablation"`' in missing
    assert 'ARGS="digits"' not in missing
    with pytest.raises(FileNotFoundError, match="no archive"):
        pages.make_page(tmp_path / "nowhere")


def test_unfinished_runs_make_it_provisional(tmp_path):
    assert "provisional" not in page(tmp_path, digits=runs())
    records = balances("BEF", {1.0: 3.0, 0.0: -2.0})
    archive(tmp_path, "ablation", records, unfinished=["one", "two"])
    text = page(tmp_path)
    assert line(text, "- Provisional").endswith(": 2 of 14 runs of ablation are not finished.")
    assert "2 of 14 runs are not finished" in section(text, "The balance")
    assert "not finished" not in section(text, "digits")


def test_the_protocol_is_that_of_the_specs(tmp_path):
    text = section(page(tmp_path, digits=runs()), "How it was done")
    assert "0 trials for every loss" in text
    assert "BEF is `BEF(lam=0.9, mu=0.1)` everywhere." in text
    assert "Made on A CPU, lossforge 0.1.0, python 3.11.9, torch 2.13.0; 102 runs, 0.1 core" in text
    assert "Losses were computed by torch operations." in text
    assert "epochs 3, batch size 256, lr 0.1 | 10 % | asymmetric 0.3, instance 0.6 | 17" in text
    assert "| JAL-CE | `JAL-CE` | l1_decay 5e-05 | all |" in text


@pytest.mark.slow
def test_the_same_runs_make_the_same_bytes(tmp_path):
    archive(tmp_path / "in", "digits", [*runs(), *runs(SEARCHED)])
    archive(tmp_path / "in", "ablation", balances("BEF", {1.0: 3.0, 0.5: 1.0, 0.0: -2.0}))
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    (docs / "images" / "results-old.svg").write_text("")
    (docs / "images" / "other.svg").write_text("")
    words = ["--results", str(tmp_path / "in"), "--docs", str(docs), "write"]
    assert results.main(words) == 0
    written = {path.name: path.read_bytes() for path in docs.rglob("*.*")}
    assert set(written) == {
        "results.md",
        "results-behind.svg",
        "results-ranks-all.svg",
        "results-ranks-held-out.svg",
        "results-balance-digits.svg",
        "other.svg",
    }
    assert results.main(words) == 0
    assert {path.name: path.read_bytes() for path in docs.rglob("*.*")} == written


class Plan:
    """A grid whose runs are these."""

    name, title, table = "results/digits", "Digits", None

    def __init__(self, records):
        self.records = records

    def runs(self):
        return self.records


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Runs of one loss with their archive, and the arguments that say so."""
    kept = runs(losses=("CE", "BEF"))
    monkeypatch.setattr(results, "read_grid", lambda name: Plan(kept))
    write(tmp_path / "runs" / "digits", kept)
    words = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "in")]
    assert results.main([*words, "pack", "digits"]) == 0
    return tmp_path, words


def again(folder, records):
    """Replace a store by runs done again."""
    for path in sorted((folder / "runs" / "digits").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    write(folder / "runs" / "digits", records)


def test_packing_leaves_out_what_the_preset_does_not_have(places, capsys):
    folder, words = places
    again(folder, [*runs(losses=("CE", "BEF")), *runs(losses=("GCE",))])
    assert results.main([*words, "pack", "digits"]) == 0
    assert "left out 6 runs that are of another grid" in capsys.readouterr().err
    losses = {one.spec["loss"] for one in unpack(folder / "in" / "digits.jsonl.gz")[1]}
    assert losses == {"CE", "BEF"}


def test_the_same_bits_pass_on_the_same_machine(places, capsys):
    _, words = places
    assert results.main([*words, "check", "digits"]) == 0
    assert "digits: as committed (12 runs; equal bits)" in capsys.readouterr().out


def test_old_records_are_of_torch_operations_and_of_unknown_instructions(places, capsys):
    folder, words = places
    switched = ABOUT | {"kernel": "composed (LOSSFORGE_KERNEL=off)", "instructions": None}
    again(folder, runs(losses=("CE", "BEF"), about=switched))
    assert results.main([*words, "check", "digits"]) == 0
    assert "equal bits" in capsys.readouterr().out


def test_other_bits_fail_on_the_same_machine(places, capsys):
    folder, words = places
    again(folder, runs(losses=("CE", "BEF"), changes={("CE", "instance:0.6"): 89.00001}))
    assert results.main([*words, "check", "digits"]) == 1
    found = capsys.readouterr().out.splitlines()
    assert found[0].startswith("digits: 3 differences")
    assert len(found) == 4
    assert "loss CE, noise instance:0.6, seed 0): " in found[1]


@pytest.mark.parametrize(
    "other",
    [
        {"device": "B CPU"},
        {"versions": {**ABOUT["versions"], "torch": "2.99.0"}},
        {"kernel": "C, x86-64-v3, 12.2.0"},
        {"instructions": "AVX512"},
    ],
)
@pytest.mark.parametrize(("shift", "status"), [(0.1, 0), (0.5, 1)])
def test_elsewhere_means_may_differ_by_chance_alone(places, capsys, other, shift, status):
    """Three seeds with a standard deviation of 0.1: Welch's interval is 0.23 to each side."""
    folder, words = places
    changes = {("CE", "instance:0.6"): 89 + shift}
    again(folder, runs(losses=("CE", "BEF"), changes=changes, about=ABOUT | other))
    assert results.main([*words, "check", "digits"]) == status
    found = capsys.readouterr().out
    assert "95 % intervals for" in found
    told = "CE, digits, instance 0.6, last epoch: 89.60 instead of 89.10 ± 0.23"
    assert (told in found) == bool(status)


@pytest.mark.parametrize(("loss", "value", "status"), [("CE", 89.00001, 1), ("BEF", 91.00001, 0)])
def test_runs_from_elsewhere_are_compared_by_intervals(places, capsys, loss, value, status):
    """CE was done here, BEF on another machine: a last bit counts for CE alone."""
    folder, words = places
    again(folder, runs(losses=("BEF",), about=ABOUT | {"device": "B CPU"}))
    assert results.main([*words, "pack", "digits"]) == 0  # CE is kept as it was
    again(folder, runs(losses=("CE", "BEF"), changes={(loss, "instance:0.6"): value}))
    assert results.main([*words, "check", "digits"]) == status
    found = capsys.readouterr().out
    assert "intervals for 6 runs made on A CPU" in found
    assert (f"loss {loss}, noise instance:0.6, seed 0): " in found) == bool(status)


def test_elsewhere_a_shift_of_all_cells_is_found_that_no_cell_shows(places, capsys):
    folder, words = places
    losses = ("CE", "FL", "BEF")
    archive(folder / "in", "digits", runs(losses=losses))
    changes = {
        loss: accuracy(loss) + shift for loss, shift in zip(losses, (0.15, 0.18, 0.2), strict=True)
    }
    again(folder, runs(losses=losses, changes=changes, about=ABOUT | {"device": "B CPU"}))
    assert results.main([*words, "check", "digits"]) == 1
    found = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line.partition(":")[0] for line in found] == [
        "all cells, last epoch, 6 cells",
        "all cells, selected epoch, 6 cells",
    ]


def test_elsewhere_a_shift_of_one_loss_in_all_settings_is_found(places, capsys):
    folder, words = places
    noises = [f"symmetric:{rate}" for rate in (0.1, 0.2, 0.3, 0.4, 0.5)]
    many = {"losses": ("CE", "FL", "BEF"), "noises": noises}
    archive(folder / "in", "digits", runs(**many))
    shifts = (0.15, 0.18, 0.15, 0.2, 0.18)
    changes = {("BEF", one): 91 + shift for one, shift in zip(noises, shifts, strict=True)}
    again(folder, runs(changes=changes, about=ABOUT | {"device": "B CPU"}, **many))
    assert results.main([*words, "check", "digits"]) == 1
    found = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line.partition(":")[0] for line in found] == [
        "BEF, last epoch, 5 cells",
        "BEF, selected epoch, 5 cells",
    ]


CELL = ("CE", "instance:0.6", True)


def test_elsewhere_a_single_run_among_others_is_not_passed_unjudged(places, capsys):
    folder, words = places
    losses, about = ("CE", "FL", "BEF"), ABOUT | {"device": "B CPU"}

    def one_single(records):
        return [r for r in records if (r.spec["loss"], r.spec["noise"], r.spec["seed"] > 0) != CELL]

    archive(folder / "in", "digits", one_single(runs(losses=losses)))
    again(folder, one_single(runs(losses=losses, changes={CELL[:2]: 49.0}, about=about)))
    assert results.main([*words, "check", "digits"]) == 1
    found = capsys.readouterr().out
    assert "cells with one seed, last epoch, 1 cell: too few to compare" in found


@pytest.mark.parametrize(
    ("shifts", "told"),
    [
        ((0.5, -0.5, 0.5, -0.4, 0.3, -0.3), []),
        (
            (0.5, 0.4, 0.5, 0.4, 0.5, 0.4),
            [
                "cells with one seed, last epoch, 6 cells: shifted by +0.45 [+0.39, +0.51]",
                "all cells, last epoch, 6 cells: shifted by +0.45 [+0.38, +0.52]",
            ],
        ),
    ],
)
def test_elsewhere_cells_of_one_seed_are_compared_together(places, capsys, shifts, told):
    folder, words = places
    losses = ("CE", "FL", "BEF")
    cells = [(loss, noise) for loss in losses for noise in HELD_OUT]
    changes = {cell: accuracy(cell[0]) + shift for cell, shift in zip(cells, shifts, strict=True)}
    archive(folder / "in", "digits", runs(losses=losses, seeds=(0,)))
    selected = {loss: accuracy(loss) for loss in losses}
    about = ABOUT | {"device": "B CPU"}
    fields = {"losses": losses, "seeds": (0,), "selected": selected, "about": about}
    again(folder, runs(changes=changes, **fields))
    assert results.main([*words, "check", "digits"]) == int(bool(told))
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == told


@pytest.mark.parametrize("losses", [("CE",), ("CE", "BEF")])
def test_elsewhere_a_few_single_runs_prove_nothing(places, capsys, losses):
    folder, words = places
    few = {"losses": losses, "noises": ("instance:0.6",), "seeds": (0,)}
    archive(folder / "in", "digits", runs(**few))
    again(folder, runs(**few, about=ABOUT | {"device": "B CPU"}))
    assert results.main([*words, "check", "digits"]) == 1
    found = capsys.readouterr().out
    assert re.search(rf"one seed, last epoch, {len(losses)} cells?: too few to compare", found)


def test_elsewhere_a_run_that_fails_this_time_is_named(places, capsys):
    """Means leave failed runs out, so that no interval would show it."""
    folder, words = places
    found = runs(losses=("CE", "BEF"), about=ABOUT | {"device": "B CPU"})
    again(folder, [replace(found[0], failed="diverged"), *found[1:]])
    assert results.main([*words, "check", "digits"]) == 1
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "diverged" in one]
    assert line.strip().startswith(found[0].id)
    assert line.endswith("failed 'diverged' instead of None")


def test_a_missing_run_fails_everywhere(places, capsys):
    folder, words = places
    for about in (ABOUT, ABOUT | {"device": "B CPU"}):
        again(folder, runs(losses=("CE", "BEF"), about=about)[1:])
        assert results.main([*words, "check", "digits"]) == 1
        assert "missing" in capsys.readouterr().out
    again(folder, [])
    (folder / "runs" / "digits" / "grid-results-digits-00.json").unlink()
    (folder / "runs" / "digits").rmdir()
    assert results.main([*words, "check", "digits"]) == 1
    assert "`results.py run digits` makes them" in capsys.readouterr().out


def test_welch_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    a, b = [1.0, 2.0, 4.0], [3.0, 3.5, 7.0, 9.0]
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert checks.welch(a, b) == pytest.approx((high - low) / 2)
    assert statistics.fmean(a) - statistics.fmean(b) == pytest.approx((high + low) / 2)
    assert checks.welch([1.0, 1.0], [2.0, 2.0]) == 0


GRIDS = [name for name in presets() if name.startswith("results/")]


@pytest.mark.parametrize("name", GRIDS)
def test_presets_are_those_of_the_nearest_number_of_classes(name):
    """What the page says of the baselines."""
    for part in read_grid(name).parts:
        few = part.data in ("breast-cancer", "digits", "cifar10")
        assert part.preset in (None, "cifar10" if few else "cifar100")


def test_the_small_data_sets_have_the_classes_that_the_preset_is_chosen_by():
    assert load("digits").num_classes == 10
    assert load("digits-pairs").num_classes == 100


COMMITTED = sorted((ROOT / "results").glob("*.jsonl.gz"))


@pytest.mark.slow
@pytest.mark.skipif(not COMMITTED, reason="no runs are committed in results/")
def test_the_committed_page_is_that_of_the_committed_runs():
    for name, content in pages.make_page(ROOT / "results").items():
        assert (ROOT / "docs" / name).read_bytes() == content, name
    assert sum(path.stat().st_size for path in COMMITTED) < results.MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_the_committed_runs_are_those_of_the_preset(path):
    header, records = unpack(path)
    planned = [spec.id for spec in read_grid(header["name"]).runs()]
    left = set(header["unfinished"])  # runs are committed as they come
    assert [one.id for one in records] == [run for run in planned if run not in left]

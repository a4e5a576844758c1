"""The shipped grids: they read, every loss resolves, and the paper's have its rows and columns."""

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import lossforge
from lossforge import data, models
from lossforge.catalog import PRESETS
from lossforge.catalog.balanced import default_tau
from lossforge.constructions.pairs import steady_mu

BENCHMARK = Path(str(resources.files("lossforge"))) / "benchmark"
FOLDER = BENCHMARK / "presets"
FILES = sorted(FOLDER.rglob("*.toml"))
GRIDS: dict[str, dict[str, Any]] = {
    path.relative_to(FOLDER).with_suffix("").as_posix(): tomllib.loads(
        path.read_text(encoding="utf-8")
    )
    for path in FILES
}
TABLES = json.loads((BENCHMARK / "paper_results.json").read_text(encoding="utf-8"))["tables"]

OWN = ("digits", "clinc150", "banking77", "cifar10-mini")
RESULT_TABLES = ("cifar10", "cifar100", "idn-human", "tuned", "realworld")
FIGURES = {
    "overfitting": "overfitting",
    "balance": "balance",
    "heatmaps": "heatmaps",
    "tsne": "tsne",
    "curves-cifar10": "curves",
    "curves-cifar100": "curves",
    "ablation": "ablation",
}
RESULTS = (
    "digits",
    "digits-pairs",
    "digits-triples",
    "many-classes",
    "many-classes-search",
    "breast-cancer",
    "clinc150",
    "banking77",
    "cifar10",
    "cifar10-rate",
    "cifar10-balance",
    "cifar10-parameters",
    "cifar10-mini",
    "ablation",
    "flatness",
    "methods",
)
NAMES = (
    *OWN,
    *(f"results/{name}" for name in RESULTS),
    *(f"paper/{name}" for name in RESULT_TABLES),
    *(f"paper/{name}" for name in FIGURES),
)

SEVERE = {
    "cifar10": ["symmetric:0.8", "asymmetric:0.4", "instance:0.6", "human:worst"],
    "cifar100": ["symmetric:0.8", "asymmetric:0.4", "instance:0.6", "human:noisy"],
}
DEMO = ["CE", "GCE", "NCE+RCE", "NCE+AGCE", "ANL-CE", "JAL-CE", "BEF", "BQF"]


def parts(name: str) -> list[dict[str, Any]]:
    """The parts of a grid, each with what stands outside them."""
    grid = GRIDS[name]
    return [{**grid, **part} for part in grid.get("part", [grid])]


PARTS = [
    pytest.param(part, id=f"{name}-{place}")
    for name in GRIDS
    for place, part in enumerate(parts(name))
]
PAPER_PARTS = [one for one in PARTS if str(one.id).startswith("paper/")]


def row_name(row: str | dict[str, str]) -> str:
    return row if isinstance(row, str) else row["name"]


def row_text(row: str | dict[str, str]) -> str:
    return row if isinstance(row, str) else row["loss"]


def row_names(part: dict[str, Any]) -> list[str]:
    return [row_name(row) for row in part["losses"]]


def in_catalogue(loss: str, noise: str) -> str | None:
    """A noise of a grid, as the catalogue's settings are chosen by it."""
    kind, _, rate = noise.partition(":")
    human = "dependent" if "eps" in loss else "human"  # of these there is none for human labels
    words = {"instance": f"dependent:{rate}", "human": human, "given": None}
    return words.get(kind, noise)


def test_the_promised_grids_are_shipped_and_no_others():
    assert set(GRIDS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_grid_says_what_it_is(name):
    grid = GRIDS[name]
    assert grid["name"] == name
    assert grid["title"]
    short = name.removeprefix("paper/")
    if not name.startswith("paper/"):
        assert grid["protocol"] == ("reduced" if name.endswith("cifar10-mini") else "own")
        assert "table" not in grid
    else:
        assert grid["protocol"] == "paper"
        assert grid.get("table") == (short if short in RESULT_TABLES else None)
        assert grid.get("figure") == FIGURES.get(short)


@pytest.mark.parametrize("part", PARTS)
def test_data_network_and_settings_are_known(part):
    assert part["data"] in data.names()
    assert part["model"] in models.names()
    assert part.get("preset", "cifar10") in PRESETS
    assert len(set(part["seeds"])) == len(part["seeds"]) > 0
    assert len(set(part["noise"])) == len(part["noise"]) > 0
    assert len(set(row_names(part))) == len(part["losses"]) > 0


@pytest.mark.parametrize("part", PARTS)
def test_every_loss_resolves_under_every_noise(part):
    for row in part["losses"]:
        text = row_text(row)
        for noise in part["noise"]:
            if text in lossforge.names():
                preset = part.get("preset", "cifar10")
                made = lossforge.make(text, preset=preset, noise=in_catalogue(text, noise))
            else:
                made = lossforge.parse(text)
            assert str(lossforge.parse(str(made))) == str(made)


@pytest.mark.parametrize("key", RESULT_TABLES)
def test_rows_and_columns_are_those_of_the_papers_table(key):
    table, found = TABLES[key], parts(f"paper/{key}")
    assert all(row_names(part) == [row["loss"] for row in table["rows"]] for part in found)
    wanted = [(column["data"], column["noise"]) for column in table["columns"]]
    # WebVision has four columns, of two test sets, from one run
    assert [(part["data"], noise) for part in found for noise in part["noise"]] == list(
        dict.fromkeys(wanted)
    )
    assert {len(part["seeds"]) for part in found} == {1 if key == "realworld" else 3}


@pytest.mark.parametrize("part", PAPER_PARTS)
def test_balances_of_bef_and_bqf_change_nothing_but_the_balance(part):
    for row in part["losses"]:
        name, bracket, arguments = row_text(row).partition("(")
        if not bracket:
            continue
        pairs = (item.split("=") for item in arguments.removesuffix(")").split(","))
        balance = {key.strip(): float(value) for key, value in pairs}
        assert set(balance) == {"lam", "mu"}
        preset = lossforge.make(name, preset=part["preset"], **balance)
        assert str(lossforge.parse(row_text(row))) == str(preset)


@pytest.mark.parametrize(
    ("loss", "printed"), [("BEF", "CIFAR-10"), ("BQF", "CIFAR-10"), ("BEF", "CIFAR-100")]
)
def test_tuned_is_not_tuned_where_the_paper_prints_one_number(loss, printed):
    table = TABLES["tuned"]
    place = [one["printed"] for one in table["columns"]].index(f"{printed} Sym. 0.8")
    cells = {row["loss"]: row["cells"][place] for row in table["rows"]}
    assert cells[loss] == cells[loss + "+"]
    part = next(
        part
        for part in parts("paper/tuned")
        if part["data"] == printed.lower().replace("-", "") and "symmetric:0.8" in part["noise"]
    )
    assert {"name": loss + "+", "loss": loss} in part["losses"]


def test_figures_show_what_the_captions_say():
    overfitting = GRIDS["paper/overfitting"]
    assert overfitting["losses"] == ["GCE", "NCE+AUL"]
    assert overfitting["data"] == "cifar100"
    assert len(overfitting["noise"]) == 5
    assert GRIDS["paper/heatmaps"]["noise"] == SEVERE["cifar10"]
    tsne = GRIDS["paper/tsne"]
    assert (tsne["data"], tsne["noise"]) == ("cifar10", ["instance:0.4"])
    assert tsne["losses"] == ["CE", "FL", "BEF", "BQF"]
    assert tsne["keep_features"]


@pytest.mark.parametrize("name", ["balance", "ablation"])
def test_figures_of_the_balance_are_on_human_labels(name):
    found = [(part["data"], part["noise"]) for part in parts(f"paper/{name}")]
    assert found == [("cifar10", ["human:worst"]), ("cifar100", ["human:noisy"])]


def test_the_ablation_has_the_balances_of_the_papers_text():
    balances = ["1:0", "0.8:0.2", "0.5:0.5", "0.2:0.8", "0:1"]
    expected = [f"{loss} {balance}" for loss in ("BEF", "BQF") for balance in balances]
    assert row_names(GRIDS["paper/ablation"]) == expected


@pytest.mark.parametrize("dataset", SEVERE)
def test_runs_of_the_curves_are_runs_of_the_tables(dataset):
    curves = GRIDS[f"paper/curves-{dataset}"]
    assert curves["noise"] == SEVERE[dataset]
    assert set(curves["losses"]) <= set(GRIDS["paper/idn-human"]["losses"])
    table = GRIDS[f"paper/{dataset}"]
    shared = ("data", "model", "preset", "seeds", "training", "protocol")
    assert [curves[key] for key in shared] == [table[key] for key in shared]


@pytest.mark.parametrize("name", ["rate", "balance", "parameters"])
def test_parts_of_cifar10_on_patch_features_share_its_protocol(name):
    whole, part = GRIDS["results/cifar10"], GRIDS[f"results/cifar10-{name}"]
    same = ("data", "data_options", "model", "model_options", "hold_out", "protocol")
    assert [part[key] for key in same] == [whole[key] for key in same]
    lr = 3e-3 if name == "rate" else whole["training"]["lr"]
    assert part["training"] == {**whole["training"], "lr": lr}
    assert set(part["noise"]) <= set(whole["noise"])
    assert part["seeds"] == [0]


def test_the_balances_on_patch_features_are_the_papers_and_each_term_alone():
    grid = GRIDS["results/cifar10-balance"]
    shares = [1, 0.9, 0.7, 0.5, 0.3, 0.1, 0]
    expected = [
        {"name": f"{loss} {lam}:{mu:g}", "loss": f"{loss}(lam={lam}, mu={mu:g})"}
        for loss in ("BEF", "BQF")
        for lam in shares
        for mu in [1 - lam]
    ]
    assert grid["losses"] == expected
    assert set(grid["noise"]) <= set(SEVERE["cifar10"])


def test_the_map_of_parameters_is_a_full_rectangle_with_the_default_in_it():
    rows = GRIDS["results/cifar10-parameters"]["losses"]
    found = [lossforge.parse(row_text(row)).settings for row in rows]
    betas, taus = ({one[name] for one in found} for name in ("beta", "tau"))
    assert len({(one["beta"], one["tau"]) for one in found}) == len(rows) == 25
    assert len(betas) * len(taus) == 25
    assert lossforge.BEF().settings["beta"] in betas
    assert default_tau(10) in taus


def classes_of(part):
    return part.get("data_options", {}).get("classes", 1000)


def test_the_search_for_many_classes_used_none_of_the_held_out_settings():
    def settings(name):
        return {(p["data"], classes_of(p), noise) for p in parts(name) for noise in p["noise"]}

    held_out, searched = settings("results/many-classes"), settings("results/many-classes-search")
    assert len(held_out) == 8
    assert not held_out & searched
    assert GRIDS["results/many-classes-search"]["seeds"] == [100]


@pytest.mark.parametrize(
    "part", [*parts("results/many-classes"), *parts("results/many-classes-search")]
)
def test_the_former_defaults_had_a_mu_that_grew_with_the_classes(part):
    texts = {row["name"]: row["loss"] for row in part["losses"] if isinstance(row, dict)}
    mu = round(steady_mu(classes_of(part)), 6)
    former = {name: text for name, text in texts.items() if name.endswith("with BR")}
    assert former
    assert all(text == f"{name.partition(' ')[0]}(mu={mu})" for name, text in former.items())
    for name in {"cosine+BR", "BEF+BR"} & texts.keys():
        assert f" + {mu}*BR(" in texts[name]


def test_digits_is_the_demonstration():
    digits = GRIDS["digits"]
    assert digits["losses"] == DEMO
    symmetric = [f"symmetric:{rate}" for rate in (0.4, 0.6, 0.8)]
    assert digits["noise"] == ["clean", *symmetric, "asymmetric:0.4", "instance:0.4"]
    assert len(digits["seeds"]) == 3
    assert digits["model"] == "mlp"


def test_cifar10_mini_is_what_a_laptop_can_do():
    mini = GRIDS["cifar10-mini"]
    assert (mini["data"], mini["subset"], mini["model"]) == ("cifar10", 10_000, "cnn8-narrow")
    whole, short = GRIDS["paper/cifar10"]["training"], mini["training"]
    assert {**short, "epochs": whole["epochs"]} == whole
    assert short["epochs"] < whole["epochs"]

"""Figures draw what they are given."""

import dataclasses
import statistics

import numpy as np
import pytest
import torch
from record_fixtures import EPOCHS, NOISES, grid, record, write

from lossforge import noise, style
from lossforge.benchmark.records import read_records
from lossforge.report import transition_heatmaps
from lossforge.report.figures import (
    ablation,
    cost,
    curves,
    embed,
    forest,
    parameter_heatmap,
    ranks,
    scatter,
    shared_limits,
)
from lossforge.report.panels import Group, Panel, distinct_names, figure_groups, file_stem
from lossforge.report.results import Results
from lossforge.report.statistics import Ranking, differences_to, rank_losses


def groups_of(records):
    return {group.kind: group for group in figure_groups(Results(records))}


def test_a_curve_is_the_mean_and_its_band_one_deviation():
    seeds = [[10.0, 30.0, 50.0], [20.0, 30.0, 70.0]]
    figure = curves({"A": seeds}, title="t", ylabel="y")
    (axis,) = figure.axes
    (line,) = axis.lines
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [15, 30, 60]
    (band,) = axis.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(15 - statistics.stdev([10, 20]))
    assert corners[:, 1].max() == pytest.approx(60 + statistics.stdev([50, 70]))
    assert (axis.get_title(loc="left"), axis.get_ylabel()) == ("t", "y")


def test_one_seed_has_no_band_and_one_epoch_a_point():
    figure = curves({"A": [[1.0, 2.0]], "B": [[3.0]]}, title="", ylabel="")
    (axis,) = figure.axes
    assert not axis.collections
    assert [line.get_marker() for line in axis.lines] == ["None", "o"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B"]
    assert not curves({"A": [[1.0]]}, title="", ylabel="", legend=False).legends


def test_epochs_without_a_value_are_left_out():
    (axis,) = curves({"A": [[None, 2.0, 3.0]]}, title="", ylabel="").axes
    assert axis.lines[0].get_xdata().tolist() == [2, 3]


def test_a_name_has_its_colour_in_every_figure():
    names = [f"loss {i}" for i in range(25)]
    seen = {
        (look["color"], str(look["linestyle"])) for look in (style.look(n, names) for n in names)
    }
    assert len(seen) == 25
    (axis,) = curves({"loss 3": [[1.0, 2.0]]}, title="", ylabel="", names=names).axes
    assert axis.lines[0].get_color() == style.look("loss 3", names)["color"]


def test_faint_lines_have_no_band_and_lie_below():
    seeds = [[1.0, 2.0], [3.0, 5.0]]
    lines = dict.fromkeys("ABC", seeds)
    (axis,) = curves(lines, title="", ylabel="", strong={"B"}).axes
    faint, strong, _ = axis.lines
    assert faint.get_alpha() < 0.5 <= (strong.get_alpha() or 1)
    assert faint.get_zorder() < strong.get_zorder()
    assert faint.get_color() == style.look("A", "ABC")["color"]
    assert [band.get_gid() for band in axis.collections] == ["band-1"]


def test_panels_share_one_scale_and_emphasise_the_chosen_losses():
    losses = ("CE", "GCE", "JAL-CE", "BEF", "BQF")
    results = Results(grid(losses))
    accuracy = {g.kind: g for g in figure_groups(results, strong=["CE", "BEF"])}["accuracy"]
    axes = [panel.draw(True).axes[0] for panel in accuracy.panels]
    assert len({axis.get_ylim() for axis in axes}) == 1
    low, high = axes[0].get_ylim()
    values = [value for axis in axes for line in axis.lines for value in line.get_ydata()]
    assert low < min(values) < max(values) < high
    for axis in axes:
        assert {line.get_label() for line in axis.lines if not line.get_alpha()} == {"CE", "BEF"}
    assert accuracy.strong == ["CE", "BEF"]
    few = {g.kind: g for g in figure_groups(Results(grid()), strong=["CE"])}["accuracy"]
    assert not any(line.get_alpha() for line in few.panels[0].draw(True).axes[0].lines)


def test_limits_hold_all_values():
    assert shared_limits([]) is None
    assert shared_limits([3.0]) == (2.0, 4.0)
    low, high = shared_limits([0.0, 100.0])
    assert low < 0 < 100 < high


def test_a_forest_has_an_interval_for_every_name():
    intervals = {"A": (2.0, 1.0, 3.0), "B": (-2.0, -3.0, -1.0), "C": (1.0, -1.0, 3.0)}
    intervals["D"] = (5.0, None, None)
    (axis,) = forest(intervals, title="t", xlabel="points", limits=(-4, 6)).axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == list("ABCD")
    bars = [line for line in axis.lines[1:] if len(line.get_xdata()) == 2]
    assert [line.get_xdata().tolist() for line in bars] == [[1, 3], [-3, -1], [-1, 3]]
    points = [line for line in axis.lines[1:] if len(line.get_xdata()) == 1]
    assert [line.get_xdata()[0] for line in points] == [2, -2, 1, 5]
    colours = [line.get_color() for line in points]
    assert colours == [style.COLOURS[2], style.COLOURS[3], style.MUTED, style.MUTED]
    assert axis.get_xlim() == (-4, 6)
    assert axis.yaxis_inverted()


def test_a_forest_of_every_setting_best_first_on_one_scale():
    results = Results(grid())
    differences = differences_to(results, "CE")
    group = {g.kind: g for g in figure_groups(results, differences=differences)}["forest"]
    assert [panel.name for panel in group.panels] == [
        f"difference-ce-{noise.replace(':', '-')}" for noise in NOISES
    ]
    axes = [panel.draw(True).axes[0] for panel in group.panels]
    assert len({axis.get_xlim() for axis in axes}) == 1
    orders = {tuple(tick.get_text() for tick in axis.get_yticklabels()) for axis in axes}
    means = {}
    for one in differences:
        means.setdefault(one.loss, []).append(one.mean)
    assert orders == {tuple(sorted(means, key=lambda name: -sum(means[name])))}
    assert len(group.runs) == 36


def test_no_line_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        curves({}, title="", ylabel="")


def test_the_ablation_is_in_the_order_of_the_share():
    figure = ablation({"BEF": {(0.0, 1.0): [60.0], (2.0, 2.0): [80.0, 84.0]}}, title="t")
    (axis,) = figure.axes
    assert axis.lines[0].get_xdata().tolist() == [0, 0.5]
    assert axis.lines[0].get_ydata().tolist() == [60, 82]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0 : 1", "2 : 2"]


def test_cost_is_the_median():
    (axis,) = cost({"A": [1.0, 2.0, 9.0], "B": [4.0]}, title="t").axes
    assert [bar.get_width() for bar in axis.patches] == [2, 4]


def test_ranks_have_bars_of_the_critical_difference():
    (axis,) = ranks(Ranking({"A": 1.2, "B": 2.8}, 5, [], 1.0, 0.5, 0.6)).axes
    assert axis.lines[0].get_xdata().tolist() == [1.2, 2.8]
    first, second = axis.collections[0].get_segments()
    assert first[:, 0].tolist() == pytest.approx([0.9, 1.5])
    assert second[:, 0].tolist() == pytest.approx([2.5, 3.1])


def features(path, n=60, scale=1.0):
    source = np.random.default_rng(0)
    labels = np.arange(n) % 3
    values = 20 * source.normal(size=(3, 8))[labels] + source.normal(size=(n, 8))
    np.savez(path, features=scale * values, labels=labels)


def test_an_embedding_keeps_clusters_and_is_the_same_again(tmp_path):
    features(tmp_path / "features.npz")
    positions, labels = embed(tmp_path / "features.npz")
    assert positions.shape == (60, 2)
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(1)] == labels).all()
    assert (embed(tmp_path / "features.npz")[0] == positions).all()
    assert len(embed(tmp_path / "features.npz", most=20)[0]) == 20
    (axis,) = scatter(positions, labels, title="t").axes
    assert np.asarray(axis.collections[0].get_offsets()) == pytest.approx(positions)
    assert len({tuple(colour) for colour in axis.collections[0].get_facecolors()}) == 3


def test_huge_and_tiny_features_are_embedded(tmp_path):
    features(tmp_path / "features.npz")
    with np.load(tmp_path / "features.npz") as arrays:
        plain, labels = arrays["features"], arrays["labels"]
    for scale in (1e30, 1e-30):
        np.savez(tmp_path / "scaled.npz", features=np.float32(scale * plain), labels=labels)
        positions, _ = embed(tmp_path / "scaled.npz")
        assert np.isfinite(positions).all()
        assert positions.std() > 1


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "finite"), (np.inf, "finite"), (0.1, "the same for all")]
)
def test_features_that_cannot_be_embedded_are_refused(tmp_path, value, said):
    np.savez(tmp_path / "features.npz", features=np.full((60, 8), value), labels=np.arange(60))
    with pytest.raises(ValueError, match=said):
        embed(tmp_path / "features.npz")


def test_the_groups_that_a_grid_allows():
    found = groups_of(grid())
    assert list(found) == [
        "ranks",
        "accuracy",
        "noise_fit",
        "noise_recovered",
        "transition",
        "cost",
    ]
    assert len(found["accuracy"].panels) == 3
    # clean labels have no noise to learn or to draw
    assert [panel.name for panel in found["noise_fit"].panels] == [
        "noise-fit-symmetric-0.4",
        "noise-fit-asymmetric-0.4",
    ]
    assert {run.spec["noise"] for run in found["noise_fit"].runs} == set(NOISES) - {"clean"}
    assert len(found["accuracy"].runs) == 36
    assert len(found["transition"].panels) == 2
    figure = found["accuracy"].panels[1].draw(True)
    results = Results(grid())
    curve = [run.curve() for run in results.runs("GCE", results.columns[1]).values()]
    line = figure.axes[0].lines[1]
    assert line.get_label() == "GCE"
    assert line.get_ydata() == pytest.approx(np.mean(curve, axis=0))
    assert len(line.get_ydata()) == EPOCHS


def test_of_few_losses_the_settings_are_the_lines():
    found = groups_of(grid(("GCE", "NCE+AUL")))["accuracy"]
    assert [panel.name for panel in found.panels] == ["accuracy-gce", "accuracy-nce-plus-aul"]
    assert list(found.names) == [noise.replace(":", " ") for noise in NOISES]
    assert len(found.panels[0].draw(False).axes[0].lines) == 3


def test_a_failed_run_is_not_drawn():
    records = grid(("CE",), ("clean",), (0, 1))
    records[0] = dataclasses.replace(records[0], metrics=records[0].metrics[:3], failed="nan")
    (axis,) = groups_of(records)["accuracy"].panels[0].draw(True).axes
    assert axis.lines[0].get_ydata().tolist() == records[1].curve()


def test_the_legend_has_the_names_that_are_drawn_in_their_colours():
    found = groups_of([record("A", "clean", 0), *grid(("B", "C"), ("symmetric:0.4",), (0,))])
    assert found["accuracy"].names == {"A": 0, "B": 1, "C": 2}
    assert found["noise_fit"].names == {"B": 1, "C": 2}


def test_balances_are_found_among_the_losses():
    records = [
        record(f"BEF {lam}", "clean", seed, expression=f"BEF(lam={lam}, mu={1 - lam})")
        for seed in (0, 1)
        for lam in (0.0, 0.5, 1.0)
    ]
    group = groups_of(records)["ablation"]
    (panel,) = group.panels
    assert panel.draw(True).axes[0].lines[0].get_xdata().tolist() == [0, 0.5, 1]
    assert group.caption.endswith(". Mean over seeds; the bars are one standard deviation.")
    assert groups_of(records[:3])["ablation"].caption.endswith(". One seed.")
    assert "ablation" not in groups_of(records[:2])


def test_only_runs_that_are_drawn_are_cited():
    """Two balances of BQF are too few for a line, and a failed run is no point."""
    balances = [("BEF", 0.0), ("BEF", 0.5), ("BEF", 1.0), ("BQF", 0.5), ("BQF", 1.0)]
    records = [
        record(f"{loss} {lam}", "clean", seed, expression=f"{loss}(lam={lam}, mu={1 - lam})")
        for seed in (0, 1)
        for loss, lam in balances
    ]
    records[0] = dataclasses.replace(records[0], failed="nan")
    cited = {run.id for run in groups_of(records)["ablation"].runs}
    assert cited == {r.id for r in records[1:] if r.spec["loss"].startswith("BEF")}


def test_bands_are_inside_the_shared_axis():
    low = record("A", "clean", 0, final=10.0), record("A", "clean", 1, final=90.0)
    (axis,) = groups_of(low)["accuracy"].panels[0].draw(True).axes
    (band,) = axis.collections
    heights = band.get_paths()[0].vertices[:, 1]
    bottom, top = axis.get_ylim()
    assert bottom <= heights.min() < heights.max() <= top


def test_balances_of_one_family_are_the_lines_of_a_panel():
    records = [
        record(f"{loss} {lam}", "clean", seed, expression=f"{loss}(lam={lam}, mu={1 - lam})")
        for seed in (0, 1)
        for lam in (0.5, 0.0, 1.0)
        for loss in ("BEF", "BQF")
    ]
    group = groups_of(records)["balance"]
    assert [panel.name for panel in group.panels] == ["balance-bef-clean", "balance-bqf-clean"]
    assert len(group.runs) == 12
    (axis,) = group.panels[1].draw(True).axes
    assert [line.get_label() for line in axis.lines] == ["1 : 0", "0.5 : 0.5", "0 : 1"]
    middle = [one.curve() for one in records if one.spec["loss"] == "BQF 0.5"]
    assert axis.lines[1].get_ydata() == pytest.approx(np.mean(middle, axis=0))
    assert "balance" not in groups_of([one for one in records if "1.0" not in one.spec["loss"]])


def test_a_heatmap_has_a_cell_for_every_pair_of_parameters():
    values = {(x, y): [10 * x + y, 10 * x + y + 2] for x in (2.0, -1.0) for y in (0.5, 0.0, 3.0)}
    values[-1.0, 3.0] = []  # its runs failed
    (axis,) = parameter_heatmap(values, names=("beta", "tau"), title="t").axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["-1", "2"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["0", "0.5", "3"]
    shown = np.ma.filled(axis.images[0].get_array(), np.nan)
    assert shown[:2].tolist() == [[-9, 21], [-8.5, 21.5]]
    assert np.isnan(shown[2, 0])
    assert shown[2, 1] == 24
    assert axis.images[0].origin == "lower"
    written = {text.get_position(): text.get_text() for text in axis.texts}
    assert written[1, 0] == "21.0"
    assert len(written) == 5
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("beta", "tau")


def plane(pairs, text="BEF(beta={0:g}, tau={1:g}, lam=0.9, br_beta={0:g})", **fields):
    """Runs whose accuracy is 50 + 10 beta + tau."""
    return [
        record(
            f"{b} {t}", "clean", 0, final=50 + 10 * b + t, expression=text.format(b, t), **fields
        )
        for b, t in pairs
    ]


def test_losses_that_differ_in_two_parameters_make_a_heatmap():
    pairs = [(b, t) for b in (-1, 1) for t in (0, 1, 2)]
    records = [*plane(pairs), record("CE", "clean", 0), record("GCE", "clean", 0)]
    found = groups_of(records)["parameters"]
    (panel,) = found.panels
    assert panel.label == "Accuracy over two parameters: BEF, clean"
    assert len(found.runs) == 6
    (axis,) = panel.draw(True).axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("beta = br_beta", "tau")
    last = {one.spec["loss"]: one.last() for one in records}
    shown = [[last[f"{b} {t}"] for b in (-1, 1)] for t in (0, 1, 2)]
    assert axis.images[0].get_array().tolist() == shown


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([(b, 1 - b) for b in (0, 0.5, 1)], "BEF(lam={}, mu={})"),  # a balance is a line
        ([(b, 1) for b in (0, 1, 2, 3)], "BEF(beta={}, tau={})"),
        ([(b, t) for b in (0, 1) for t in (1, 2)], "{}*CE + {}*MAE"),
    ],
)
def test_other_losses_make_no_heatmap(pairs, text):
    assert "parameters" not in groups_of(plane(pairs, text))


def test_a_heatmap_of_unfinished_runs_has_empty_cells():
    pairs = [(b, t) for b in (0, 1, 2) for t in (0, 1, 2)]
    (panel,) = groups_of(plane(pairs[:5]))["parameters"].panels
    assert np.ma.count(panel.draw(True).axes[0].images[0].get_array()) == 5
    assert "parameters" not in groups_of(plane([(0, 0), (1, 1), (2, 2), (0, 1)]))


def test_features_are_drawn_where_they_were_kept(tmp_path):
    store = write(tmp_path, grid(("CE", "BEF"), ("symmetric:0.4",), (0, 1)))
    records = read_records(store)
    assert "tsne" not in groups_of(records)
    features(records[0].folder / "features.npz")
    (panel,) = groups_of(records)["tsne"].panels
    assert panel.label == f"t-SNE of features: {records[0].spec['loss']}, symmetric 0.4"


def test_a_run_that_diverged_makes_room_for_the_next_seed_and_is_noted(tmp_path):
    records = grid(("CE", "GCE"), ("symmetric:0.4",), (0, 1, 2), keep_features=True)
    records[0] = dataclasses.replace(records[0], failed="the loss is nan in epoch 3")
    records = read_records(write(tmp_path, records, name="g"))
    for one in records:
        broken = one.spec["loss"] == "GCE" or one.spec["seed"] == 1
        features(one.folder / "features.npz", scale=np.nan if broken else 1.0)
    group = groups_of(records)["tsne"]
    assert [panel.name for panel in group.panels] == ["tsne-ce-symmetric-0.4"]
    assert [(run.spec["loss"], run.spec["seed"]) for run in group.runs] == [("CE", 2)]
    missing = "features must be finite, got NaN or infinity"
    assert group.notes == [
        "Not drawn: CE, symmetric 0.4, seed 0 failed: the loss is nan in epoch 3",
        f"Not drawn: CE, symmetric 0.4, seed 1: {missing}",
        *(f"Not drawn: GCE, symmetric 0.4, seed {seed}: {missing}" for seed in (0, 1, 2)),
    ]


def test_settings_of_one_noise_have_heatmaps_of_their_own():
    records = [
        *grid(("CE",), ("symmetric:0.4",), (0,), tests=("a", "b")),
        *grid(("CE",), ("symmetric:0.4",), (0,), tests=("a", "b"), subset=500),
    ]
    assert [panel.name for panel in groups_of(records)["transition"].panels] == [
        "transition-symmetric-0.4-subset-none",
        "transition-symmetric-0.4-subset-500",
    ]


def test_labels_that_make_one_name_have_files_of_their_own():
    def panels(*names):
        return [Panel(name, name, lambda: None) for name in names]

    labels = ("BEF(alpha=8)", "BEF(alpha=-8)", f"{'x' * 300}1", f"{'x' * 300}2")
    made = [Group("a", "", "", panels(*(file_stem("a", label) for label in labels)), [])]
    made += [Group("b", "", "", panels("b", "b", "b-2"), [])]
    first, second = ([panel.name for panel in group.panels] for group in distinct_names(made))
    assert first[:2] == ["a-bef-alpha-8", "a-bef-alpha-8-2"]
    assert len(set(first)) == 4
    assert max(map(len, first)) < 200
    assert second == ["b", "b-3", "b-2"]


def test_runs_that_know_nothing_of_time_have_no_cost():
    records = grid(("CE",), ("clean",), (0,))
    records[0].about.clear()
    assert list(groups_of(records)) == ["accuracy"]


def test_saved_files_are_the_same_again(tmp_path):
    for name in ("one", "two"):
        panel = groups_of(grid())["accuracy"].panels[0]
        paths = style.save(panel.draw(True), tmp_path / f"{name}-0.4")
        assert [path.name for path in paths] == [f"{name}-0.4.svg", f"{name}-0.4.png"]
    assert (tmp_path / "one-0.4.svg").read_bytes() == (tmp_path / "two-0.4.svg").read_bytes()
    assert (tmp_path / "one-0.4.png").read_bytes()[:4] == b"\x89PNG"


def test_a_figure_in_a_page_has_its_own_ids_and_the_pages_colours():
    figure = ranks(rank_losses(Results(grid())))
    text = style.inline_svg(figure, "f7", 'a "quoted" <label>')
    assert text.startswith('<svg role="img" aria-label="a &quot;quoted&quot; &lt;label>"')
    assert "width=" not in text[: text.index(">")]
    assert 'id="f7-' in text
    assert text.count('id="') == text.count('id="f7-')
    assert style.INK not in text
    assert "var(--muted)" in text
    assert "DejaVu" not in text


def test_every_cell_of_note_is_written(tmp_path):
    figure = transition_heatmaps({"a": noise.pair(4, 0.3), "b": noise.symmetric(4, 0.0)})
    first, second = figure.axes[:2]
    written = sorted((*text.get_position(), text.get_text()) for text in first.texts)
    assert written == sorted(
        [(i, i, "70") for i in range(4)] + [((i + 1) % 4, i, "30") for i in range(4)]
    )
    assert [text.get_text() for text in second.texts] == ["100"] * 4
    assert first.get_title() == "a"
    for kind in ("png", "svg"):
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_a_hundred_classes_are_drawn_without_text():
    figure = transition_heatmaps({"many": noise.symmetric(100, 0.5)})
    assert not figure.axes[0].texts
    assert figure.axes[0].images[0].get_array().shape == (100, 100)


def test_class_names_are_on_the_axes():
    figure = transition_heatmaps({"two": torch.eye(2)}, ["cat", "dog"])
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["cat", "dog"]


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        transition_heatmaps({})


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04" + b"\0" * 100, None])
def test_damaged_features_are_named(tmp_path, content):
    path = tmp_path / "features.npz"
    np.savez(path, features=np.ones((4, 2)), labels=np.arange(4))
    path.write_bytes(path.read_bytes()[:-60] if content is None else content)
    with pytest.raises(ValueError, match=r"features\.npz is damaged: "):
        embed(path)

"""Specs: what they hash, what they refuse, how a grid becomes runs."""

import json

import pytest

from lossforge import parse
from lossforge.benchmark import RunSpec, make_grid, narrow, one_run, presets, read_grid, resolve
from lossforge.benchmark.grid import read_changes
from lossforge.benchmark.run import check_data
from lossforge.errors import SpecError

GRID = {
    "name": "small",
    "data": "digits",
    "model": "mlp",
    "noise": ["clean", "symmetric:0.4"],
    "losses": ["CE", {"name": "mine", "loss": "0.5*GCE(q=0.7) + 0.5*MAE"}],
    "seeds": [0, 1],
    "training": {"epochs": 2, "lr": 0.1},
}


def test_a_grid_is_losses_by_noise_by_seeds():
    runs = make_grid(GRID).runs()
    cells = [(run.seed, run.noise, run.loss) for run in runs]
    assert cells == [
        (seed, noise, loss)
        for seed in (0, 1)
        for noise in ("clean", "symmetric:0.4")
        for loss in ("CE", "mine")
    ]
    assert len({run.id for run in runs}) == 8
    assert {run.settings.epochs for run in runs} == {2}
    assert str(parse(runs[1].expression)) == runs[1].expression


def test_the_id_is_the_content():
    (run, *_), (again, *_) = make_grid(GRID).runs(), make_grid(GRID).runs()
    assert run.id == again.id
    assert RunSpec.model_validate_json(run.model_dump_json()).id == run.id
    for change in ({"seed": 5}, {"threads": 2}, {"hold_out": 0.1}, {"noise": "pair:0.1"}):
        assert run.model_copy(update=change).id != run.id
    # defaults that are written out are the same run
    assert make_grid({**GRID, "threads": 1}).runs()[0].id == run.id


def test_what_the_user_says_of_decay_holds():
    run = one_run("digits", "clean", "ANL-CE", changes={"l1_decay": 0.25}).spec
    assert (run.settings.l1_decay, run.settings.weight_decay) == (0.25, 0)
    grid = narrow(read_grid("digits"), changes={"weight_decay": 0.01})
    assert {run.settings.weight_decay for run in grid.runs()} == {0.01}


def test_a_whole_number_and_a_fraction_are_one_setting():
    first, second = (make_grid({**GRID, "training": {"lr": lr}}).runs()[0].id for lr in (1, 1.0))
    assert first == second


def test_a_tuple_is_the_list_that_json_has():
    first, second = (
        RunSpec(data="digits", model="mlp", loss="CE", expression="CE", training={"a": value})
        for value in ((1, {"b": (2, 3)}), [1, {"b": [2, 3]}])
    )
    assert first == second
    assert first.id == second.id


def test_parts_share_what_stands_outside():
    other = {"data": "breast-cancer", "noise": ["clean"], "training": {"lr": 0.5}}
    parts = make_grid({**GRID, "part": [{}, other]}).parts
    assert [part.data for part in parts] == ["digits", "breast-cancer"]
    assert parts[1].training == {"epochs": 2, "lr": 0.5}


def test_published_settings_come_with_their_decay():
    grid = {
        **GRID,
        "data": "cifar10",
        "model": "cnn8",
        "preset": "cifar10",
        "losses": ["JAL-CE", "GCE", "BEF"],
        "noise": ["symmetric:0.8", "instance:0.4", "human:worst"],
        "training": {"weight_decay": 1e-4},
    }
    runs = {(run.loss, run.noise): run for run in make_grid(grid).runs()}
    jal = runs["JAL-CE", "human:worst"]
    assert jal.settings.l1_decay == 5e-5
    assert jal.settings.weight_decay == 0
    assert "a=30" in jal.expression
    assert runs["GCE", "instance:0.4"].settings.weight_decay == 1e-4
    assert runs["BEF", "symmetric:0.8"].settings.l1_decay == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loses": ["CE"]}, "loses: Extra inputs"),
        ({"losses": ["CEE"]}, "CEE"),
        ({"losses": ["GCE(q=7)"]}, "q must be"),
        ({"noise": ["symetric:0.4"]}, "did you mean symmetric"),
        ({"noise": ["symmetric"]}, "needs a rate, such as symmetric:0.4"),
        ({"noise": ["symmetric:1.4"]}, r"must be in \[0, 1\], got 'symmetric:1.4'"),
        ({"noise": ["symmetric:much"]}, "must be symmetric:RATE, .* got 'symmetric:much'"),
        ({"noise": ["human:worst"]}, "human labels are known for cifar10, cifar100"),
        ({"data": "cifar10", "noise": ["human:best"]}, "unknown human labels of cifar10 'best'"),
        (
            {"data": "cifar10", "noise": ["instance:0.3"]},
            r"are 0\.2, 0\.4, 0\.6, got 'instance:0\.3'",
        ),
        ({"data": "imagenet"}, "unknown data set 'imagenet'; .*known: digits"),
        ({"model": "vgg"}, "unknown model 'vgg'; .*known: "),
        ({"training": {"epoch": 3}}, "epoch"),
        ({"training": {"lr": -1}}, "lr must be positive"),
        ({"seeds": ["zero"]}, "seeds"),
        ({"hold_out": 1.5}, r"hold_out must be in \[0, 1\)"),
        ({"threads": 0}, "threads must be 1 or more"),
    ],
)
def test_a_bad_grid_is_refused_in_one_line(change, message):
    with pytest.raises((SpecError, ValueError, TypeError), match=message) as caught:
        make_grid({**GRID, **change}).runs()
    assert "\n" not in str(caught.value)


def test_a_file_and_its_faults(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(
        'name = "mine"\ndata = "digits"\nmodel = "mlp"\nnoise = ["clean"]\nlosses = ["CE"]'
    )
    assert len(read_grid(str(path)).runs()) == 3
    path.write_text("name = ")
    with pytest.raises(SpecError, match=r"grid\.toml"):
        read_grid(str(path))
    with pytest.raises(SpecError, match=r"unknown preset or file 'nowhere'; .*known: .*digits"):
        read_grid("nowhere")


@pytest.mark.parametrize("name", presets())
def test_every_preset_resolves(name):
    for run in read_grid(name).runs():
        resolve(run)


def test_a_run_takes_the_protocol_of_its_data():
    run = one_run("cifar10", "symmetric:0.8", "JAL-CE").spec
    assert (run.model, run.settings.epochs, run.settings.lr) == ("cnn8", 120, 0.01)
    assert run.protocol == "paper"
    assert run.settings.l1_decay == 5e-5
    changed = one_run("cifar10", "clean", "CE", changes={"epochs": 3, "threads": 2}).spec
    assert (changed.settings.epochs, changed.threads, changed.protocol) == (3, 2, "own")
    assert one_run("breast-cancer", "clean", "CE").spec.data == "breast-cancer"
    with pytest.raises(SpecError, match=r"unknown setting 'epoch'; did you mean epochs"):
        one_run("digits", "clean", "CE", changes={"epoch": 3})


def test_the_command_of_a_run_gives_the_run(monkeypatch):
    import shlex

    from typer.testing import CliRunner

    from lossforge.benchmark import run as runs
    from lossforge.cli import main

    changes = {"lr": 0.5, "hold_out": 0.1}
    run = one_run("digits", "pair:0.2", "GCE", seed=4, changes=changes).spec
    seen = []
    monkeypatch.setattr(runs, "execute", lambda store, run, **_: seen.append(run.spec) or "busy")
    CliRunner().invoke(main.app, shlex.split(run.command())[1:])
    (again,) = seen
    assert again.model_copy(update={"loss": run.loss}) == run


def test_settings_are_read_as_json_or_text():
    found = read_changes(["epochs=3", "schedule=cosine", "clip=null", 'noise="a=b"'])
    assert found == {"epochs": 3, "schedule": "cosine", "clip": None, "noise": "a=b"}
    with pytest.raises(SpecError, match="key=value"):
        read_changes(["epochs"])


def test_narrowing_keeps_named_rows_and_marks_changes():
    grid = make_grid({**GRID, "protocol": "paper"})
    small = narrow(grid, losses=["mine", "BEF"], noise=["clean"], seeds=[7])
    assert [(run.loss, run.seed) for run in small.runs()] == [("mine", 7), ("BEF", 7)]
    assert "GCE" in small.runs()[0].expression
    assert small.parts[0].protocol == "paper"
    assert narrow(grid, changes={"epochs": 1}).parts[0].protocol == "reduced"


def test_missing_data_are_named_before_anything_trains(tmp_path):
    run = one_run("cifar10", "human:worst", "CE")
    with pytest.raises(FileNotFoundError, match=r"cifar-n: .*CIFAR-10_human\.pt is missing"):
        check_data([run], tmp_path)
    check_data([one_run("digits", "clean", "CE")], tmp_path)
    assert json.loads(run.spec.model_dump_json())["noise"] == "human:worst"


@pytest.mark.parametrize(
    "line",
    [
        "model_options = {hidden = 2020-01-01}",
        "data_options = {since = [2020-01-01T10:00:00]}",
        "training = {lr = 10:00:00}",
        "title = 2020-01-01",
        "seeds = 2020-01-01",
        "model_options = {hidden = nan}",
        "model_options = {hidden = [inf]}",
    ],
)
def test_what_has_no_place_in_a_spec_is_named_with_its_key(tmp_path, line):
    """TOML has dates, times and numbers that are not finite; none of them can be hashed."""
    path = tmp_path / "grid.toml"
    lines = ['name = "t"', 'data = "digits"', 'model = "mlp"', 'noise = ["clean"]']
    path.write_text("\n".join([*lines, 'losses = ["CE"]', line]))
    key = line.partition(" ")[0]
    with pytest.raises(SpecError, match=rf"^{key}.*, got (datetime|nan|inf)"):
        read_grid(str(path))

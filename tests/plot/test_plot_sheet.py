"""Every loss of the catalogue has its sheet, drawn without a warning."""

import pytest
import torch

pytest.importorskip("matplotlib")
from typer.testing import CliRunner

from lossforge import CE, names, plot, style
from lossforge.benchmark.outputs import training_outputs
from lossforge.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_loss_is_drawn_without_a_warning(name, tmp_path):
    path = tmp_path / "sheet.svg"
    result = run("plot", name, "--noise", "pair:0.3", "--out", path)  # warnings are errors
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"<?xml")
    assert "nan" not in path.read_text().lower().replace("nanum", "")


@pytest.mark.parametrize(
    ("words", "panels"),
    [(["BEF"], 7), (["CE", "--noise", "symmetric:0.4"], 5), (["CE", "MAE"], 4), (["MSE"], 3)],
)
def test_a_sheet_has_its_panels(words, panels, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    drawn = []
    save = plot.save
    monkeypatch.setattr(
        plot, "save", lambda figure, path: drawn.append(figure) or save(figure, path)
    )
    result = run("plot", *words)
    assert result.exit_code == 0, result.output
    assert len(drawn[0].axes) == panels
    names = [word for word in words if word.isupper()]
    assert (tmp_path / ("losses.svg" if len(names) > 1 else f"{names[0]}.svg")).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["own.py:Spherical"], ["TS(own.py:Cosine(c=0.3), tau=1)"], ["own.py:Spherical", "0.5*CE"]],
    ids=str,
)
def test_losses_of_ones_own_are_drawn(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        """
from dataclasses import dataclass
import torch
from lossforge import base
from lossforge.loss import ProbabilityLoss
@dataclass(frozen=True)
class Cosine(base.Smooth):
    c: float = 0.25
    def density(self, p):
        return 1 + self.c * torch.cos(torch.pi * p)
class Spherical(ProbabilityLoss):
    def from_scores(self, scores, target):
        log_p = scores.log_probs.gather(1, target[:, None])[:, 0]
        return -torch.expm1(log_p - torch.logsumexp(2 * scores.log_probs, 1) / 2)
"""
    )
    result = run("plot", *words, "--noise", "pair:0.3", "--out", "own.svg")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "own.svg").read_bytes().startswith(b"<?xml")


def test_a_correction_is_shown_with_a_noise():
    assert "0.8" in str(plot.example("forward", 10))
    assert str(plot.example("GCE(q=0.3)", 10)) == "GCE(q=0.3)"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_every_picture_is_written_alike(kind, tmp_path):
    (axis,) = plot.pull({"CE": CE()}, theme="dark").figure.axes
    paths = [tmp_path / f"{stem}.{kind}" for stem in ("given", "both", "axis")]
    style.write_picture(axis.figure, paths[0])
    style.save(axis.figure, tmp_path / "both")
    plot.save(axis, paths[2])
    assert len({path.read_bytes() for path in paths}) == 1


@pytest.mark.slow
def test_the_same_sheet_is_the_same_file(tmp_path):
    for theme in ("light", "dark"):
        paths = [tmp_path / f"{theme}-{at}.svg" for at in range(2)]
        for path in paths:
            assert run("plot", "GCE", "--theme", theme, "--out", path).exit_code == 0
        assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["BEFF"], "unknown loss"),
        (["CE", "--out", "a.pdf"], "a picture must be a .png or .svg file"),
        (["CE", "--noise", "pair:0.6"], "must have the largest weight"),
        (["CE", "--noise", "weights:0.5,0.2,0.2,0.1"], "over 4 classes, not 3"),
        (["CE", "--classes", "1"], "2 or more"),
    ],
)
def test_mistakes_are_answered_in_one_line(words, message):
    result = run("plot", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folders of three short runs: CE and BEF with the same wrong labels, CE with others."""
    store = tmp_path_factory.mktemp("runs")
    words = ["train", "--store", store, "--set", "epochs=2", "--set", "subset=200"]
    words += ["--set", "hold_out=0.2"]
    wanted = [("CE", "symmetric:0.4"), ("BEF", "symmetric:0.4"), ("CE", "symmetric:0.2")]
    folders = []
    for loss, noise in wanted:
        before = set(store.iterdir())
        result = run(*words, "--loss", loss, "--noise", noise)
        assert result.exit_code == 0, result.output
        folders += set(store.iterdir()) - before
    return folders


def test_the_shares_of_runs_are_those_of_their_own_losses_and_outputs(trained, tmp_path):
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plot, "save", lambda axes, path: drawn.append(axes))
        result = run("plot", "--run", trained[0], "--run", trained[1], "--out", tmp_path / "s.svg")
        assert result.exit_code == 0, result.output
        result = run("plot", "CE", "MAE", "--run", trained[0], "--out", tmp_path / "s.svg")
        assert result.exit_code == 0, result.output
    own, given = ([bar.get_width() for bar in axes.patches[2:]] for axes in drawn)
    names = [label.get_text() for label in drawn[0].get_yticklabels()]
    assert names == ["CE, run 1", "BEF, run 2"]
    found = training_outputs(trained[0])
    assert found.logits.shape == (160, 10)  # what is held out was not trained on
    wrong = found.given != found.true
    gradient = found.logits.double().softmax(1) - torch.eye(10)[found.given]
    sizes = gradient.abs().sum(1)
    assert own[0] == given[0] == pytest.approx(float(sizes[wrong].sum() / sizes.sum()))
    assert own[0] != own[1]
    assert given[0] != given[1]


@pytest.mark.parametrize(
    ("losses", "runs", "message"),
    [
        ([], [], "name a loss, or a run by --run"),
        (["CE"], [0, 1], "outputs of one --run, got 2"),
        ([], [0, 2], "the same noisy labels"),
    ],
)
def test_shares_that_cannot_be_drawn_are_named(trained, losses, runs, message, tmp_path):
    words = [word for at in runs for word in ("--run", trained[at])]
    result = run("plot", *losses, *words, "--out", tmp_path / "s.svg")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())

"""Every loss of the catalogue has its sheet, drawn without a warning."""

import pytest

pytest.importorskip("matplotlib")
from typer.testing import CliRunner

from lossforge import names, plot
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


def test_a_correction_is_shown_with_a_noise():
    assert "0.8" in str(plot.example("forward", 10))
    assert str(plot.example("GCE(q=0.3)", 10)) == "GCE(q=0.3)"


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

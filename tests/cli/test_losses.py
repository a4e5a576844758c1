"""`lossforge losses` as a user runs it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

import lossforge
from lossforge.catalog import ENTRIES, REFERENCES, describe
from lossforge.catalog.describe import render_markdown
from lossforge.cli.main import app


def run(*arguments: str):
    return CliRunner().invoke(app, ["losses", *arguments])


def test_the_list_is_tab_separated_when_piped():
    result = run()
    assert result.exit_code == 0
    header, *lines = result.stdout.splitlines()
    assert header.split("\t") == list(describe.COLUMNS)
    assert [line.split("\t")[0] for line in lines] == list(ENTRIES)
    assert {len(line.split("\t")) for line in lines} == {len(describe.COLUMNS)}


@pytest.mark.parametrize("width", [60, 80, 99, 100, 120, 200])
def test_the_table_fits_the_terminal(width):
    text = describe.table(width)
    assert max(map(len, text.splitlines())) <= width
    for name, entry in ENTRIES.items():
        assert any(line.split()[0].rstrip("*") == name for line in text.splitlines() if line)
        assert REFERENCES[entry.reference].short in text


@pytest.mark.parametrize(
    "name", [*ENTRIES, *map(str.lower, ENTRIES), "logitclip", "ece+mae", "anl_ce"]
)
def test_every_name_is_shown_in_any_case(name):
    result = run(name)
    assert result.exit_code == 0
    entry = lossforge.catalog.find(name.replace("_", "-"))
    assert result.stdout.splitlines()[0] == entry.name
    for label in ("formula", "parameters", "kind", "python", "reference", "published"):
        assert f"\n  {label}" in result.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_details_fit_the_width_unless_a_word_does_not(name):
    lines = describe.detail(name, 80).splitlines()
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)


def test_one_loss_shows_published_settings_caveat_and_sources():
    text = " ".join(run("JAL-FL").stdout.split())
    assert "cifar10 [1] alpha=1, beta=1, a=30" in text.replace(
        "gamma=0.5, stop_gradient=True, ", ""
    )
    assert "L1 decay 5e-5" in text
    assert "cswjl/joint-asymmetric-loss@0f9eb7b" in text
    assert "released behaviour" in text
    assert "https://arxiv.org/abs/2507.17692" in text
    assert 'lossforge.make("JAL-FL", preset="cifar10")' in text


def test_an_expression_shows_how_it_is_read_and_its_members():
    text = run("0.5*gce(q=0.7) + 0.5*MAE").stdout
    parsed = str(lossforge.parse("0.5*GCE(q=0.7) + 0.5*MAE"))
    assert f"parsed      {parsed}" in text
    assert text.index("member      GCE") < text.index("member      MAE")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("GCE", ["zhang2018gce"]),
        ("jal-ce", ["wang2025jal"]),
        ("0.5*GCE(q=0.7) + 0.5*MAE", ["zhang2018gce", "ghosh2017mae"]),
        ("GCE + 2*GCE(q=0.1)", ["zhang2018gce"]),
        ("TS(exponential(), tau=1) + NCE", ["paper", "ma2020apl"]),
    ],
)
def test_cite_prints_bibtex_of_every_member(text, keys):
    result = run(text, "--cite")
    assert result.exit_code == 0
    assert result.stdout.strip() == "\n\n".join(REFERENCES[key].bibtex for key in keys)


def test_cite_alone_prints_the_whole_bibliography_once():
    text = run("--cite").stdout
    assert all(text.count(f"{{{entry.reference},") == 1 for entry in ENTRIES.values())


def test_an_unknown_name_exits_with_2_and_helps():
    result = run("GEC")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "unknown loss 'GEC'; did you mean " in result.stderr
    assert "GCE" in result.stderr
    assert "`lossforge losses` lists all" in result.stderr


@pytest.mark.parametrize("text", ["0.5*FOO", "GCE(", "GCE(q=-1)", "GCE(r=1)", "", "1 + 1", "foo"])
@pytest.mark.parametrize("more", [(), ("--cite",)])
def test_what_cannot_be_read_exits_with_2_and_one_line(text, more):
    result = run(text, *more)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output
    assert len(result.stderr.splitlines()) == 1


def test_markdown_is_the_page():
    assert run("--markdown").stdout == render_markdown()
    assert run("--markdown", "GCE").exit_code == 2


def python_m(*arguments: str, setup: str = "") -> subprocess.CompletedProcess[str]:
    script = f"{setup}\nimport sys; sys.argv = ['lossforge', *{list(arguments)!r}]\n"
    script += "from lossforge.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ}
    )


def test_the_command_says_how_to_get_typer():
    result = python_m("losses", setup="import sys; sys.modules['typer'] = None")
    assert result.returncode == 1
    assert 'pip install "lossforge[bench]"' in result.stderr
    assert "Traceback" not in result.stderr


def test_python_m_runs_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "lossforge", "--version"], capture_output=True, text=True
    )
    assert result.stdout.strip() == lossforge.__version__

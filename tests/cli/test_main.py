"""The `lossforge` command as a whole: quick help, full texts, one name per option."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("typer")
import typer
from typer.testing import CliRunner

import lossforge.audit
import lossforge.tuning
from lossforge import theory
from lossforge.cli import options, output
from lossforge.cli.main import COMMANDS, app
from lossforge.noise.spec import KINDS

GROUP = typer.main.get_command(app)
NAMED = ",cat,dog,cow\ncat,0.7,0.2,0.1\ndog,0,1,0\ncow,0.1,0.1,0.8\n"
# a package without its __init__.py: what the commands themselves import
LIGHT = f"""
import sys, types
package = types.ModuleType("lossforge")
package.__path__, package.__version__ = [{str(Path(lossforge.__file__).parent)!r}], "1"
sys.modules["lossforge"] = package
"""
HELP = """
from lossforge.cli.main import app
app({words!r}, standalone_mode=False)
print("torch" in sys.modules)
"""


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def commands(group=GROUP, words=()):
    """Every command with its words, those of `lossforge data` included."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name), command
        if hasattr(command, "list_commands"):
            yield from commands(command, (*words, name))


ALL = dict(commands())


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_help_does_not_import_torch(words):
    script = LIGHT + HELP.format(words=[*words, "--help"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_the_installed_command_imports_no_more_than_the_package(word):
    script = "import sys, lossforge; before = 'torch' in sys.modules; sys.argv[1:] = [{!r}]\n"
    script += "from lossforge.__main__ import main\ntry:\n    main()\nfinally:\n"
    script += "    print(before == ('torch' in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script.format(word)], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "True", done.stderr


def test_the_list_of_commands_has_the_first_lines_of_their_helps():
    assert {(name,): line for name, line in COMMANDS.items()} == {
        words: command.help.split("\n\n")[0].replace("\n", " ")
        for words, command in ALL.items()
        if len(words) == 1
    }


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_help_with_its_options(words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert " ".join(ALL[words].help.split("\n\n")[0].split()) in text
    names = [name for parameter in ALL[words].params for name in parameter.opts]
    assert all(name in text for name in names if name.startswith("--"))


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_lists_of_commands_are_not_cut(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = " ".join(run("--help").stdout.split())
    assert all(f"{name} {line}" in text for name, line in COMMANDS.items())


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_commands_of_data_are_not_cut(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert "..." not in run("data", "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["certfy"], "unknown command 'certfy'; did you mean certify"),
        (["nothing"], "known: losses, certify"),
        (["data", "lst"], "Did you mean 'list'?"),
        (["certify", "BEF", "--nois", "pair:0.4"], "--noise"),
        (["certify", "BEFF", "--noise", "weights:0.6,0.4"], "did you mean BEF"),
        (["certify", "BEF", "--noise", "symetric:0.4"], "did you mean symmetric"),
    ],
)
def test_a_misspelt_name_gets_a_hint(words, hint):
    result = run(*words)
    assert result.exit_code == 2
    assert hint in result.stderr


@pytest.mark.parametrize("command", options.RENAMED)
def test_an_old_name_of_an_option_means_the_new_one(command, capsys):
    known = {name for parameter in ALL[(command,)].params for name in parameter.opts}
    for old, new in options.RENAMED[command].items():
        found = options.with_new_names(ALL[(command,)], [old, "a", f"{old}=b", "--", old])
        assert new in known
        assert old not in known
        assert found == [new, "a", f"{new}=b", "--", old]
        assert capsys.readouterr().err.splitlines() == [f"note: {old} is now {new}"] * 2


def test_an_old_name_works_from_the_shell(tmp_path):
    path = tmp_path / "wrong.csv"
    path.write_text("0,1,0\n0,0,1\n1,0,0\n")
    result = run("frontier", "MAE", "--classes", "3", "--direction", path, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[2]["rate"] == pytest.approx(0.5)
    assert result.stderr == "note: --direction is now --noise\n"


def test_options_have_one_spelling():
    known = {name for command in ALL.values() for p in command.params for name in p.opts}
    old = {name for names in options.RENAMED.values() for name in names}
    assert not known & old


def test_choices_and_defaults_in_help_are_those_of_the_library():
    assert get_args(options.Claim) == tuple(theory.CLAIMS)
    forms = [kind.form for kind in KINDS.values() if kind.limit is not None]
    assert all(form in options.FORMS for form in forms)
    for words, function in (
        (("audit",), lossforge.audit.audit),
        (("audit",), lossforge.audit.read_subject),
        (("tune",), lossforge.tuning.tune),
    ):
        defaults = {parameter.name: parameter.default for parameter in ALL[words].params}
        for name in ("folds", "repeats", "epochs", "trials", "size", "seed", "splits"):
            theirs = inspect.signature(function).parameters.get(name)
            if theirs is not None and name in defaults:
                assert defaults[name] == theirs.default, name


def test_commas_separate_losses_outside_parentheses_only():
    assert options.separate(["GCE(q=0.5), NCE+RCE(a=1, b=2)", "CE"]) == [
        "GCE(q=0.5)",
        "NCE+RCE(a=1, b=2)",
        "CE",
    ]
    assert options.separate(None) == []


def test_a_data_set_completes_a_noise():
    words = ("certify", "BEF", "--noise", "asymmetric:0.4", "--json")
    digits = json.loads(run(*words, "--data", "digits").stdout)
    assert digits == json.loads(
        run("certify", "BEF", "--noise", "asymmetric:mnist:0.4", "--json").stdout
    )
    named = run("certify", "BEF", "--noise", "symmetric:0.4", "--data", "cifar100")
    assert "(symmetric:0.4, 100 classes)" in named.stdout
    next_ = json.loads(run(*words, "--data", "breast-cancer").stdout)
    assert next_ == json.loads(
        run("certify", "BEF", "--noise", "pair:0.4", "--classes", "2", "--json").stdout
    )
    wrong = run("certify", "BEF", "--noise", "pair:0.4", "--data", "digits", "--classes", "3")
    assert "digits has 10 classes, got --classes 3" in wrong.stderr


@pytest.mark.slow
def test_the_suggested_command_has_the_same_noise():
    result = run("certify", "CE", "--noise", "asymmetric:0.4", "--data", "digits")
    assert "`lossforge design --noise asymmetric:0.4 --data digits`" in result.stdout
    designed = run("design", "--noise", "asymmetric:0.4", "--data", "digits")
    assert "lossforge train --data digits --noise asymmetric:0.4 --loss " in designed.stdout


@pytest.mark.slow
def test_class_names_of_a_file_are_in_the_answers(tmp_path):
    path = tmp_path / "T.csv"
    path.write_text(NAMED)
    shown = run("certify", "CE", "--noise", path).stdout
    assert "binding   class cat against class dog" in shown
    assert "witness   u[cat] = " in shown
    assert (
        "class cat against class dog, which gets 66.67 %"
        in run("frontier", "MAE", "--noise", path).stdout
    )
    found = json.loads(run("certify", "CE", "--noise", path, "--json").stdout)
    assert found["classes"] == ["cat", "dog", "cow"]
    assert (found["row"], found["rival"]) == (0, 1)
    assert (
        json.loads(run("design", "--noise", path, "--json").stdout)["classes"] == found["classes"]
    )
    rows = json.loads(run("frontier", "MAE", "--noise", path, "--json").stdout)
    assert [one.get("classes") for one in rows] == [None, None, found["classes"]]


@pytest.mark.slow
def test_a_direction_needs_neither_a_rate_nor_noise_in_every_class():
    def rate(*words):
        return json.loads(run("frontier", "AGCE", *words, "--json").stdout)[-1]["rate"]

    pair = rate("--classes", "10", "--noise", "pair:0.3")
    assert pair == pytest.approx(theory.frontier(lossforge.make("AGCE"), 10, "pair").rate)
    assert rate("--data", "cifar10", "--noise", "asymmetric:0.1") == pytest.approx(pair)
    assert rate("--noise", "weights:0.3,0.7,0") == pytest.approx(
        theory.frontier(lossforge.make("AGCE"), 3, "pair").rate
    )
    clean = run("frontier", "AGCE", "--classes", "10", "--noise", "clean")
    assert "no wrong labels" in clean.stderr


def test_a_table_fits_the_terminal_and_is_plain_when_piped(monkeypatch):
    rows = [("loss", "note"), ("GCE[q]", "a note that is far too long for a narrow terminal")]
    assert output.table(rows) == ["loss    note", f"GCE[q]  {rows[1][1]}"]
    assert len(output.table(rows, width=40)[1]) < len(rows[1][1])
    monkeypatch.setattr(output, "in_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    lines = output.table(rows)
    assert max(map(len, lines)) <= 30
    assert " ".join(" ".join(lines).split()) == f"loss note GCE[q] {rows[1][1]}"

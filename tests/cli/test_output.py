"""What commands print: names from files and their owners never control the terminal."""

import io
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("typer")
import typer
from typer.testing import CliRunner

from lossforge.cli import options, output
from lossforge.cli.main import app
from lossforge.cli.output import visible_controls

RED = "\x1b[31m\x1b]0;owned\x07"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_streams_show_controls_instead_of_sending_them(monkeypatch, name):
    stream = io.StringIO()
    monkeypatch.setattr(sys, name, stream)
    with visible_controls():
        getattr(sys, name).write(f"a{RED}\r\u202e\udcffb\n\tc")
        getattr(sys, name).writelines(["\x07", "d"])
    assert getattr(sys, name) is stream
    shown = r"a\x1b[31m\x1b]0;owned\x07\r\u202e\xffb" + "\n\tc" + r"\x07d"
    assert stream.getvalue() == shown


def test_a_terminal_gets_bold_and_nothing_else(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    with visible_controls():
        output.echo_styled(f"\x1b[1mCE\x1b[0m{RED}\x1b[8m")
    assert stream.getvalue() == "\x1b[1mCE\x1b[0m" + r"\x1b[31m\x1b]0;owned\x07\x1b[8m" + "\n"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_bold_in_a_name_is_not_obeyed(monkeypatch, name):
    stream = Terminal()
    monkeypatch.setattr(sys, name, stream)
    with visible_controls():
        getattr(sys, name).write("class \x1b[1mcat")
    assert stream.getvalue() == r"class \x1b[1mcat"
    assert output.labelled("data", "a\x1b[1m") == [r"data      a\x1b[1m"]


def test_a_progress_bar_obeys_no_name(monkeypatch):
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with (
        visible_controls(),
        output.progress_bar("{task.description}", "{task.fields[rest]}") as bar,
    ):
        bar.add_task("[red]a[/nothing]\x1b]0;owned\x07", rest="[b]c")
    assert r"[red]a[/nothing]\x1b]0;owned\x07 [b]c" in stream.getvalue()
    assert "\x07" not in stream.getvalue()


@pytest.mark.parametrize("status", [0, 1])
def test_an_exit_is_not_an_error(capsys, status):
    with pytest.raises(typer.Exit) as stopped, options.one_line_errors():
        raise typer.Exit(status)
    assert stopped.value.exit_code == status
    assert capsys.readouterr().err == ""


def test_what_the_stream_cannot_encode_is_shown(monkeypatch):
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, "ascii", write_through=True))
    with visible_controls():
        sys.stdout.write("94.2 ± 0.3")
    assert content.getvalue() == rb"94.2 \xb1 0.3"


@pytest.mark.parametrize(
    "words",
    [
        (RED,),
        ("losses", RED),
        ("losses", f"--{RED}"),
        ("report", RED),
        ("audit", f"{RED}.csv"),
        ("audit", "digits", "--folds", RED),
        ("certify", RED, "--noise", "symmetric:0.2", "--classes", "3"),
        ("certify", "CE", "--noise", f"{RED}.csv"),
        ("bench", f"{RED}.toml"),
        ("bench", "--seeds", RED),
        ("train", "--data", RED),
        ("data", "doctor", RED),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)
def test_no_error_controls_the_terminal(words):
    result = run(*words)
    assert result.exit_code == 2
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def test_class_names_of_a_matrix_do_not_control_the_terminal(tmp_path):
    path = tmp_path / "T.csv"
    path.write_text(f",{RED}a,b\n{RED}a,0.4,0.6\nb,0.1,0.9\n")
    result = run("certify", "CE", "--noise", path)
    assert "\x1b" not in result.output


@pytest.mark.parametrize("command", ["certify", "frontier"])
def test_more_classes_than_memory_holds_are_refused_with_the_limit(command):
    words = ["--noise", "symmetric:0.3", "--classes", 10**9]
    result = run(command, "MAE", *words)
    assert result.exit_code == 2
    assert "--classes must be at most 25,000, got 1,000,000,000" in result.stderr


def test_too_little_memory_is_told_in_words(capsys):
    message = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."
    for error in (RuntimeError(message), MemoryError()):
        with pytest.raises(options.typer.Exit), options.one_line_errors():
            raise error
    assert capsys.readouterr().err.splitlines() == 2 * [
        "error: there is not enough memory for this"
    ]


def test_the_hint_to_report_can_be_pasted(monkeypatch, tmp_path):
    monkeypatch.setattr("lossforge.benchmark.executors.run_all", lambda *words, **options: None)
    done = SimpleNamespace(failed=None, tested_as_given=False)
    monkeypatch.setattr("lossforge.benchmark.records.read_record", lambda folder: done)
    store = tmp_path / "my $(runs)"
    words = ["--loss", "CE", "--noise", "clean", "--seeds", "0", "--set", "epochs=1"]
    result = run("bench", "digits", *words, "--store", store)
    assert result.exit_code == 0, result.output
    assert f"`lossforge report '{store}'` makes tables" in result.stderr

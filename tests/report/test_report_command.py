"""`lossforge report` as a user runs it."""

import json
import re
import shutil
import webbrowser

import pytest
import typer
from record_fixtures import grid, write
from typer.testing import CliRunner

from lossforge.benchmark.archive import pack
from lossforge.cli.report import report

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(report)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def store(tmp_path):
    return write(tmp_path / "runs", grid(("CE", "GCE"), ("clean", "symmetric:0.4"), (0, 1)))


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("terminal", "*: the two best"),
        ("markdown", "| CE |"),
        ("latex", "CE & "),
        ("csv", "mean,std"),
    ],
)
def test_a_format_is_printed_and_nothing_is_written(store, form, sign):
    result = run(store, "--format", form)
    assert result.exit_code == 0, result.output
    assert sign in result.stdout
    assert "\x1b" not in result.stdout
    assert not (store / "report").exists()


@pytest.mark.slow
def test_without_options_the_page_is_written_into_the_store(store):
    result = run(store)
    assert result.exit_code == 0, result.output
    assert str(store / "report" / "index.html") in result.stderr
    assert f"--out {store}/report" in (store / "report" / "index.html").read_text()
    assert run(store, "--format", "csv").exit_code == 0  # the report is no run


@pytest.fixture
def opened(monkeypatch):
    pages = []
    monkeypatch.setattr("webbrowser.open", lambda address: pages.append(address) or True)
    return pages


class Screen:
    """The module `sys` as it is in a terminal."""

    class stdout:  # noqa: N801
        @staticmethod
        def isatty():
            return True


@pytest.mark.slow
def test_the_page_is_opened_in_a_terminal_when_asked_for(store, opened, monkeypatch):
    monkeypatch.setattr("lossforge.cli.output.sys", Screen)
    page = store / "report" / "index.html"
    result = run(store)
    assert opened == []
    result = run(store, "--open")
    assert result.exit_code == 0, result.output
    assert opened == [page.resolve().as_uri()]
    assert f"report: {page}" in result.stderr
    assert run(store, "--open", "--format", "csv").exit_code == 0  # no page, nothing to open
    assert len(opened) == 1


@pytest.mark.slow
def test_outside_a_terminal_no_page_is_opened(store, opened):
    result = run(store, "--open")
    assert result.exit_code == 0, result.output
    assert opened == []
    assert f"report: {store / 'report' / 'index.html'}" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("error", [webbrowser.Error, OSError])
def test_a_machine_without_a_browser_is_no_error(store, monkeypatch, error):
    def fail(address):
        raise error("no browser")

    monkeypatch.setattr("webbrowser.open", fail)
    monkeypatch.setattr("lossforge.cli.output.sys", Screen)
    result = run(store, "--open")
    assert result.exit_code == 0, result.output
    assert "no browser" not in result.output


@pytest.mark.slow
def test_out_baseline_and_table(store, tmp_path):
    result = run(
        store, "--out", tmp_path / "o", "--format", "csv", "--baseline", "GCE", "--table", "mean10"
    )
    assert result.exit_code == 0, result.output
    assert ",mean10," in result.stdout
    text = (tmp_path / "o" / "tables.md").read_text()
    assert "Difference to GCE" in text
    assert "mean of the last ten epochs" in text


def test_a_highlighted_loss_is_emphasised(tmp_path):
    losses = ("CE", "GCE", "JAL-CE", "BEF", "BQF", "MAE")
    store = write(tmp_path / "runs", grid(losses, ("clean",), (0,)))
    result = run(store, "--highlight", "JAL-CE,GCE")
    assert result.exit_code == 0, result.output
    text = (store / "report" / "index.html").read_text()
    strong = re.findall(r"<li><button[^>]*class=strong>.*?</svg>(.*?)</button>", text, re.S)
    assert {"CE", "GCE", "JAL-CE"} <= set(strong)
    assert len(set(strong)) < len(losses)
    assert "--highlight JAL-CE --highlight GCE" in text


@pytest.mark.slow
def test_long_names_leave_room_for_the_figures(tmp_path):
    long = "0.9*TS(series(coefficients=[0.9, 0, -0.5, 0, 0.1]), a=0.2) + 0.1*BR(exponential())"
    store = write(tmp_path / "runs", grid(("CE", "GCE", long), ("clean", "symmetric:0.4"), (0,)))
    assert run(store).exit_code == 0  # a collapsed figure is a warning, and a warning an error


@pytest.mark.slow
def test_without_a_format_three_lines_end_the_output(store):
    lines = run(store).stdout.splitlines()
    assert [line[:6] for line in lines[-3:]] == ["seen  ", "sure  ", "next  "]
    assert "seen  " not in run(store, "--format", "terminal").stdout


@pytest.mark.parametrize("width", [80, 100])
def test_nothing_is_wider_than_the_terminal_and_the_ranks_come_early(tmp_path, width, monkeypatch):
    long = "0.9*TS(series(coefficients=[0.9, 0, -0.5, 0, 0.1]), a=0.2) + 0.1*BR(exponential())"
    noises = ("clean", "symmetric:0.4", "asymmetric:0.4")
    store = write(tmp_path / "runs", grid(("CE", "GCE", "CEeps+MAE", long), noises, (0, 1)))
    monkeypatch.setattr("lossforge.cli.output.sys", Screen)
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(store, "--format", "terminal")
    assert result.exit_code == 0, result.output
    lines = re.sub("\x1b\\[[01]m", "", result.stdout).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    titles = ("test accuracy", "Mean rank over", "Difference to CE", "Difference to the best")
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert "not worse" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "there is no folder nowhere"),
        (("{empty}",), "no finished run"),
        (("{store}", "--baseline", "XYZ"), "no loss 'XYZ' here, only CE, GCE"),
        (("{store}", "--highlight", "XYZ"), "no loss 'XYZ' here, only CE, GCE"),
        (("{store}", "--table", "best"), "'best'"),
        (("{store}", "--format", "pdf"), "'pdf'"),
    ],
)
def test_what_cannot_be_done_is_said_with_status_2(store, tmp_path, arguments, said):
    (tmp_path / "empty").mkdir()
    names = {"store": store, "empty": tmp_path / "empty"}
    result = run(*(word.format(**names) for word in arguments))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_unfinished_runs_are_counted(store):
    (store / "grid-g.json").write_text('{"name": "g", "runs": ["later", "later still"]}')
    result = run(store, "--format", "csv")
    assert "note: 2 runs are not finished" in result.stderr
    assert result.stdout.startswith("data,")


def test_a_damaged_record_is_named(store):
    path = next(store.glob("*/record.json"))
    path.write_text("{")
    result = run(store, "--format", "csv")
    assert result.exit_code == 2
    assert str(path) in result.stderr


MALFORMED = {
    "empty": b"",
    "a list": b"[]",
    "wrong types": b'{"id": 1, "spec": [], "metrics": {"a": 1}, "classes": "10"}',
    "missing keys": b'{"id": "a"}',
    "a key twice": b'{"id": "a", "id": "b"}',
    "NaN": b'{"noise_rate": NaN}',
    "a number of 5000 digits": b'{"classes": ' + b"9" * 5000 + b"}",
    "nested 100,000 times": b'{"spec": ' + b"[" * 100_000,
    "not UTF-8": b'{"id": "\xff\xfe"}',
    "a lone surrogate": b'{"id": "\\ud800"}',
    "binary": bytes(range(256)),
    "a folder": None,
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("name", ["record.json", "about.json", "grid-g.json"])
def test_malformed_files_are_named_and_the_rest_is_shown(store, name, text):
    path = store / name if name.startswith("grid") else next(store.glob(f"*/{name}"))
    path.unlink(missing_ok=True)
    if text is None:
        path.mkdir()
    else:
        path.write_bytes(text)
    result = run(store, "--format", "csv")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert f"error: {path} is damaged: " in result.stderr
    assert result.stdout.startswith("data,")
    assert len(result.stderr) < 1000


def test_an_edited_accuracy_is_never_shown(store):
    path = next(store.glob("*/record.json"))
    content = json.loads(path.read_text())
    content["metrics"][-1]["tests"]["test"]["top1"] = 99.99
    path.write_text(json.dumps(content))
    result = run(store, "--format", "csv", "--table", "last")
    assert result.exit_code == 2
    assert f"error: {path} is damaged: its content does not match its seal" in result.stderr
    assert "99.99" not in result.stdout


def test_runs_without_a_seal_are_shown_and_counted(store):
    path = next(store.glob("*/record.json"))
    content = json.loads(path.read_text())
    del content["seal"]
    path.write_text(json.dumps(content))
    result = run(store, "--format", "csv")
    assert result.exit_code == 0, result.output
    assert "note: 1 runs carry no seal yet; `lossforge bench` adds it" in result.stderr


def test_a_copied_run_is_named(store):
    path = next(store.glob("*/record.json")).parent
    shutil.copytree(path, store / "copy")
    result = run(store, "--format", "csv")
    assert result.exit_code == 2
    assert f"is a copy of run {path.name}, in a folder of another name" in result.stderr


@pytest.mark.slow
def test_packed_runs_are_reported_beside_their_file(store, tmp_path):
    path = tmp_path / "digits.jsonl.gz"
    pack(store, path)
    whole, packed = (run(place, "--format", "csv") for place in (store, path))
    assert packed.exit_code == 0, packed.output
    assert packed.stdout == whole.stdout
    result = run(path)
    assert result.exit_code == 0, result.output
    page = tmp_path / "digits-report" / "index.html"
    assert str(page) in result.stderr
    text = page.read_text()
    for title in ("Accuracy during training", "Fitting wrong labels", "Recovering true labels"):
        assert title in text
    assert run(path, "--out", tmp_path / "elsewhere").exit_code == 0
    assert (tmp_path / "elsewhere" / "index.html").exists()

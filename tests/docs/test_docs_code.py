"""Every block of code on every page runs, and prints what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typer
from doc_pages import DATA, Block, blocks, name, pages, script, unlike
from page_run import MARK
from typer.testing import CliRunner

import lossforge
from lossforge.benchmark import read_grid
from lossforge.cli.main import app

# its blocks need a framework each: tests/integrations/test_integrations_page.py runs them
ELSEWHERE = "docs/integrations.md"
NOT_RUN = 3  # blocks, at most
PAGES = [page for page in pages() if blocks(page)]
SCRIPTS = [page for page in PAGES if name(page) != ELSEWHERE and "mark(" in script(page)[0]]
COMMANDS = [
    pytest.param(words, id=f"{name(page)}:{block.line + 1}:{' '.join(words)[:60]}")
    for page in PAGES
    for block in blocks(page)
    if not (block.skipped or (block.prompted and block.runs))
    for words in block.commands()
]
# verbs that answer in seconds and need no data
QUICK = ("losses", "certify", "frontier", "design", "data list", "bench --list")
TARGETS = re.findall(r"^([a-z-]+):", (Path(__file__).parents[2] / "Makefile").read_text(), re.M)


@pytest.fixture(autouse=True)
def _as_a_reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)  # tests/conftest.py restores it
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("LOSSFORGE_DATA", str(tmp_path / "none"))


@pytest.mark.slow
@pytest.mark.parametrize("page", SCRIPTS, ids=map(name, SCRIPTS))
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(page, tmp_path):
    code, shown = script(page)
    for needed in {block.needs for block in blocks(page) if block.needs and block.runs}:
        (tmp_path / Path(needed).name).symlink_to(DATA.resolve() / needed)
    file = tmp_path / f"{page.stem}.py"
    file.write_text(code)
    paths = [str(Path(__file__).parent), str(Path(lossforge.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    _, *parts = done.stdout.split(MARK)
    real = {int(line): text for line, text in zip(parts[::2], parts[1::2], strict=True)}
    wrong = {line + 1: unlike(text, real[line]) for line, text in shown.items()}
    assert not any(wrong.values()), "\n".join(f"line {at}: {what}" for at, what in wrong.items())


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_is_run_or_at_least_understood(words):
    program, *rest = words
    if "-m" in rest:  # python -m lossforge, torchrun -m lossforge
        program, rest = rest[rest.index("-m") + 1], rest[rest.index("-m") + 2 :]
    if program == "make":
        assert rest[0] in TARGETS
    elif program == "python":
        assert (Path(__file__).parents[2] / rest[0]).is_file()
    elif program == "lossforge":
        _parse(rest)
        if " ".join(rest).startswith(QUICK) or "--dry-run" in rest:
            done = CliRunner().invoke(app, rest)
            assert done.exit_code == 0, done.output
    else:
        assert program == "pip"
        assert rest[0] == "install"


def _parse(words: list[str]) -> None:
    """Let the command line check names, options and types, and do nothing."""
    command, parent = typer.main.get_command(app), None
    while hasattr(command, "commands"):
        verb, *words = words
        parent = command.make_context(verb, [], parent=parent, resilient_parsing=True)
        command = command.get_command(parent, verb)
    command.make_context(None, words, parent=parent)


@pytest.mark.parametrize("words", [["certify"], ["certify", "BEF", "--nose", "pair:0.4"]])
def test_a_wrong_command_is_not_understood(words):
    with pytest.raises(Exception, match=r"Missing|No such option"):
        _parse(words)


def test_grids_on_the_pages_are_grids(tmp_path):
    grids = [block for page in PAGES for block in blocks(page) if block.language == "toml"]
    assert grids
    for block in grids:
        file = tmp_path / "grid.toml"
        file.write_text(block.code)
        assert read_grid(str(file)).runs()


def test_few_blocks_are_not_run_and_each_says_why():
    skipped = [block for page in PAGES for block in blocks(page) if block.skipped]
    assert len(skipped) <= NOT_RUN


def test_a_page_with_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n<!-- given: x = 40.0 -->\n```python\nprint(x, 3)\n```\n```text\n41.5 3\n```\n"
    )
    code, shown = script(page)
    assert code.splitlines()[2:5] == ["x = 40.0", "mark(3)", "print(x, 3)"]
    assert shown == {3: "41.5 3\n"}
    assert unlike(shown[3], "40.0 3") is None
    assert unlike(shown[3], "40.0 4") == "3 is 4"
    assert unlike(shown[3], "30.0 3") == "41.5 is 30.0"
    assert unlike(shown[3], "40.0 3 more") is not None
    assert unlike("took ... s, 1.0 %", "took 3.14 s, 1.02 %") is None


def test_blocks_that_need_data_are_run():
    needing = [(page, block) for page in PAGES for block in blocks(page) if block.needs]
    assert needing
    if missing := sorted({block.needs for _, block in needing if not block.runs}):
        pytest.skip(f"not in LOSSFORGE_DATA, so that blocks are not run: {', '.join(missing)}")
    for page, block in needing:
        line = script(page)[0].splitlines()[block.line + block.prompted]
        assert line.startswith("mark("), (name(page), block.line + 1)


def test_a_block_may_need_a_file_of_data(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    block = "<!-- needs: set/data.json -->\n```python\nopen('data.json')\n```\n"
    page.write_text(f"{block}```text\n1\n```\n")
    monkeypatch.setattr("doc_pages.DATA", tmp_path)
    code, shown = script(page)
    assert "data.json" not in code
    assert not shown
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.json").touch()
    assert "open('data.json')" in script(page)[0]


def test_a_block_may_be_left_out_with_a_reason(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n")
    assert blocks(page) == [Block(1, "python", "1 / 0\n", "needs a GPU")]
    assert "1 / 0" not in script(page)[0]

"""A table is a pure function of records; golden files hold what it reads like."""

import csv
import dataclasses
import io
import random
import re
from pathlib import Path

import pytest
from record_fixtures import EPOCHS, grid, record

from lossforge.report import formats
from lossforge.report.results import Results
from lossforge.report.tables import (
    Cell,
    Field,
    Sheet,
    accuracy_sheet,
    accuracy_tables,
    two_best,
)

GOLDEN = Path(__file__).parent / "golden"
PAPER = {
    "rows": [
        {"loss": "CE", "data": "digits", "noise": "symmetric:0.4", "test": "test", "k": "top1"}
        | {"mean": 58.07, "std": 0.19},
        {"loss": "BEF", "data": "digits", "noise": "clean", "test": "test", "k": "top1"}
        | {"mean": 91.0, "std": None},
    ]
}


def flat(*values: float) -> list[dict]:
    """Epochs with these accuracies."""
    return [
        {"epoch": i, "tests": {"test": {"top1": value, "top5": None}}, "validation": None}
        for i, value in enumerate(values, start=1)
    ]


def sheet_of(records, **options):
    (table,) = accuracy_tables(Results(records), **options)
    return accuracy_sheet(table)


WRITERS = {
    "terminal.txt": lambda table: formats.terminal(accuracy_sheet(table)),
    "wide.txt": lambda table: formats.terminal(accuracy_sheet(table), 44),
    "markdown.md": lambda table: formats.markdown(accuracy_sheet(table)),
    "latex.tex": lambda table: formats.latex(accuracy_sheet(table)),
    "table.csv": lambda table: formats.table_csv([table]).rstrip("\n"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_golden(name):
    (table,) = accuracy_tables(Results(grid()[:-1]), "last", PAPER)
    assert WRITERS[name](table) + "\n" == (GOLDEN / name).read_text(encoding="utf-8")


def test_rows_and_columns_are_in_the_order_of_the_records():
    (table,) = accuracy_tables(Results(grid(("GCE", "BEF", "CE"), ("symmetric:0.4", "clean"))))
    assert list(table.losses) == ["GCE", "BEF", "CE"]
    assert [column.label for column in table.columns] == ["symmetric 0.4", "clean"]


def test_the_table_does_not_depend_on_the_order_of_seeds():
    records = grid()
    shuffled = records[12:] + records[:12]
    assert accuracy_tables(Results(records)) == accuracy_tables(Results(shuffled))


@pytest.mark.parametrize(
    ("means", "bold"),
    [
        ((90, 80, 70), (1, 1, 0)),
        ((70, 90, 80), (0, 1, 1)),
        ((90, 90, 80), (1, 1, 0)),
        ((90, 80, 80), (1, 1, 1)),
        ((90.001, 80.004, 80.001), (1, 1, 1)),  # what reads the same is treated the same
        ((80, 80, 80), (1, 1, 1)),
        ((90, None, 80), (1, 0, 1)),
        ((90, None, None), (0, 0, 0)),
        ((None, None), (0, 0)),
        ((), ()),
    ],
)
def test_the_two_best_are_bold(means, bold):
    cells = [Cell(mean, 0.1, 0 if mean is None else 3) for mean in means]
    assert two_best(cells) == list(map(bool, bold))


def test_a_cell_with_fewer_seeds_does_not_compete():
    cells = [Cell(99, None, 1), Cell(90, 0.1, 3), Cell(80, 0.1, 3), Cell(70, 0.1, 3)]
    assert two_best(cells) == [False, True, True, False]


def test_missing_cells_say_how_many_seeds_there_are():
    records = [r for r in grid() if (r.spec["loss"], r.spec["noise"]) != ("GCE", "clean")]
    records = [r for r in records if r.spec["seed"] < 1 or r.spec["noise"] != "symmetric:0.4"]
    sheet = sheet_of(records)
    row = sheet.rows[sheet.names.index("GCE")]
    assert row[0].text == "– (0/3)"
    assert row[0].value is None
    assert row[1].text.endswith(" (1/3)")
    assert "±" not in row[1].text
    assert "(" not in row[2].text


def test_mean_and_deviation_are_those_of_the_seeds():
    values = {0: 50.0, 1: 60.0, 2: 73.0}
    records = [
        dataclasses.replace(record("CE", "clean", seed), metrics=flat(1.0, value))
        for seed, value in values.items()
    ]
    sheet = sheet_of(records)
    assert sheet.rows[0][0].text == "61.00 ± 11.53"  # sqrt((121 + 1 + 144) / 2)


def test_the_measure_chooses_the_epoch():
    metrics = flat(*range(10, 10 + EPOCHS))
    metrics[3]["validation"] = 1.0
    records = [dataclasses.replace(record("CE", "clean", 0), metrics=metrics)]
    texts = [sheet_of(records, measure=m).rows[0][0].text for m in ("last", "mean10", "selected")]
    assert texts == ["29.00", "24.50", "13.00"]
    assert sheet_of(grid(), measure="selected").rows[0][0].text == "– (0/3)"
    with pytest.raises(ValueError, match="measure must be one of last, mean10, selected"):
        accuracy_tables(Results(records), "best")


def test_several_tests_are_columns_and_top_5_is_a_table():
    records = grid(
        ("CE", "BEF"), ("given",), (0,), tests=("webvision", "ilsvrc12"), classes=50, final=70
    )
    first, second = accuracy_tables(Results(records))
    assert [c.label for c in first.columns] == ["given, webvision", "given, ilsvrc12"]
    assert (first.k, second.k) == ("top1", "top5")
    assert first.cells[0][0].mean - first.cells[0][1].mean == pytest.approx(1)
    assert second.cells[0][0].mean - first.cells[0][0].mean == pytest.approx(3)
    assert "one seed" in first.title


def test_data_sets_have_tables_of_their_own():
    records = grid(seeds=(0,)) + grid(("CE",), ("clean",), (0,), data="banking77", classes=77)
    assert [(t.data, t.k) for t in accuracy_tables(Results(records))] == [
        ("digits", "top1"),
        ("banking77", "top1"),
        ("banking77", "top5"),
    ]
    assert list(accuracy_tables(Results(records))[1].losses) == ["CE"]


def test_runs_of_other_settings_are_never_pooled():
    records = grid(("CE",), ("clean",), (0,)) + grid(("CE",), ("clean",), (0,), subset=500)
    (table,) = accuracy_tables(Results(records))
    assert [c.label for c in table.columns] == ["clean, subset None", "clean, subset 500"]
    assert [cell.n for cell in table.cells[0]] == [1, 1]


def test_a_loss_with_several_parameters_has_a_row_for_each():
    records = [record("GCE", "clean", 0, expression=f"GCE(q={q})") for q in (0.3, 0.7)]
    assert Results(records).losses == ["GCE(q=0.3)", "GCE(q=0.7)"]


def test_two_runs_for_one_place_are_refused():
    training = {"epochs": EPOCHS, "lr": 0.01, "l1_decay": 1.0}
    records = [record("CE", "clean", 0), record("CE", "clean", 0, training=training)]
    with pytest.raises(ValueError, match="both CE with seed 0"):
        Results(records)


def test_what_differs_between_losses_is_noted():
    (note,) = sheet_of(grid()).notes
    assert note.startswith("JAL-CE: trained with l1_decay 5e-05, weight_decay 0")


def test_a_failed_run_is_missing_and_noted():
    records = grid(("CE", "GCE"), seeds=(0, 1))
    records[0] = dataclasses.replace(records[0], metrics=[], failed="the loss is nan in epoch 1")
    sheet = sheet_of(records)
    assert sheet.rows[0][0].text.endswith("(1/2)")
    assert "CE, clean, seed 0 failed: the loss is nan in epoch 1" in sheet.notes


def test_nothing_to_report():
    with pytest.raises(ValueError, match="no finished run"):
        Results([])


def test_the_terminal_is_never_too_narrow_for_a_table():
    sheet = sheet_of(grid())
    for width in (30, 44, 60, 200):
        lines = formats.terminal(sheet, width).replace("\x1b[1m", "").replace("\x1b[0m", "")
        body = [line for line in lines.splitlines() if line.startswith(("loss", "CE", "BEF"))]
        assert max(map(len, body)) <= width


def test_latex_escapes_what_is_special():
    sheet = Sheet("50% & more", ["loss", "a_b"], ["A{x}"], [[Field("1", bold=True)]])
    text = formats.latex(sheet)
    assert r"50\% \& more" in text
    assert r"loss & a\_b \\" in text
    assert r"A\{x\} & \textbf{1} \\" in text


def test_csv_is_read_back():
    (table,) = accuracy_tables(Results(grid()), "last", PAPER)
    rows = list(csv.DictReader(io.StringIO(formats.table_csv([table]))))
    assert len(rows) == 12
    cell = table.cells[0][1]
    (found,) = [r for r in rows if (r["loss"], r["noise"]) == ("CE", "symmetric:0.4")]
    assert float(found["mean"]) == pytest.approx(cell.mean, abs=1e-4)
    assert float(found["std"]) == pytest.approx(cell.std, abs=1e-4)
    assert (found["paper_mean"], found["n"]) == ("58.0700", "3")


def test_values_are_by_seed():
    results = Results(random.Random(0).sample(grid(), 36))
    column = next(c for c in results.columns if c.noise == "clean")
    values = results.values("BEF", column)
    assert list(values) == [0, 1, 2]
    assert values[1] == record("BEF", "clean", 1).last()


HOSTILE = "<script>a|b</script>\x1b[2J\n`c`*d*[e](f) $g$ _h -- \\i"


def hostile_sheet():
    field = Field(HOSTILE, bold=True, aside=HOSTILE)
    return Sheet(HOSTILE, ["loss", HOSTILE], [f"[{HOSTILE}"], [[field]], [HOSTILE])


def test_markdown_obeys_no_name():
    text = formats.markdown(hostile_sheet())
    assert len(text.splitlines()) == 7
    assert not re.search("[<>\x1b]", text)
    cells = [line for line in text.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in cells] == [3, 3, 3]
    assert r"&lt;script&gt;a\|b&lt;/script&gt;\\x1b[2J\\n\`c\`\*d\*[e\](f) \$g\$ \_h -- \\i" in text


def test_latex_obeys_no_name():
    text = formats.latex(hostile_sheet())
    tame = formats.latex(Sheet("a", ["loss", "a"], ["a"], [[Field("a", bold=True)]], ["a"]))
    assert len(text.splitlines()) == len(tame.splitlines())
    assert r"\textless{}script\textgreater{}a\textbar{}b" in text
    assert r"\textbackslash{}x1b[2J\textbackslash{}n\textasciigrave{}c" in text
    assert r"\$g\$ \_h -{}- \textbackslash{}i" in text
    assert "\n{}[" in text  # not an option of the \\ before it


def test_terminal_obeys_no_name():
    for width in (None, 80):
        text = formats.terminal(hostile_sheet(), width)
        assert not re.search("\x1b(?!\\[[01]m)", text)
        assert r"\x1b[2J\n`c`" in text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("l1_decay", "l1_decay"),
        ("_a_ __b__", r"\_a\_ \_\_b\_\_"),
        ("[a][b] [c](d) [e]: f", r"[a\][b] [c\](d) [e\]: f"),
        ("+1.0 [0.2, 1.8]", "+1.0 [0.2, 1.8]"),
        ("https://a.b, www.a.b", "https:&#8288;//a.b, www&#8288;.a.b"),
        ("@user a@b.c #12", "@&#8288;user a@&#8288;b.c #&#8288;12"),
    ],
)
def test_markdown_makes_no_emphasis_and_no_link_of_a_name(name, written):
    assert formats.markdown(Sheet(name, ["loss"], [], [])).splitlines()[0] == f"**{written}**"


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("0.1*CE + RCE(A_clamp=1)", "`0.1*CE + RCE(A_clamp=1)`"),
        ("a\x1b[1m", r"`a\x1b[1m`"),
        ("a|`b`", r"a\|\`b\`"),
        ("", ""),
    ],
)
def test_code_is_code_in_markdown_and_text_elsewhere(code, written):
    sheet = Sheet("t", ["loss", "text"], ["CE"], [[Field(code, code=True)]])
    assert formats.markdown(sheet).splitlines()[-1] == f"| CE | {written} |"
    plain = Sheet("t", ["loss", "text"], ["CE"], [[Field(code)]])
    assert formats.latex(sheet) == formats.latex(plain)
    assert formats.terminal(sheet) == formats.terminal(plain)

"""Names of unknown origin: every text is shown, none is obeyed, and CSV reads back."""

import csv
import io
import random

import pytest

from lossforge.data.tables import read_columns
from lossforge.text import csv_cell, csv_text, encodable, from_csv_cell, printable

LETTERS = ("'", "=", "+", "-", "@", "\t", "\r", "\n", " ", "a", "1", ".", "e", ",", '"', "\uff1d")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat", "cat"),
        ("Kühe 猫 🐈", "Kühe 猫 🐈"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x00\x07\x7f", r"\x00\x07\x7f"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("caf\udce9.png", r"caf\xe9.png"),  # a file name in Latin-1
        ("\ud800", r"\ud800"),
    ],
)
def test_controls_are_shown(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown
    encodable(text).encode()


def test_controls_may_be_kept():
    assert printable("a\n\tb\r", "\n\t") == "a\n\tb\\r"


@pytest.mark.parametrize(
    "first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", " =", "'=", "''-"]
)
def test_no_cell_is_a_formula(first):
    cell = csv_cell(f"{first}cmd|' /C calc'!A1")
    assert cell.startswith("'")
    assert from_csv_cell(cell) == f"{first}cmd|' /C calc'!A1"


@pytest.mark.parametrize("number", ["-1", "+1.5", "-.5", "-1e-05", "0", "-3."])
def test_numbers_stay(number):
    assert csv_cell(number) == number


@pytest.mark.parametrize("text", ["", "cat", "'cat'", "it's", "a=b", "Kühe"])
def test_other_cells_stay(text):
    assert csv_cell(text) == from_csv_cell(text) == text


def test_every_table_is_read_back(tmp_path):
    draw = random.Random(0)
    rows = [
        ["".join(draw.choices(LETTERS, k=draw.randint(1, 6))) + "x" for _ in range(3)]
        for _ in range(500)
    ]
    text = csv_text([("a", "b", "c"), *rows])
    _, *found = csv.reader(io.StringIO(text, newline=""))
    assert [[from_csv_cell(cell) for cell in row] for row in found] == rows
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    table = read_columns(path)
    columns = zip(table["a"], table["b"], table["c"], strict=True)
    assert [[*map(from_csv_cell, row)] for row in columns] == rows


def test_numbers_and_gaps_are_written_plainly():
    assert csv_text([(1, -2.5, None, "-2.5", "=x")]) == "1,-2.5,,-2.5,'=x\n"

"""Sheets as text for a terminal, Markdown and LaTeX, and tables as CSV.

Names come from files: each format escapes what it would otherwise obey.
"""

import io
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ..errors import extra
from ..text import csv_text, cut, printable
from .tables import AccuracyTable, Field, Sheet

Format = Literal["terminal", "markdown", "latex", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
GAP = 2  # between columns in a terminal
LATEX = {
    **{letter: f"\\{letter}" for letter in "&%_#${}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
MARKDOWN = {
    **{letter: f"\\{letter}" for letter in "\\`*|$~_]"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
}
# what Markdown obeys: those, but no _ inside a word and no ] that cannot end a link; and the
# beginnings of addresses, users and issues, which GitHub makes links
_OBEYED = re.compile(
    r"[\\`*|$~&<>]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|[@#](?=\w)|:(?=//)|www(?=\.)", re.I
)
BREAK = "&#8288;"  # no space, no line break, no link


def _rewritten(
    sheet: Sheet, write: Callable[[str], str], code: Callable[[str], str] | None = None
) -> Sheet:
    """Apply `write` to every text of a sheet, `code` to what is code."""

    def rewritten(field: Field) -> Field:
        main = code if code is not None and field.code else write
        return replace(field, text=main(field.text), aside=write(field.aside))

    return Sheet(
        write(sheet.title),
        [write(name) for name in sheet.head],
        [write(name) for name in sheet.names],
        [[rewritten(field) for field in row] for row in sheet.rows],
        [write(note) for note in sheet.notes],
    )


def terminal(sheet: Sheet, width: int | None = None) -> str:
    """Write aligned columns.

    Args:
        sheet: The table.
        width: Width of the terminal, if the output is one: the best fields are then bold, a
            table that is too wide is split, and long names are cut. Elsewhere a star marks the
            best, and nothing is cut.
    """
    sheet = _rewritten(sheet, printable)
    if width is not None:
        sheet = _narrowed(sheet, width)
    texts = [
        [_terminal_field(field, bold=width is not None) for field in row] for row in sheet.rows
    ]
    names = max(map(len, [sheet.head[0], *sheet.names]))
    sizes = [
        max(len(head), *(field.cell_len for field in column))
        for head, column in zip(sheet.head[1:], zip(*texts, strict=True), strict=True)
    ]
    parts = [
        _aligned(
            [sheet.head[0], *(sheet.head[1 + j] for j in block)],
            [
                [name, *(row[j] for j in block)]
                for name, row in zip(sheet.names, texts, strict=True)
            ],
        )
        for block in _blocks(sizes, sys.maxsize if width is None else width - names)
    ]
    notes = list(sheet.notes)
    if sheet.has_bold:
        notes.insert(0, "*: the two best" if width is None else "bold: the two best")
    lines = [wrapped(note, width) for note in notes]
    return "\n\n".join(
        [wrapped(sheet.title, width), *parts, *(["\n".join(lines)] if lines else [])]
    )


def wrapped(text: str, width: int | None, indent: str = "") -> str:
    """Break a text into lines that fit the terminal, if the output is one.

    Args:
        text: The text.
        width: Width of the terminal, if the output is one.
        indent: Put before every line but the first.
    """
    if width is None:
        return text
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)


def _narrowed(sheet: Sheet, width: int) -> Sheet:
    """Cut names and fields that would not fit side by side."""
    most = max(width // 3, width - GAP - max(map(_longest, sheet.rows), default=0))
    room = width - GAP - min(most, max(map(len, [sheet.head[0], *sheet.names])))

    def fitting(field: Field) -> Field:
        aside = cut(field.aside, max(room - len(field.text) - len(" ()"), 1)) if field.aside else ""
        return replace(field, text=cut(field.text, room), aside=aside)

    return replace(
        sheet,
        head=[cut(sheet.head[0], most), *(cut(name, room) for name in sheet.head[1:])],
        names=[cut(name, most) for name in sheet.names],
        rows=[[fitting(field) for field in row] for row in sheet.rows],
    )


def _longest(row: Sequence[Field]) -> int:
    return max((len(f.text) + (len(f.aside) + 3 if f.aside else 0) for f in row), default=0)


def _terminal_field(field: Field, bold: bool) -> Any:
    text = extra("rich.text", "bench").Text()
    text.append(field.text, "bold" if field.bold and bold else None)
    text.append("*" if field.bold and not bold else "")
    text.append(f" ({field.aside})" if field.aside else "")
    return text


def _aligned(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Align columns below a rule, the first to the left and the others to the right."""
    ruled = extra("rich.box", "bench").Box("    \n    \n----\n" + "    \n" * 5)
    table = extra("rich.table", "bench").Table(
        box=ruled, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style=""
    )
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    stream = io.StringIO()
    # wide enough for any table: tables are split before, and fields are never cut
    console = extra("rich.console", "bench").Console(
        file=stream,
        width=10**6,
        markup=False,
        emoji=False,
        highlight=False,
        color_system="standard",
    )
    console.print(table)
    return stream.getvalue().rstrip("\n")


def _blocks(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Group columns that fit beside the names, at least one in each group."""
    blocks: list[list[int]] = []
    left = 0
    for j, size in enumerate(sizes):
        needed = size + GAP
        if not blocks or needed > left:
            blocks.append([])
            left = room
        blocks[-1].append(j)
        left -= needed
    return blocks


def markdown(sheet: Sheet) -> str:
    """Write a GitHub table."""
    sheet = _rewritten(sheet, _markdown_text, _markdown_code)
    lines = [
        f"**{sheet.title}**",
        "",
        f"| {' | '.join(sheet.head)} |",
        "|:--|" + "--:|" * (len(sheet.head) - 1),
    ]
    for name, row in zip(sheet.names, sheet.rows, strict=True):
        texts = []
        for field in row:
            text = f"**{field.text}**" if field.bold else field.text
            texts.append(f"{text} ({field.aside})" if field.aside else text)
        lines.append(f"| {' | '.join([name, *texts])} |")
    for note in sheet.notes:
        lines += ["", note]
    return "\n".join(lines)


def _markdown_text(text: str) -> str:
    return _OBEYED.sub(lambda f: MARKDOWN.get(f[0], f[0] + BREAK), printable(text))


def _markdown_code(text: str) -> str:
    """Write a code span; text that would end the span or the cell is written as text."""
    return f"`{printable(text)}`" if re.fullmatch("[^`|]+", text) else _markdown_text(text)


def latex(sheet: Sheet) -> str:
    """Write a LaTeX table with the rules of the package booktabs."""
    sheet = _rewritten(sheet, _latex_text)
    best = ". The two best are bold." if sheet.has_bold else ""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{sheet.title}{best}}}",
        rf"\begin{{tabular}}{{l{'c' * (len(sheet.head) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(sheet.head)} \\",
        r"\midrule",
    ]
    for name, row in zip(sheet.names, sheet.rows, strict=True):
        texts = []
        for field in row:
            aside = rf" {{\small ({field.aside})}}" if field.aside else ""
            texts.append((rf"\textbf{{{field.text}}}" if field.bold else field.text) + aside)
        # the \\ of the line before would take [ or * as its option
        guard = "{}" if name.startswith(("[", "*")) else ""
        lines.append(rf"{guard}{' & '.join([name, *texts])} \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par {{\small {note}}}" for note in sheet.notes]
    return "\n".join([*lines, r"\end{table}"])


def _latex_text(text: str) -> str:
    written = "".join(LATEX.get(letter, letter) for letter in printable(text))
    return re.sub("-(?=-)", "-{}", written).replace("–", "--")  # no dash of two hyphens


def table_csv(tables: Sequence[AccuracyTable]) -> str:
    """Write one line per number, with four digits after the point.

    See `lossforge.text.csv_cell` for names.
    """
    head = "data,setting,noise,test,k,measure,loss,mean,std,n,seeds,paper_mean,paper_std"
    rows: list[list[object]] = [[*head.split(",")]]
    for table in tables:
        for name, row in zip(table.losses, table.cells, strict=True):
            for column, cell in zip(table.columns, row, strict=True):
                where = [table.data, column.label, column.noise, column.test, table.k]
                numbers = [cell.mean, cell.std, cell.n, table.seeds, *(cell.paper or (None, None))]
                shown = [f"{n:.4f}" if isinstance(n, float) else n for n in numbers]
                rows.append([*where, table.measure, name, *shown])
    return csv_text(rows)

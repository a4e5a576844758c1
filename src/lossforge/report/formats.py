"""Sheets as text: for a terminal, Markdown and LaTeX; tables as CSV."""

import csv
import io
from collections.abc import Sequence
from typing import Literal

from .sheets import Entry, Sheet
from .tables import Table

Format = Literal["terminal", "markdown", "latex", "csv"]
FORMATS = ("terminal", "markdown", "latex", "csv")
GAP = "  "
LATEX = {
    **{letter: f"\\{letter}" for letter in "&%_#${}"},
    "±": r"$\pm$",
    "–": "--",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def terminal(sheet: Sheet, width: int | None = None) -> str:
    """Aligned columns.

    Args:
        sheet: What to write.
        width: Columns of the terminal, if there is one: the best are then bold, and a table that
            is too wide is broken into parts. Elsewhere a star marks them.
    """
    texts = [[_plain(entry, "" if width else "*") for entry in row] for row in sheet.rows]
    first = max(map(len, [sheet.head[0], *sheet.names]))
    sizes = [
        max(map(len, [head, *column]))
        for head, column in zip(sheet.head[1:], zip(*texts, strict=True), strict=True)
    ]
    parts = []
    for block in _blocks(sizes, (width or 10**6) - first):
        heads = [sheet.head[1 + j].rjust(sizes[j]) for j in block]
        lines = [GAP.join([sheet.head[0].ljust(first), *heads])]
        lines.append("-" * len(lines[0]))
        for name, row, entries in zip(sheet.names, texts, sheet.rows, strict=True):
            fields = [
                _shine(row[j].rjust(sizes[j]), entries[j]) if width else row[j].rjust(sizes[j])
                for j in block
            ]
            lines.append(GAP.join([name.ljust(first), *fields]))
        parts.append("\n".join(lines))
    best = [f"{'bold' if width else '*'}: the two best"] if sheet.has_bold else []
    notes = "\n".join([*best, *sheet.notes])
    return "\n\n".join([sheet.title, *parts, *([notes] if notes else [])])


def _plain(entry: Entry, mark: str) -> str:
    return entry.text + (mark if entry.bold else "") + (f" ({entry.aside})" if entry.aside else "")


def _shine(field: str, entry: Entry) -> str:
    return field.replace(entry.text, f"\x1b[1m{entry.text}\x1b[0m") if entry.bold else field


def _blocks(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Columns in groups that fit beside the names, at least one in each."""
    blocks: list[list[int]] = []
    left = 0
    for j, size in enumerate(sizes):
        needed = size + len(GAP)
        if not blocks or needed > left:
            blocks.append([])
            left = room
        blocks[-1].append(j)
        left -= needed
    return blocks


def markdown(sheet: Sheet) -> str:
    """A GitHub table."""
    lines = [
        f"**{sheet.title}**",
        "",
        f"| {' | '.join(sheet.head)} |",
        "|:--|" + "--:|" * (len(sheet.head) - 1),
    ]
    for name, row in zip(sheet.names, sheet.rows, strict=True):
        texts = [
            (f"**{entry.text}**" if entry.bold else entry.text)
            + (f" ({entry.aside})" if entry.aside else "")
            for entry in row
        ]
        lines.append(f"| {' | '.join([name, *texts])} |")
    for note in sheet.notes:
        lines += ["", note]
    return "\n".join(lines)


def latex(sheet: Sheet) -> str:
    """A table with the rules of the package booktabs."""
    best = ". The two best are bold." if sheet.has_bold else ""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape(sheet.title)}{best}}}",
        rf"\begin{{tabular}}{{l{'c' * (len(sheet.head) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(map(_escape, sheet.head))} \\",
        r"\midrule",
    ]
    for name, row in zip(sheet.names, sheet.rows, strict=True):
        texts = []
        for entry in row:
            text = _escape(entry.text)
            aside = rf" {{\small ({_escape(entry.aside)})}}" if entry.aside else ""
            texts.append((rf"\textbf{{{text}}}" if entry.bold else text) + aside)
        lines.append(rf"{' & '.join([_escape(name), *texts])} \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par {{\small {_escape(note)}}}" for note in sheet.notes]
    return "\n".join([*lines, r"\end{table}"])


def _escape(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def table_csv(tables: Sequence[Table]) -> str:
    """One line for every number, with four digits after the point."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    head = "data,setting,noise,test,k,measure,loss,mean,std,n,seeds,paper_mean,paper_std"
    writer.writerow(head.split(","))
    for table in tables:
        for name, row in zip(table.losses, table.cells, strict=True):
            for column, cell in zip(table.columns, row, strict=True):
                where = [table.data, column.label, column.noise, column.test, table.k]
                numbers = [cell.mean, cell.std, cell.n, table.seeds, *(cell.paper or (None, None))]
                shown = [f"{n:.4f}" if isinstance(n, float) else n for n in numbers]
                writer.writerow([*where, table.measure, name, *shown])
    return stream.getvalue()

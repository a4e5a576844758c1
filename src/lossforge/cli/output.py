"""How commands print: labelled lines, tables, progress, and pages in a browser."""

import sys
import textwrap
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, ProgressColumn

WIDTH, INDENT = 100, 10


def labelled(label: str, text: str) -> list[str]:
    """A label and its text, wrapped."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{label:{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def aligned(rows: Sequence[tuple[str, ...]], most: int = 36) -> list[str]:
    """Rows as aligned columns; the last column takes what is left of the width.

    Args:
        rows: Of equal length, the header first.
        most: Width above which a cell is cut.
    """
    cells = [[cut(cell, most) for cell in row[:-1]] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    found = []
    for row, words in zip(rows, cells, strict=True):
        line = "  ".join(f"{word:{width}}" for word, width in zip(words, widths, strict=True))
        found.append(f"{line}  {cut(row[-1], max(20, WIDTH - len(line) - 2))}".rstrip())
    return found


def cut(text: str, width: int) -> str:
    """Cut the middle out of a text that is too long; paths differ at their ends."""
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[:half]}…{text[half - width + 1 :]}"


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr, in a terminal, what is being computed; yields a function that updates it."""
    with Console(stderr=True).status(text) as status:
        try:
            yield status.update
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted") from None


@contextmanager
def progress_bar(*columns: ProgressColumn) -> Iterator[Progress]:
    """A progress bar on stderr, so that output can be piped; disabled outside a terminal."""
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield bar


def open_page(page: Path) -> None:
    """Open a page in a browser, if the command was typed in a terminal and there is a browser."""
    if in_terminal():
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(page.resolve().as_uri())


def in_terminal() -> bool:
    """Whether stdout is a terminal, not a pipe, a file or a CI log."""
    return sys.stdout.isatty()

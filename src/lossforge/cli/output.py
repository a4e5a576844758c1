"""How commands print: labelled lines, tables, progress, and pages in a browser."""

import errno
import io
import itertools
import os
import re
import sys
import textwrap
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

from ..text import cut, printable

WIDTH, INDENT = 100, 10
CELL = 36  # of a piped table whose lines are cut
READER_GONE = 141  # what a shell shows for a program that SIGPIPE ended
BOLD = re.compile("(\x1b\\[[01]m)")  # on and off: all the style that our own tables have


class _Visible:
    """A text stream that shows control characters instead of sending them to the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self._write(printable(text, "\n\t"))
        return len(text)

    def write_styled(self, text: str) -> None:
        """Write a text whose bold type, in a terminal, is ours."""
        parts = BOLD.split(text) if self.stream.isatty() else [text]
        shown = [part if BOLD.fullmatch(part) else printable(part, "\n\t") for part in parts]
        self._write("".join(shown))

    def _write(self, text: str) -> None:
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_controls() -> Iterator[None]:
    """Let nothing that is printed control the terminal: names come from files and their owners.

    Progress bars write to the streams below, see `_console`.
    """
    streams = sys.stdout, sys.stderr
    # a stream that the caller closed is None
    sys.stdout, sys.stderr = (cast(TextIO, stream and _Visible(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _console() -> Console:
    """Make a console on stderr that moves the cursor; its texts must be printable."""
    stream = sys.stderr
    return Console(file=stream.stream if isinstance(stream, _Visible) else stream)


def echo_styled(text: str) -> None:
    """Print lines with tables, which may have bold titles; all names in them must be printable."""
    if isinstance(sys.stdout, _Visible):
        sys.stdout.write_styled(f"{text}\n")
    else:
        typer.echo(text)


def labelled(label: str, text: str) -> list[str]:
    """Write a label and its text, wrapped."""
    return textwrap.wrap(
        printable(text, "\n\t"),
        WIDTH,
        initial_indent=f"{label:{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def table(
    rows: Sequence[tuple[str, ...]], *, header: bool = True, width: int | None = None
) -> list[str]:
    """Write rows as lines of text: a table that fits the terminal, or aligned columns when piped.

    Args:
        rows: Of equal length.
        header: Whether the first row is one.
        width: Of piped lines; longer cells are cut. None keeps all of them whole.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    if not in_terminal():
        return _aligned(rows, width)
    console = Console()
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header)
    for title in rows[0]:
        shown.add_column(Text(title), overflow="fold")
    for row in rows[1:] if header else rows:
        shown.add_row(*map(Text, row))
    with console.capture() as capture:
        console.print(shown)
    return capture.get().splitlines()


def _aligned(rows: Sequence[tuple[str, ...]], width: int | None) -> list[str]:
    most = max(map(len, itertools.chain(*rows))) if width is None else CELL
    cells = [[cut(word, most) for word in row[:-1]] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    found = []
    for row, words in zip(rows, cells, strict=True):
        line = "".join(f"{word:{size}}  " for word, size in zip(words, widths, strict=True))
        last = row[-1] if width is None else cut(row[-1], max(20, width - len(line)))
        found.append(f"{line}{last}".rstrip())
    return found


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr, in a terminal, what is being computed; yields a function that updates it."""
    with _console().status(Text(printable(text))) as status:
        try:
            yield lambda text: status.update(Text(printable(text)))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted") from None


class _PlainColumn(TextColumn):
    """A column of a progress bar that shows names as they are, without markup or controls."""

    def render(self, task: Task) -> Text:
        return Text(printable(self.text_format.format(task=task)))


@contextmanager
def progress_bar(*columns: str | ProgressColumn) -> Iterator[Progress]:
    """Make a progress bar on stderr, so that output can be piped; disabled outside a terminal.

    Args:
        columns: Columns of rich, or texts such as "{task.description}".
    """
    console = _console()
    plain = [_PlainColumn(one, markup=False) if isinstance(one, str) else one for one in columns]
    with Progress(*plain, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


class OutputError(Exception):
    """Standard output could not be written; no OSError, which commands report as a user's error."""


class _Output(io.TextIOWrapper):
    """Standard output that raises OutputError."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise OutputError from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputError from error


@contextmanager
def checked_output() -> Iterator[None]:
    """Exit with one line if standard output cannot be written; quietly if its reader is gone."""
    _open_closed()
    plain = sys.stdout
    # Under PYTHONUNBUFFERED there is no buffer, and what a write leaves over would be lost.
    is_raw = isinstance(plain.buffer, io.RawIOBase)
    buffer = io.BufferedWriter(plain.buffer) if is_raw else plain.buffer
    checked = sys.stdout = _Output(
        buffer, encoding=plain.encoding, errors=plain.errors, write_through=True
    )
    try:
        try:
            yield
        finally:
            checked.flush()
    except OutputError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        cause = error.__cause__
        assert isinstance(cause, OSError)
        if cause.errno == errno.EPIPE:
            raise SystemExit(READER_GONE) from None
        typer.echo(f"error: cannot write to standard output: {cause.strerror}", err=True)
        raise SystemExit(1) from None
    finally:
        sys.stdout = plain
        checked.detach()
        if is_raw:
            cast(io.BufferedWriter, buffer).detach()


def _open_closed() -> None:
    """Open what the caller closed (`>&-`), so that no other file gets its number.

    Writing to such a standard output fails; messages to such a standard error are dropped.
    """
    if sys.stdout is None:
        _open_as(1, os.O_RDONLY)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        _open_as(2, os.O_WRONLY)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _open_as(number: int, mode: int) -> None:
    found = os.open(os.devnull, mode)
    if found != number:
        os.dup2(found, number)
        os.close(found)


def open_page(page: Path) -> None:
    """Open a page in a browser, if the command was typed in a terminal and there is a browser."""
    if in_terminal():
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(page.resolve().as_uri())


def in_terminal() -> bool:
    """Return whether stdout is a terminal, not a pipe, a file or a CI log."""
    return sys.stdout.isatty()

"""Names of unknown origin as text that terminals, pages and spreadsheets show and do not obey."""

import re
from collections.abc import Iterable

# controls (C0, DEL, C1), marks that reorder or break a line, and halves of characters, which also
# stand for the bytes of file names that are not UTF-8
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_HALF = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = re.compile("'*(?=[\t\r\n]|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20])")


def printable(text: str, keep: str = "") -> str:
    r"""Write control characters as escapes, for one line of a terminal or page.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'

    Args:
        text: Any text; bytes of a file name that are not UTF-8 become \xNN.
        keep: Controls to leave as they are.
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def cut(text: str, width: int) -> str:
    """Cut the middle out of a text that is too long; paths differ at their ends."""
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[:half]}…{text[half - width + 1 :]}"


def folder_name(text: str) -> str:
    """Write a name so that a folder can have it: letters, digits, and _ . + - within.

    >>> folder_name("my photos (2)")
    'my-photos-2'
    """
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.") or "data"


def encodable(text: str) -> str:
    r"""Write what UTF-8 cannot encode as escapes, the bytes of file names as \xNN."""
    return _HALF.sub(lambda found: _escaped(found[0]), text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    # Python reads a byte that is not UTF-8 as 0xDC00 more than its value
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else ascii(letter)[1:-1]


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(80), duration(200), duration(9000)
    ('80 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows as CSV, strings by `csv_cell`, None as an empty cell."""
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def _quoted(value: object) -> str:
    text = csv_cell(value) if isinstance(value, str) else "" if value is None else str(value)
    # Python's writer leaves a carriage return bare, which spreadsheets read as a new row
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text


def csv_cell(text: str) -> str:
    """Write a cell of a CSV file that spreadsheets show as text, not run as a formula.

    What begins with =, +, -, @, a tab or a line break gets an apostrophe in front, unless it is a
    number; so does what begins so after apostrophes, and `from_csv_cell` returns the text.

    >>> csv_cell("=1+1"), csv_cell("-1.5"), csv_cell("'=1+1")
    ("'=1+1", '-1.5', "''=1+1")
    """
    found = _FORMULA.match(text)
    return encodable(f"'{text}" if found and not _NUMBER.fullmatch(text) else text)


def from_csv_cell(cell: str) -> str:
    """Read a cell that `csv_cell` wrote; other cells are returned as they are."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell

"""Losses of the catalogue by the names that people write."""

import difflib
import re
from collections.abc import Sequence

from ..errors import SpecError
from .entries import ENTRIES
from .entry import Entry


def identifier(name: str) -> str:
    """A name as expressions have it: in any case, without the signs that Python's names lack."""
    return re.sub(r"[_+-]", "", re.sub(r"\+$", "plus", name.lower()))


_SPELLINGS = {name: entry for entry in ENTRIES.values() for name in (entry.name, *entry.aliases)}
_BY_NAME = {name.lower(): entry for name, entry in _SPELLINGS.items()}
# what a Python name in an expression stands for
BY_IDENTIFIER = {identifier(entry.make.__name__): entry for entry in ENTRIES.values()}
BY_IDENTIFIER |= {identifier(name): entry for name, entry in _SPELLINGS.items()}


def look_up(text: str) -> Entry | None:
    """The entry of a name or an alias, in any case: also ``NCE + RCE``, ``nce_rce`` and ``NCERCE``.

    ``NCE-RCE`` is not the name but the difference of two losses.
    """
    written = re.sub(r"\s*([+-])\s*", r"\1", text.strip().lower())
    if written in _BY_NAME:
        return _BY_NAME[written]
    return BY_IDENTIFIER.get(identifier(written)) if written.isidentifier() else None


def find(name: str) -> Entry:
    """The entry of a name or an alias, in any case."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r}")
    entry = look_up(name)
    if entry is None:
        raise unknown("loss", name)
    return entry


def unknown(what: str, name: str, more: Sequence[str] = ()) -> SpecError:
    """The error for a name that nothing has: the nearest ones in it, all others in its note.

    Args:
        what: What was looked for.
        name: What the user wrote.
        more: Names that were possible beside those of the catalogue.
    """
    if re.search(r"[(*/]", name):
        return SpecError(f"unknown {what} {name!r}; lossforge.parse reads expressions")
    known = {one.lower(): one for one in (*_SPELLINGS, *more)}
    near = difflib.get_close_matches(name.strip().lower(), known, 4, 0.5)
    hint = f"did you mean {', '.join(known[one] for one in near)}? " if near else ""
    error = SpecError(
        f"unknown {what} {name!r}; {hint}`lossforge losses` lists all {len(ENTRIES)} losses"
    )
    error.add_note(f"known are {', '.join((*ENTRIES, *more))}")
    return error

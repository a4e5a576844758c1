"""The registry of named losses: what is known of each beside its code, and look-up by name."""

import contextlib
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from ..base.function import format_arguments
from ..errors import SpecError, unknown
from ..loss import Loss
from . import code
from .ranges import Range
from .references import REFERENCES

FOCAL_CAVEAT = (
    "The focal factor carries its gradient here; released code detaches it (stop_gradient)."
)
CLAMP_CAVEAT = (
    "Released code clamps the probability, which makes the gradient zero below it; not here."
)
UNVERIFIED_CAVEAT = "Inferred from secondary sources; no code or text of the authors was at hand."

Kind = Literal["symmetric", "asymmetric", "neither"]
Maker = TypeVar("Maker", bound=Callable[..., Loss])


@dataclass(frozen=True)
class Entry:
    """A named loss.

    Attributes:
        name: The published name.
        make: Builds it; all parameters are keyword-only.
        formula: The value of one sample, in plain text: p the class probabilities, y the label.
        kind: "symmetric" if the sum over labels is constant, "asymmetric" as its paper claims.
        bounded: Whether the value is bounded for a given number of classes.
        reference: Key of the paper in `REFERENCES`.
        aliases: Other names it is known by.
        caveat: What a user should know before comparing with published code.
        unverified: Whether the formula was inferred without the authors' code or text.
        tune: Where tuning searches, by parameter. Empty if nothing is tuned, or if the parameters
            depend on each other: then `lossforge.tuning` has the space.
    """

    name: str
    make: Callable[..., Loss]
    formula: str
    kind: Kind
    bounded: bool
    reference: str
    aliases: tuple[str, ...] = ()
    caveat: str = ""
    unverified: bool = False
    tune: Mapping[str, Range] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Return the keyword parameters of the mathematics, with their defaults."""
        return _keywords(self.make)


ENTRIES: dict[str, Entry] = {}
"""All losses by name: those of `TABLES`, then paper by paper as in `REFERENCES`."""

TABLES = (
    *("CE", "FL", "GCE", "SCE", "NCE", "CE+LC", "CEeps+MAE", "FLeps+MAE", "NCE+RCE", "NCE+AUL"),
    *("NCE+AGCE", "ANL-CE", "ANL-FL", "JAL-CE", "JAL-FL", "BEF", "BQF"),
)
"""The losses of the tables of the paper that the project implements, in their order."""

BY_IDENTIFIER: dict[str, Entry] = {}
"""What a Python name in an expression stands for."""

_SPELLINGS: dict[str, Entry] = {}  # names and aliases as published
_BY_NAME: dict[str, Entry] = {}  # the same in lower case


def register(
    name: str,
    formula: str,
    *,
    kind: Kind = "neither",
    bounded: bool,
    paper: str,
    aliases: tuple[str, ...] = (),
    caveat: str = "",
    unverified: bool = False,
    tune: Mapping[str, Range] | None = None,
) -> Callable[[Maker], Maker]:
    """Enter a class or function into the catalogue, and its formula and paper into its docstring.

    Args:
        name: See `Entry`, for this and all others.
        formula: Ends the first line of the docstring.
        kind: "symmetric", "asymmetric" or "neither".
        bounded: Whether the value is bounded.
        paper: A key of `REFERENCES`.
        aliases: Other names.
        caveat: What differs from published code.
        unverified: Whether the formula was inferred.
        tune: The range of each parameter that is tuned.
    """

    def enter(make: Maker) -> Maker:
        if not inspect.isclass(make):
            make = code.factory(_naming(name, make))
        entry = Entry(
            name, make, formula, kind, bounded, paper, aliases, caveat, unverified, tune or {}
        )
        for spelling in (name, *aliases):
            if spelling.lower() in _BY_NAME:
                raise ValueError(f"{spelling} is the name of another loss")
        for spelling in (name, *aliases):
            _SPELLINGS[spelling] = _BY_NAME[spelling.lower()] = entry
            BY_IDENTIFIER[identifier(spelling)] = entry
        BY_IDENTIFIER.setdefault(identifier(make.__name__), entry)
        ordered = sorted((*ENTRIES.values(), entry), key=_place)
        ENTRIES.clear()
        ENTRIES.update({one.name: one for one in ordered})
        make.__doc__ = _documented(entry)
        return make

    return enter


def _place(entry: Entry) -> tuple[int, int]:
    """Return the place of a loss in the catalogue; those of one paper stay in the code's order."""
    if entry.name in TABLES:
        return 0, TABLES.index(entry.name)
    return 1, list(REFERENCES).index(entry.reference)


def _documented(entry: Entry) -> str:
    """Return the docstring with the formula after its first sentence and the paper at its end."""
    summary, line, rest = inspect.cleandoc(entry.make.__doc__ or entry.name).partition("\n")
    reference = REFERENCES[entry.reference]
    cited = textwrap.fill(
        f"{reference.text} {reference.url}".strip(),
        96,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    head = f"{summary.removesuffix('.')}: ``{entry.formula}``."
    return f"{head}{line}{rest}\n\nReferences:\n{cited}\n"


class Named:
    """Has the arguments it was made with as attributes, and prints as its class with them.

    One that is None is left out of the text.

    Attributes:
        settings: The keyword parameters of the constructor, as given or by default.
    """

    settings: dict[str, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def __str__(self) -> str:
        given = {name: value for name, value in self.settings.items() if value is not None}
        arguments = format_arguments(given)
        return f"{type(self).__name__}({arguments})" if arguments else type(self).__name__


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap a constructor to keep its keyword parameters in `settings` before it runs."""
    defaults = _keywords(init)

    @functools.wraps(init)
    def remember(self: Named, *args: Any, **keywords: Any) -> None:
        self.settings = {
            name: _kept(keywords.get(name, default)) for name, default in defaults.items()
        }
        with _blaming(type(self).__name__, keywords):
            init(self, *args, **keywords)
        for name, value in self.settings.items():
            # a construction may have a parameter of the same name
            if not hasattr(self, name):
                setattr(self, name, value)

    return remember


def _naming(name: str, make: Maker) -> Maker:
    """Wrap a function so that its errors name the parameters it was called with."""

    @functools.wraps(make)
    def named(**keywords: Any) -> Loss:
        with _blaming(name, keywords):
            return make(**keywords)

    return cast(Maker, named)


@contextlib.contextmanager
def _blaming(name: str, given: dict[str, Any]) -> Iterator[None]:
    """Name the arguments in a ValueError that speaks of what was made of them."""
    try:
        yield
    except (ValueError, ArithmeticError) as error:
        if not given or any(re.search(rf"\b{one}\b", str(error)) for one in given):
            raise
        call = f"{name}({', '.join(f'{one}={value!r:.40}' for one, value in given.items())})"
        raise ValueError(f"{call}: {error}") from None


def _kept(value: object) -> object:
    """Copy an argument so that later changes do not affect it; sequences become tuples."""
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return tuple(value)
    return value


def _keywords(function: Callable[..., object]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.items()
    return {name: one.default for name, one in parameters if one.kind is one.KEYWORD_ONLY}


def identifier(name: str) -> str:
    """Return a name as written in expressions: lower case, without signs that Python forbids."""
    return re.sub(r"[_+-]", "", re.sub(r"\+$", "plus", name.lower()))


def look_up(text: str) -> Entry | None:
    """Look up a name or an alias, in any case: also ``NCE + RCE``, ``nce_rce`` and ``NCERCE``.

    ``NCE-RCE`` is not the name but the difference of two losses.
    """
    written = re.sub(r"\s*([+-])\s*", r"\1", text.strip().lower())
    if written in _BY_NAME:
        return _BY_NAME[written]
    return BY_IDENTIFIER.get(identifier(written)) if written.isidentifier() else None


def find(name: str) -> Entry:
    """Return the entry of a name or an alias, in any case; raise if there is none.

    A class of admitted code, ``my_losses.py:Spherical``, has the ranges in its attribute `tune`.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r}")
    entry = look_up(name) or _own(name)
    if entry is None:
        raise unknown_loss("loss", name)
    return entry


def _own(name: str) -> Entry | None:
    """Return an entry for a loss in the user's own code, if that is all that the text names."""
    written = code.full_name(name.strip()) or code.replaced(name.strip(), str)
    if not re.fullmatch(r"[^\s'\"()*+,=:]+:\w+", written):
        return None
    make = code.member(written)
    if inspect.isclass(make) and not issubclass(make, Loss):
        raise SpecError(f"{written} must be a loss, got a base function")
    tune = getattr(make, "tune", {})
    return Entry(written, make, "", "neither", False, "", tune=tune)


def names() -> tuple[str, ...]:
    """Return the names of all losses in the catalogue."""
    return tuple(ENTRIES)


def unknown_loss(what: str, name: str, more: tuple[str, ...] = ()) -> SpecError:
    """Return the error for an unknown name of a loss, with the nearest known ones.

    Args:
        what: The kind of name, such as "loss".
        name: What the user wrote.
        more: Names that are also valid there, besides those of the catalogue.
    """
    if re.search(r"[(*/]", name):
        return SpecError(f"unknown {what} {name!r}; lossforge.parse reads expressions")
    remedy = f"`lossforge losses` lists all {len(ENTRIES)} losses"
    return unknown(what, name, (*_SPELLINGS, *more), remedy)

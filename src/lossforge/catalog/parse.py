"""Losses from text, by a closed grammar on Python's own syntax tree."""

import ast
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import base as bases
from .. import constructions
from ..base import BaseFunction
from ..base.function import text_name
from ..errors import SpecError
from ..loss import Loss
from ..loss.policy import no_parameter, parameters_of
from . import code
from .code import Code, Maker
from .entry import BY_IDENTIFIER, ENTRIES, identifier, look_up, unknown_loss

Value = float | bool | str | list[Any] | Loss | BaseFunction

_BASES: dict[str, type[BaseFunction]] = {
    name.lower(): member
    for name, member in vars(bases).items()
    if inspect.isclass(member)
    and issubclass(member, BaseFunction)
    and not inspect.isabstract(member)
}
_CONSTRUCTIONS: dict[str, Callable[..., Loss]] = {
    name.lower(): member
    for name, member in vars(constructions).items()
    if inspect.isclass(member) and issubclass(member, Loss) and not inspect.isabstract(member)
}
_CONSTRUCTIONS["ts"] = constructions.TargetSeparation
_CONSTRUCTIONS["br"] = constructions.BinaryReduction
_MINUS = re.compile(r"(?<=\w)\s*-\s*(?=\w)")


@dataclass(frozen=True, eq=False)
class Reading:
    """A loss that was read from text.

    Args:
        loss: The loss.
        text: What reads as the same loss again: with all parameters, or, where it names the user's
            own code, with those that were given.
        code: The user's own code that it names.
    """

    loss: Loss
    text: str
    code: tuple[Code, ...] = ()


def parse(text: str) -> Loss:
    """Read a loss from a name or a sum: ``0.9*TS(exponential(beta=-8), tau=1) + 0.1*MAE``.

    A text that names a published loss is that loss with its settings, also where it looks like a
    sum: ``NCE + AGCE``. ``1*NCE + 1*AGCE`` is the sum itself. Code outside the package,
    ``my_losses.py:Spherical(gamma=2)``, is read after `lossforge.catalog.admit` has imported it.

    Raises:
        SpecError: if the text does not follow the grammar.
        ValueError: if a parameter is outside its range.
    """
    return read(text).loss


def admit(texts: Iterable[str], *, hashes: Mapping[str, str] | None = None) -> None:
    """Import the user's own code that some texts name, which `parse` then reads.

    Call it with what the user typed, and with nothing of other origin unless the user trusts that
    and `hashes` identifies it: importing code runs it.

    Args:
        texts: Losses: ``my_losses.py:Spherical``, ``package.module:Name(gamma=2)``, a name that an
            installed package offers by an entry point, and expressions of all of them.
        hashes: The SHA-256 that the source of a file or module must have, by its name.
    """
    texts = list(texts)
    for text in texts:
        if file := re.search(r"[\w./-]+\.py(?![\w:./-])", text):
            raise SpecError(f"{file[0]} must be followed by a class in it: {file[0]}:NAME")
    code.load([place for text in texts for place in outside(text)], hashes=hashes)
    for text in texts:
        for place, name in code.places(text):
            code.member(f"{code.short(place)}:{name}")
        code.offer(_offered(text))


def outside(text: str) -> list[str]:
    """Return the files and modules of the user's own code in a text; nothing is imported."""
    modules = [value.partition(":")[0] for value in _offered(text).values()]
    return [*(place for place, _ in code.places(text)), *modules]


def _offered(text: str) -> dict[str, str]:
    """Return the names in a text that are not ours and that packages offer."""
    try:
        tree = ast.parse(code.replaced(text.strip(), lambda name: "None"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}  # `read` says what is wrong
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    words = [name for name in names if _ours(name) is None]
    known = code.offered() if words else {}
    return {word: known[word] for word in words if word in known}


def read(text: str) -> Reading:
    """Read a loss as `parse` does, and return it with its text and the code that it names."""
    if not isinstance(text, str):
        raise TypeError(f"a loss expression must be a string, got {text!r}")
    entry = look_up(text)
    if entry is not None:
        loss = entry.make()
        return Reading(loss, str(loss))
    if text.strip().isidentifier() and _maker(text.strip()) is None:
        raise unknown_loss("loss", text)
    meant = look_up(_MINUS.sub("+", text))
    if meant is not None:
        raise SpecError(
            f"{text!r} would be a difference of losses; did you mean {meant.name}? "
            f"A difference has a factor: {_MINUS.sub(' - 1*', text)}"
        )
    try:
        tree = _tree(text)
        result = _value(tree)
        written = ast.unparse(tree)
    except SyntaxError as error:
        raise SpecError(f"cannot read {text!r}: {error.msg} at column {error.offset}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise SpecError(f"cannot read an expression of {len(text)} characters") from None
    if not isinstance(result, Loss):
        raise SpecError(f"{text!r} must describe a loss, got {result}")
    used = code.named(written)
    return Reading(result, written if used else str(result), used)


def _tree(text: str) -> ast.expr:
    """Return the syntax tree, in which one name stands for each name of own code."""
    names: dict[str, str] = {}

    def hide(name: str) -> str:
        word = f"_{len(names)}_"
        while word in text:  # so that no other name is taken for it
            word += "_"
        names[word] = name
        return word

    tree = ast.parse(code.replaced(text.strip(), hide), mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            offered = None if _ours(node.id) else code.full_name(node.id)
            node.id = names.get(node.id) or offered or node.id
    return tree


def _value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=bool() | str() as setting):
            return setting
        case ast.Constant(value=int() | float() as number):
            if math.isfinite(number):
                return number
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value(operand)
            if isinstance(value, int | float | Loss) and not isinstance(value, bool):
                return -value
        case ast.BinOp(left=left, op=operator, right=right):
            return _combine(node, _value(left), operator, _value(right))
        case ast.Name(id=name):
            return _make(name, [], {})
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            given = [keyword.arg for keyword in keywords]
            for keyword in given:
                if given.count(keyword) > 1:
                    raise SpecError(f"{keyword} must be given once, got it twice in {name}(...)")
            named = {keyword.arg: _value(keyword.value) for keyword in keywords}
            return _make(name, [_value(arg) for arg in args], named)
    raise SpecError(
        f"{ast.unparse(node)!r} is not allowed in a loss expression: numbers, +, -, *, / and "
        "calls such as TS(exponential(beta=-8), tau=1) are"
    )


def _combine(node: ast.expr, left: Value, operator: ast.operator, right: Value) -> Value:
    match left, operator, right:
        case Loss(), ast.Add(), Loss():
            return left + right
        case Loss(), ast.Sub(), Loss():
            return left - right
        case int() | float(), ast.Mult(), Loss():
            return left * right
        case Loss(), ast.Mult(), int() | float():
            return left * right
        case Loss(), ast.Div(), int() | float() if right != 0:
            return left / right
        case int() | float(), ast.Mult(), int() | float():
            return left * right
        case int() | float(), ast.Div(), int() | float() if right != 0:
            return left / right
    raise SpecError(
        f"{ast.unparse(node)!r} must add or subtract two losses, or scale one by a number"
    )


def _maker(name: str) -> Maker | None:
    """Look up what builds the name of an expression."""
    own = name if ":" in name else None if _ours(name) else code.full_name(name)
    return _ours(name) if own is None else code.member(own)


def _ours(name: str) -> Maker | None:
    """Look up a name of this package; a wrapper comes before a loss of its name."""
    key = identifier(name)
    if key in _CONSTRUCTIONS or key in _BASES:
        return _CONSTRUCTIONS.get(key) or _BASES[key]
    return BY_IDENTIFIER[key].make if key in BY_IDENTIFIER else None


def _make(name: str, args: list[Value], keywords: dict[str | None, Value]) -> Loss | BaseFunction:
    maker = _maker(name)
    if maker is None:
        hyphenated = [one for one in ENTRIES if one.lower().startswith(f"{name.lower()}-")]
        if hyphenated:
            written = " or ".join(one.replace("-", "_") for one in hyphenated)
            raise SpecError(f"unknown name {name!r}; write {written} in an expression")
        raise unknown_loss("name", name, ("TS", "BR", *map(text_name, _BASES.values())))
    if None in keywords:
        raise SpecError(f"{name} must be called with plain arguments, got **")
    known = parameters_of(maker)
    for keyword in keywords:
        if keyword not in known:
            raise SpecError(str(no_parameter(name, str(keyword), known)))
    try:
        made = maker(*args, **keywords)  # type: ignore[arg-type]
    except TypeError as error:
        raise SpecError(f"{name}: {error}; it takes {', '.join(known)}") from None
    if not isinstance(made, Loss | BaseFunction):
        raise SpecError(f"{name} must return a loss or a base function, got {made!r:.80}")
    return made

"""Losses from text, by a closed grammar on Python's own syntax tree."""

import ast
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from .. import base as bases
from .. import constructions
from ..base import BaseFunction
from ..base.function import text_name
from ..errors import SpecError
from ..loss import Loss
from ..loss.policy import no_parameter, parameters_of
from .entry import BY_IDENTIFIER, ENTRIES, identifier, look_up, unknown_loss

Value = float | bool | str | list[Any] | Loss | BaseFunction
Maker = Callable[..., Loss] | type[BaseFunction]

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


def parse(text: str) -> Loss:
    """Read a loss from a name or a sum: ``0.9*TS(exponential(beta=-8), tau=1) + 0.1*MAE``.

    A text that names a published loss is that loss with its settings, also where it looks like a
    sum: ``NCE + AGCE``. ``1*NCE + 1*AGCE`` is the sum itself.

    Raises:
        SpecError: if the text does not follow the grammar.
        ValueError: if a parameter is outside its range.
    """
    if not isinstance(text, str):
        raise TypeError(f"a loss expression must be a string, got {text!r}")
    entry = look_up(text)
    if entry is not None:
        return entry.make()
    if text.strip().isidentifier() and _maker(text.strip()) is None:
        raise unknown_loss("loss", text)
    meant = look_up(_MINUS.sub("+", text))
    if meant is not None:
        raise SpecError(
            f"{text!r} would be a difference of losses; did you mean {meant.name}? "
            f"A difference has a factor: {_MINUS.sub(' - 1*', text)}"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
        result = _value(tree.body)
    except SyntaxError as error:
        raise SpecError(f"cannot read {text!r}: {error.msg} at column {error.offset}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise SpecError(f"cannot read an expression of {len(text)} characters") from None
    if not isinstance(result, Loss):
        raise SpecError(f"{text!r} must describe a loss, got {result}")
    return result


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
    """Look up what builds the name of an expression; a wrapper comes before a loss of its name."""
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
        return maker(*args, **keywords)  # type: ignore[arg-type]
    except TypeError as error:
        raise SpecError(f"{name}: {error}; it takes {', '.join(known)}") from None

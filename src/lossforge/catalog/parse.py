"""Losses from text, by a closed grammar on Python's own syntax tree."""

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import base as bases
from .. import constructions
from ..base import BaseFunction, text_name
from ..errors import SpecError
from ..loss import Loss

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


class Parser:
    """Reads sums of losses such as ``0.9*TS(exponential(beta=-8), tau=1) + 0.1*BR(linear())``.

    Args:
        catalog: The named losses, by name.
    """

    def __init__(self, catalog: Mapping[str, Callable[..., Loss]]) -> None:
        self._names = {name.lower(): maker for name, maker in catalog.items()}
        named = {_key(name): maker for name, maker in catalog.items()}
        # a wrapper's name means the wrapper in an expression, the published loss on its own
        self._makers: dict[str, Maker] = {**named, **_BASES, **_CONSTRUCTIONS}
        self._known = f"losses {', '.join([*catalog, 'TS', 'BR'])}; base functions " + ", ".join(
            sorted(map(text_name, _BASES.values()))
        )

    def __call__(self, text: str) -> Loss:
        """The loss that `text` describes.

        Raises:
            SpecError: if the text does not follow the grammar.
            ValueError: if a parameter is outside its range.
        """
        if not isinstance(text, str):
            raise TypeError(f"a loss expression must be a string, got {text!r}")
        whole = self._names.get(text.strip().lower())
        if whole is not None:
            # "NCE+AGCE" is a name, not a sum
            return whole()
        try:
            tree = ast.parse(text.strip(), mode="eval")
            result = self._value(tree.body)
        except SyntaxError as error:
            raise SpecError(f"cannot read {text!r}: {error.msg} at column {error.offset}") from None
        except (RecursionError, MemoryError, OverflowError):
            raise SpecError(f"cannot read an expression of {len(text)} characters") from None
        if not isinstance(result, Loss):
            raise SpecError(f"{text!r} must describe a loss, got {result}")
        return result

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | str() as setting):
                return setting
            case ast.Constant(value=int() | float() as number):
                if math.isfinite(number):
                    return number
            case ast.List(elts=items):
                return [self._value(item) for item in items]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._value(operand)
                if isinstance(value, int | float | Loss) and not isinstance(value, bool):
                    return -value
            case ast.BinOp(left=left, op=operator, right=right):
                return self._combine(node, self._value(left), operator, self._value(right))
            case ast.Name(id=name):
                return self._make(name, [], {})
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                named = {keyword.arg: self._value(keyword.value) for keyword in keywords}
                return self._make(name, [self._value(arg) for arg in args], named)
        raise SpecError(
            f"{ast.unparse(node)!r} is not allowed in a loss expression: numbers, +, -, *, / and "
            "calls such as TS(exponential(beta=-8), tau=1) are"
        )

    def _combine(self, node: ast.expr, left: Value, operator: ast.operator, right: Value) -> Value:
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

    def _make(
        self, name: str, args: list[Value], keywords: dict[str | None, Value]
    ) -> Loss | BaseFunction:
        maker = self._makers.get(_key(name))
        if maker is None:
            raise SpecError(f"unknown name {name!r}; known are {self._known}")
        if None in keywords:
            raise SpecError(f"{name} must be called with plain arguments, got **")
        signature = inspect.signature(maker)
        try:
            signature.bind(*args, **keywords)  # type: ignore[arg-type]
        except TypeError as error:
            takes = ", ".join(signature.parameters)
            raise SpecError(f"{name}: {error}; it takes {takes}") from None
        try:
            return maker(*args, **keywords)  # type: ignore[arg-type]
        except TypeError as error:
            raise SpecError(f"{name}: {error}") from None


def _key(name: str) -> str:
    """Names in expressions: any case; underscores stand for what Python does not allow in names."""
    return re.sub(r"[_+-]", "", re.sub(r"\+$", "plus", name.lower()))

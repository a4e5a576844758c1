"""Losses from text, by a closed grammar on Python's own syntax tree."""

import ast
import inspect
import math
from collections.abc import Mapping

from .. import base as bases
from ..base import BaseFunction
from ..constructions import BinaryReduction, TargetLoss, TargetSeparation
from ..errors import SpecError
from ..loss import Loss

Value = float | list[float] | Loss | BaseFunction

_BASES: dict[str, type[BaseFunction]] = {
    name.lower(): member
    for name, member in vars(bases).items()
    if inspect.isclass(member)
    and issubclass(member, BaseFunction)
    and not inspect.isabstract(member)
}
_CONSTRUCTIONS: dict[str, type[Loss]] = {
    "ts": TargetSeparation,
    "br": BinaryReduction,
    "targetseparation": TargetSeparation,
    "binaryreduction": BinaryReduction,
    "targetloss": TargetLoss,
}


class Parser:
    """Reads sums of losses such as ``0.9*TS(exponential(beta=-8), tau=1) + 0.1*BR(linear())``.

    Args:
        catalog: The named losses, by name.
    """

    def __init__(self, catalog: Mapping[str, type[Loss]]) -> None:
        named = {name.lower(): loss for name, loss in catalog.items()}
        self._makers: dict[str, type[Loss] | type[BaseFunction]] = {
            **_BASES,
            **_CONSTRUCTIONS,
            **named,
        }
        self._known = f"losses {', '.join([*catalog, 'TS', 'BR'])}; base functions " + ", ".join(
            sorted(_text_name(maker) for maker in _BASES.values())
        )

    def __call__(self, text: str) -> Loss:
        """The loss that `text` describes.

        Raises:
            SpecError: if the text does not follow the grammar.
            ValueError: if a parameter is outside its range.
        """
        if not isinstance(text, str):
            raise TypeError(f"a loss expression must be a string, got {text!r}")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise SpecError(f"cannot read {text!r}: {error.msg} at column {error.offset}") from None
        result = self._value(tree.body)
        if not isinstance(result, Loss):
            raise SpecError(f"{text!r} must describe a loss, got {result}")
        return result

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                if math.isfinite(number):
                    return number
            case ast.List(elts=items):
                return [self._number(item) for item in items]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._value(operand)
                if isinstance(value, int | float | Loss):
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
        raise SpecError(
            f"{ast.unparse(node)!r} must add or subtract two losses, or scale one by a number"
        )

    def _number(self, node: ast.expr) -> float:
        value = self._value(node)
        if not isinstance(value, int | float):
            raise SpecError(f"{ast.unparse(node)!r} must be a number")
        return value

    def _make(
        self, name: str, args: list[Value], keywords: dict[str | None, Value]
    ) -> Loss | BaseFunction:
        maker = self._makers.get(name.lower().replace("_", ""))
        if maker is None:
            raise SpecError(f"unknown name {name!r}; known are {self._known}")
        if None in keywords:
            raise SpecError(f"{name} must be called with plain arguments, got **")
        signature = inspect.signature(maker)
        try:
            signature.bind(*args, **keywords)  # type: ignore[arg-type]
        except TypeError as error:
            raise SpecError(f"{name}{signature} {error}") from None
        try:
            return maker(*args, **keywords)  # type: ignore[arg-type]
        except TypeError as error:
            raise SpecError(f"{name}: {error}") from None


def _text_name(maker: type[BaseFunction]) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in maker.__name__).lstrip("_")

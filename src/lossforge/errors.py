"""The package's exceptions and the checks every tier shares."""

import importlib
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any


class ApproximationError(ValueError):
    """A function could not be resolved by a series of reasonable length."""


class SpecError(ValueError):
    """A text form (a loss expression) that does not follow the grammar."""


def check_number(
    name: str,
    value: object,
    rule: str = "finite",
    holds: Callable[[float], bool] = math.isfinite,
) -> None:
    """Raise unless `value` is a finite real number that satisfies a rule.

    Args:
        name: The argument's name, as the user wrote it.
        value: What the user passed.
        rule: The rule in words, completing "name must be ...".
        holds: Whether a number satisfies the rule.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or not holds(float(value)):
        raise ValueError(f"{name} must be {rule}, got {value}")


def check_integer(name: str, value: object, least: int) -> None:
    """Raise unless `value` is an integer, and not too small.

    Args:
        name: The argument's name, as the user wrote it.
        value: What the user passed.
        least: The smallest that is allowed.
    """
    complaint = f"{name} must be an integer of {least} or more, got {value!r}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(complaint)
    if int(value) < least:
        raise ValueError(complaint)


def extra(module: str, name: str) -> Any:
    """Import an optional dependency, or say which extra brings it.

    Args:
        module: What to import, e.g. "PIL.Image".
        name: The extra of this package that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ImportError(
            f"{error.name} is needed for this: pip install 'lossforge[{name}]'"
        ) from error

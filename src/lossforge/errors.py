"""The package's exceptions and the argument check every tier shares."""

import math
from collections.abc import Callable
from numbers import Real


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

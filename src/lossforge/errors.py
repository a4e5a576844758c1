"""The package's exceptions and the checks every tier shares."""

import difflib
import importlib
import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # names and numbers must be checked without waiting for torch
    from torch import Tensor

LARGEST = 1e12
"""The most that a factor of a loss may be.

Networks are trained in single precision, which ends at 3.4e38: a coefficient times a scale times a
value of 1e14 stays within it.
"""

ROW_TOLERANCE = 1e-6
"""How far the sum of label probabilities may be from one: estimates come in single precision."""


class ApproximationError(ValueError):
    """A function could not be resolved by a series of reasonable length."""


_LONGEST = 1000  # characters of a message, which may quote a text of any length


class SpecError(ValueError):
    """A name, text or spec that cannot be read."""

    def __init__(self, message: str) -> None:
        if len(message) > _LONGEST:
            half = _LONGEST // 2
            message = f"{message[:half]} [...] {message[-half:]}"
        super().__init__(message)


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
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be {rule}, got an integer beyond all floats") from None
    if not math.isfinite(number) or not holds(number):
        raise ValueError(f"{name} must be {rule}, got {value}")


def check_factor(
    name: str,
    value: object,
    rule: str = "",
    holds: Callable[[float], bool] = math.isfinite,
) -> None:
    """Raise unless `value` is a number that a loss may be multiplied by, not above `LARGEST`."""
    most = f"{LARGEST:g} or less in size"
    rule = f"{rule} and {most}" if rule else most
    check_number(name, value, rule, lambda v: abs(v) <= LARGEST and holds(v))


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


def check_rows(name: str, rows: "Tensor") -> None:
    """Raise unless every row holds probabilities that sum to one within `ROW_TOLERANCE`.

    Args:
        name: What the user calls the rows, such as "T" or "the noise".
        rows: (R, K), in float64.
    """
    wrong = ~((rows >= 0) & (rows <= 1 + ROW_TOLERANCE))
    if bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        bad = float(rows[row, column])
        raise ValueError(f"row {row} of {name} must hold probabilities, got {bad:g}")
    sums = rows.sum(1)
    off = (sums - 1).abs() > ROW_TOLERANCE
    if bool(off.any()):
        row = int(off.nonzero()[0])
        raise ValueError(f"row {row} of {name} must sum to 1, got {float(sums[row]):.9g}")


def near(name: str, known: Iterable[str], most: int = 4) -> list[str]:
    """Return the known names that are spelt most like a name, in any case."""
    spelt = {one.lower(): one for one in known}
    return [spelt[one] for one in difflib.get_close_matches(name.strip().lower(), spelt, most, 0.5)]


def unknown(what: str, name: str, known: Iterable[str], remedy: str = "") -> SpecError:
    """Build the error for an unknown name: it lists the nearest names, or all; its note lists all.

    Args:
        what: What was looked for, such as "data set".
        name: What the user wrote.
        known: All names there are.
        remedy: Where to look instead of a list of all names.
    """
    known = list(known)
    hints = near(name, known)
    parts = [f"unknown {what} {name!r}"]
    if hints:
        parts.append(f"did you mean {' or '.join(hints)}?")
    parts.append(remedy or f"known: {', '.join(known)}")
    error = SpecError("; ".join(parts).replace("?; ", "? "))
    error.add_note(f"known are {', '.join(known)}")
    return error


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

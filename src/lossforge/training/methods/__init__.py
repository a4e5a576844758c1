"""Training methods by name, and their text form."""

import ast
import inspect
from typing import Any

from ...errors import SpecError, unknown
from ..method import Method
from .adaptation import NoiseAdaptation
from .bootstrapping import HardBootstrap, SoftBootstrap
from .dmi import DMI
from .elr import ELR
from .entropy import EntropyRegularised
from .mentornet import MentorNetPD
from .mixture import MixtureSelection
from .mixup import Mixup
from .peers import CoTeaching, Decoupling
from .transition import BackwardCorrected, ForwardCorrected

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Method,
        SoftBootstrap,
        HardBootstrap,
        Mixup,
        ELR,
        CoTeaching,
        Decoupling,
        MixtureSelection,
        MentorNetPD,
        ForwardCorrected,
        BackwardCorrected,
        NoiseAdaptation,
        DMI,
        EntropyRegularised,
    )
}
"""All methods by name; the first is the plain loop."""


def method_names() -> list[str]:
    """Return the names of all methods."""
    return list(METHODS)


def make_method(text: str) -> Method:
    """Make a method of its text: a name, and options in parentheses.

    >>> str(make_method("soft_bootstrap(beta=1)"))
    'soft_bootstrap(beta=1.0)'
    """
    name, options = _read(text)
    found = METHODS.get(name)
    if found is None:
        raise unknown("method", name, METHODS)
    known = inspect.signature(found).parameters
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    for option, parameter in known.items():
        if parameter.default is parameter.empty and option not in options:
            raise SpecError(f"{name} must have the option {option}, got {text!r}")
    try:
        return found(**options)
    except (TypeError, ValueError) as error:
        raise SpecError(f"{name}: {error}") from None


def _read(text: str) -> tuple[str, dict[str, Any]]:
    """Read a name and literal keyword arguments; nothing in the text is executed."""
    rule = f"a method must be NAME or NAME(option=value, ...), got {text!r}"
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what the parser raises
        raise SpecError(rule) from None
    if isinstance(found, ast.Name):
        return found.id.lower(), {}
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name) or found.args:
        raise SpecError(rule)
    options = {}
    for argument in found.keywords:
        try:
            options[str(argument.arg)] = ast.literal_eval(argument.value)
        except ValueError:
            raise SpecError(rule) from None
    return found.func.id.lower(), options

"""Losses by name."""

import inspect
from typing import Any

from ..base.function import format_arguments
from ..errors import check_number
from ..loss import Loss, Policy
from ..loss.policy import no_parameter
from ..noise import NoiseSpec
from .entry import find
from .published import select


def make(
    name: str,
    preset: str | None = None,
    noise: str | NoiseSpec | None = None,
    **parameters: Any,
) -> Loss:
    """Make a loss by its name.

    Args:
        name: A name or alias from `names`, in any case.
        preset: Take the published setting for a data set: cifar10, cifar100, webvision,
            clothing1m or mnist.
        noise: The label noise that a published setting is chosen by, such as "symmetric:0.4".
        parameters: Parameters of the loss and of its policy; they override published ones.

    Example:
        >>> make("gce", q=0.5)
        GCE(q=0.5)
    """
    if str(name).lower() == "logitclip-official":
        if preset is not None or noise is not None:
            raise ValueError("LogitClip-official takes temp and lp; CE+LC has published settings")
        return _official_logit_clip(**parameters)
    entry = find(name)
    known = [*entry.parameters(), *Policy.__annotations__]
    for parameter in parameters:
        if parameter not in known:
            raise no_parameter(entry.name, parameter, known)
    if noise is not None and preset is None:
        raise ValueError(f"noise selects a published setting, got noise={noise!r} without preset")
    published = {} if preset is None else select(preset, entry.name, noise).parameters
    settings = {**published, **parameters}
    for parameter, value in settings.items():
        if isinstance(value, float):
            check_number(parameter, value)
    missing = [
        parameter
        for parameter, default in entry.parameters().items()
        if default is inspect.Parameter.empty and parameter not in settings
    ]
    if missing:
        raise TypeError(f"{entry.name} needs {', '.join(missing)}")
    return entry.make(**settings)


def spell(name: str, parameters: dict[str, Any]) -> str:
    """Return the text of a loss made by its name, as `lossforge.parse` reads it."""
    loss, known = make(name, **parameters), find(name).name
    if ":" not in known:
        return str(loss)
    given = {
        key: repr(value) if isinstance(value, str) else value
        for key, value in parameters.items()
        if value is not None
    }
    return f"{known}({format_arguments(given)})"


def _official_logit_clip(*, temp: float = 1.0, lp: float = 2.0, **parameters: Any) -> Loss:
    """Make LogitClip by the released code's own parameters."""
    check_number("temp", temp, "positive", lambda v: v > 0)
    return make("CE+LC", delta=1 / temp, p=lp, as_released=True, **parameters)

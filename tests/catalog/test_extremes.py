"""A parameter is refused by its name, or value and gradient are finite: there is no third way."""

import inspect
import math
import re
from dataclasses import fields
from typing import Any

import pytest
import torch
from catalog.wrapped import transition
from torch import Tensor

import lossforge
from lossforge import base, constructions
from lossforge.base import BaseFunction
from lossforge.catalog.entry import ENTRIES

SIZES = (1.0, 1e10, 1e30, 1e38, 1e300, 1e-10, 1e-30, 1e-46, 1e-300, 5e-324)
EXTREMES = [
    *(sign * size for size in SIZES for sign in (1, -1)),
    *(0, 10**30, 10**400, -(10**400), math.inf, math.nan, 0.5, 0.999999999, 1 - 2**-53),
]
MARGINS = (0.0, 0.5, -0.5, 12.0, -12.0, 100.0, -100.0, 1e3, -1e3)


def fields_of(kind: type[BaseFunction]) -> list[str]:
    """The numbers that a base function is made of; none of an abstract one, or of a series."""
    names = [] if inspect.isabstract(kind) else [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [
        name
        for name in names
        if name not in ("base", "stop_gradient", "coefficients", "logarithmic")
    ]


BASES = {
    name: member
    for name, member in vars(base).items()
    if inspect.isclass(member) and issubclass(member, BaseFunction) and fields_of(member)
}
CONSTRUCTED: dict[str, dict[str, Any]] = {
    "TargetLoss": {"base": base.Log(), "scale": 1.0, "offset": 0.0},
    "TargetSeparation": {"base": base.Linear(), "tau": 1.0, "a": 0.1},
    "BinaryReduction": {"base": base.Linear(), "xi": 0.1},
    "Normalised": {"base": base.Log(), "scale": 1.0},
    "PowerDistance": {"a": 2.0, "r": 2.0, "scale": 1.0},
    "Sparsity": {"p": 0.5},
    "LogitClip": {"loss": lossforge.CE(), "delta": 1.0, "p": 2.0},
    "Sharpened": {"loss": lossforge.CE(), "tau": 0.5},
    "EpsSoftmax": {"loss": lossforge.CE(), "m": 10.0},
}


def is_finite(loss: Any) -> bool:
    """Whether value and gradient are finite in both precisions, from uniform to one-hot."""
    results: list[Tensor] = []
    for dtype in (torch.float32, torch.float64):
        z = torch.zeros(2 * len(MARGINS), 3, dtype=dtype)
        z[:, 0] = torch.tensor(MARGINS, dtype=dtype).repeat(2)
        z[: len(MARGINS), 1] = 0.3
        z.requires_grad_()
        views = len(loss.weights) - 1 if isinstance(loss, lossforge.GJS) else 0
        value = loss([z] * views if views else z, torch.arange(len(z)) % 3)
        results += [value, *torch.autograd.grad(value, z)]
    return all(bool(torch.isfinite(result).all()) for result in results)


def settings(default: object, extreme: float) -> object:
    """An extreme value of a parameter; of the weights of a divergence, the label's is."""
    if not isinstance(default, tuple):
        return extreme
    rest = (1 - extreme) / (len(default) - 1) if abs(extreme) < 1e300 else 0.0
    return (extreme, *[rest] * (len(default) - 1))


def survives(make: Any, name: str, value: object) -> None:
    """Refused by name, as what "must be" or as it was given; or finite."""
    refusal, loss = "", None
    try:
        loss = make()
    except ValueError as error:
        refusal = str(error)
    named = re.search(rf"\b{name}( ?=| must| of .* must)|[*+] {name}\b", refusal) is not None
    assert named if loss is None else is_finite(loss), f"{name}={value!r:.40}: {refusal}"


def numeric(entry: Any) -> list[tuple[str, object]]:
    return [
        (name, default)
        for name, default in entry.parameters().items()
        if name not in ("base", "T") and not isinstance(default, bool)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_extreme_parameters_are_refused_by_name_or_finite(name: str) -> None:
    needed = {"T": transition(3)} if "T" in ENTRIES[name].parameters() else {}
    for parameter, default in numeric(ENTRIES[name]):
        for extreme in EXTREMES:
            value = settings(default, extreme)
            given = {parameter: value, **needed}
            survives(lambda given=given: lossforge.make(name, **given), parameter, value)


@pytest.mark.parametrize("kind", BASES)
def test_extreme_base_functions_are_refused_by_name_or_finite(kind: str) -> None:
    usual = {"q": 0.7, "a": 1.5, "t": 2, "gamma": 0.5, "tau": 2.0, "eps": 0.1, "pi0": 0.5}
    usual |= {"scale": 1.0, "alpha": -1.0, "beta": -1.0, "base": base.Log(), "stop_gradient": False}
    taken = {field.name: usual[field.name] for field in fields(BASES[kind])}
    for name in fields_of(BASES[kind]):
        for extreme in EXTREMES:
            given = {**taken, name: extreme}

            def make(given: dict[str, Any] = given) -> Any:
                return constructions.TargetSeparation(BASES[kind](**given), tau=1.0)

            survives(make, name, extreme)


@pytest.mark.parametrize("kind", CONSTRUCTED)
def test_extreme_constructions_are_refused_by_name_or_finite(kind: str) -> None:
    usual = CONSTRUCTED[kind]
    for name in set(usual) - {"base", "loss"}:
        for extreme in EXTREMES:
            given = {**usual, name: extreme}
            survives(lambda given=given: getattr(constructions, kind)(**given), name, extreme)


@pytest.mark.parametrize("extreme", EXTREMES, ids=lambda extreme: f"{extreme!r:.12}")
def test_extreme_coefficients_are_refused_or_finite(extreme: float) -> None:
    survives(lambda: extreme * lossforge.CE(), "coefficient", extreme)
    survives(lambda: extreme * (extreme * lossforge.MAE()), "coefficient", extreme)


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "GCE(q=0.1,q=0.2)": "q must be given once",
        "1e308*CE*1e308": "coefficient",
        "1e10*CE*1e10": "coefficient must be",
        "GCE(q=1e-300)": "q=1e-300",
        "BEF(beta=700)": "beta=700",
        "BEF(br_beta=700)": "br_beta=700",
        "sharpened(CE, tau=1e-300)": "tau must be",
        "TaylorCE(t=1e8)": "t must be a whole number from 1 to 10000",
        "BR(exponential(alpha=-1e300, beta=-1e300))": "alpha=-1e[+]300",
        "BR(exponential(beta=-1e300))": "beta=-1e[+]300",
        "SCE(alpha=1e300)": "alpha=1e[+]300",
    }.items(),
)
def test_what_once_gave_nan_in_silence_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        lossforge.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10**6,
        "CE(q=" + "1" * 10**5 + ")",
        "GCE(q='" + "a" * 10**5 + "')",
        "CE*'" + "a" * 10**5 + "'",
    ],
    ids=["name", "number", "argument", "factor"],
)
def test_an_error_quotes_no_more_of_a_text_than_fits_a_screen(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        lossforge.parse(text)
    assert len(str(caught.value)) < 1100

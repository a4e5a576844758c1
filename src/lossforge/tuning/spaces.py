"""The search space of every loss in the catalogue: which numbers are tuned, and where.

The registration of a loss has the range of each parameter that is tuned. Positive weights and
scales are log-uniform and hold the published settings of all data sets; exponents and shares are
uniform. Switches (`stop_gradient`, `as_released`), numerical guards (`eps` of a sum, `A_clamp`,
`norm_eps`) and whatever else has no range stay as published. Where numbers depend on each other,
the space is here and has coordinates of its own:

* BEF: `scale` = -alpha; `balance` = lam, with mu = 1 - lam; `br_gamma` stays 0.5, which keeps
  binary reduction symmetric. With more than 150 classes `cosine` is 1 where mu is not given, so
  that the bounded cosine takes the place of binary reduction.
* BQF: `scale` = -beta; `bend` = alpha max(gamma, 1 - gamma)^2 / scale, which must be below 1;
  `balance` as above; `br_beta` = beta, which is valid for every bend.
* tau of both is 0 or up to 2 (K - 1): noise that goes to one class asks for about K - 1.
* JS, GJS: `pi`, the weight of the label; the rest is shared equally.
* forward, backward: `rate` of the symmetric noise that T describes; 0.2 is tried first.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..catalog import find
from ..catalog.balanced import default_tau
from ..catalog.ranges import Range, log, uniform, whole
from ..constructions.pairs import BALANCE, MANY_RIVALS
from ..errors import SpecError
from ..noise import symmetric

Numbers = dict[str, float]
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Space:
    """Where the parameters of one loss are looked for.

    Args:
        ranges: One for each coordinate.
        parameters: From coordinates to parameters of the loss; None if they are the same.
        coordinates: The way back.
        start: Coordinates that are tried first where the loss has no defaults.
    """

    ranges: Mapping[str, Range]
    parameters: Callable[[Numbers], Parameters] | None = None
    coordinates: Callable[[Parameters], Numbers] | None = None
    start: Mapping[str, float] | None = None

    def make(self, point: Mapping[str, float]) -> Parameters:
        """Return the parameters that a point of the space means."""
        values = {name: one.value(point[name]) for name, one in self.ranges.items()}
        return dict(values) if self.parameters is None else self.parameters(values)

    def find(self, parameters: Parameters) -> Numbers:
        """Return the numbers, coordinate by coordinate, that some parameters stand for."""
        if self.coordinates is not None:
            return self.coordinates(parameters)
        return {name: float(parameters[name]) for name in self.ranges}

    def point(self, parameters: Parameters) -> Numbers:
        """Return the point that means some parameters; ranges are extended to hold it."""
        numbers = self.find(parameters)
        ranges = self.including(numbers).ranges
        return {name: ranges[name].coordinate(value) for name, value in numbers.items()}

    def including(self, *points: Mapping[str, float]) -> "Space":
        """Return the space, made as large as some points need."""
        ranges = dict(self.ranges)
        for point in points:
            ranges = {name: one.including(point[name]) for name, one in ranges.items()}
        return replace(self, ranges=ranges)


def space(name: str, num_classes: int) -> Space:
    """Return the search space of a loss.

    Args:
        name: A name of the catalogue.
        num_classes: K, on which a few ranges depend.
    """
    entry = find(name)
    if entry.name in DEPENDENT:
        return DEPENDENT[entry.name](num_classes)
    if not entry.tune:
        raise SpecError(f"{entry.name} has no parameters to tune; GCE or BEF, for example, have")
    usual = entry.parameters()
    for key in entry.tune:
        if usual.get(key, inspect.Parameter.empty) is inspect.Parameter.empty:
            raise SpecError(
                f"tune of {entry.name} has {key!r}, which must be a keyword with a default value; "
                "the search begins there"
            )
    return Space(entry.tune)


def _bef(num_classes: int) -> Space:
    def parameters(point: Numbers) -> Parameters:
        kept = {name: point[name] for name in ("beta", "gamma", "tau", "br_beta")}
        return {"alpha": -point["scale"], **kept, **_weights(point)}

    def coordinates(found: Parameters) -> Numbers:
        br_beta = found["beta"] if found.get("br_beta") is None else found["br_beta"]
        kept = {"beta": found["beta"], **_separation(found, num_classes)}
        total, balance = _balance(found, num_classes)
        return {"scale": -found["alpha"] * total, **kept, "br_beta": br_beta, **balance}

    ranges = {
        "scale": log(0.5, 64),
        "beta": uniform(-16, 4),
        "gamma": uniform(0, 1),
        "tau": _tau(num_classes),
        "balance": uniform(0, 1),
        "br_beta": uniform(-16, 4),
        **_switch(num_classes),
    }
    return Space(ranges, parameters, coordinates)


def _bqf(num_classes: int) -> Space:
    def parameters(point: Numbers) -> Parameters:
        reach = max(point["gamma"], 1 - point["gamma"]) ** 2
        alpha = float(f"{point['bend'] * point['scale'] / reach:.3g}")
        kept = {name: point[name] for name in ("gamma", "tau")}
        return {"alpha": alpha, "beta": -point["scale"], **kept, **_weights(point)}

    def coordinates(found: Parameters) -> Numbers:
        reach = max(found["gamma"], 1 - found["gamma"]) ** 2
        bend = -found["alpha"] * reach / found["beta"]
        kept = _separation(found, num_classes)
        total, balance = _balance(found, num_classes)
        return {"scale": -found["beta"] * total, "bend": bend, **kept, **balance}

    ranges = {
        "scale": log(0.5, 64),
        "bend": uniform(-2, 0.95),
        "gamma": uniform(0, 1),
        "tau": _tau(num_classes),
        "balance": uniform(0, 1),
        **_switch(num_classes),
    }
    return Space(ranges, parameters, coordinates)


def _separation(found: Parameters, num_classes: int) -> Numbers:
    tau = default_tau(num_classes) if found["tau"] is None else found["tau"]
    return {"gamma": found["gamma"], "tau": tau}


def _tau(num_classes: int) -> Range:
    return log(0.05, max(4.0, 2.0 * (num_classes - 1)), zero=True)


def _switch(num_classes: int) -> dict[str, Range]:
    """Return the coordinate that chooses the bounded cosine, where it is the default."""
    return {"cosine": whole(0, 1)} if num_classes - 1 > MANY_RIVALS else {}


def _weights(point: Numbers) -> Parameters:
    lam = point["balance"]
    return {"lam": lam, "mu": None if point.get("cosine") else round(1 - lam, 6)}


def _balance(found: Parameters, num_classes: int) -> tuple[float, Numbers]:
    """Return lam + mu, which is 1 in the space and goes into the scale, and the share of lam.

    With the bounded cosine, whose coefficient is that of the scale, lam stays as it is.
    """
    many = num_classes - 1 > MANY_RIVALS
    if many and found["mu"] is None:
        return 1.0, {"balance": float(found["lam"]), "cosine": 1.0}
    total = float(found["lam"] + (BALANCE if found["mu"] is None else found["mu"]))
    return total, {"balance": float(found["lam"] / total)} | ({"cosine": 0.0} if many else {})


def _views(count: int) -> Space:
    """Return the space of a Jensen-Shannon divergence between a label and `count` views."""

    def parameters(point: Numbers) -> Parameters:
        rest = round((1 - point["pi"]) / count, 6)
        return {"weights": [round(1 - count * rest, 6), *[rest] * count]}

    def coordinates(found: Parameters) -> Numbers:
        return {"pi": float(found["weights"][0])}

    return Space({"pi": uniform(0.02, 0.98)}, parameters, coordinates)


def _corrected(num_classes: int) -> Space:
    def parameters(point: Numbers) -> Parameters:
        return {"T": symmetric(num_classes, point["rate"])}

    most = 0.95 * (num_classes - 1) / num_classes  # beyond, T is all but singular
    return Space({"rate": uniform(0.01, most)}, parameters, start={"rate": 0.2})


DEPENDENT: dict[str, Callable[[int], Space]] = {
    "BEF": _bef,
    "BQF": _bqf,
    "JS": lambda num_classes: _views(1),
    "GJS": lambda num_classes: _views(2),
    "forward": _corrected,
    "backward": _corrected,
}
"""The losses whose parameters depend on each other, or on the number of classes."""

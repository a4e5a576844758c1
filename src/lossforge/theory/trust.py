"""Whether a loss computes what it declares: by how its classes are made, and by trying it.

A declaration is believed of the library's own types, of subclasses that override `__init__` alone,
and of a class that declares its parts itself. Neither hooks nor attributes of an instance may stand
in for a method. Whatever is believed is then compared with the loss as it is called, at random
predictions: values up to a constant, and gradients.
"""

import copy
import math
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from ..base import BaseFunction, Point
from ..constructions import Part
from ..loss import Loss, WeightedSum

_DRAWS = 60
_SCALES = (0.3, 1.0, 3.0, 8.0, 30.0)  # of the logits
_MOST = 1 << 16  # logits in a comparison
_VALUES, _GRADIENTS = 1e-9, 1e-7  # relative to the largest
_SLOPES, _PANEL = 1e-9, 1e-3  # relative
_ENDS, _TINY = 1e-6, 1e-7  # of [0, 1] where panels start; of the whole integral
_KINKS, _HALVINGS = 8, 14  # the error of a panel with a kink falls fourfold each time
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TRUSTED = {__name__.partition(".")[0], "torch", "abc", "builtins", "typing"}
_HARMLESS = {  # to define: construction, text, and what classes and dataclasses get by themselves
    *("__init__", "__post_init__", "__init_subclass__", "__str__", "__repr__", "__doc__"),
    *("__module__", "__dict__", "__weakref__", "__annotations__", "__annotate_func__"),
    *("__annotations_cache__", "__abstractmethods__", "_abc_impl", "__static_attributes__"),
    *("__firstlineno__", "__dataclass_fields__", "__dataclass_params__", "__match_args__"),
    *("__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__"),
}


def doubt(loss: Loss) -> str | None:
    """Why what a loss declares cannot be believed; None if it can."""
    reason = _overridden(loss, declarer(loss))
    if reason is None and any(getattr(loss, hooks, None) for hooks in _HOOKS):
        return "it has hooks"
    if reason is None and loss._compiled_call_impl is not None:
        return "its call is compiled; a loss is judged before"
    return reason


def declarer(loss: Loss) -> type:
    """The class that says what a loss consists of."""
    declaration = "terms" if isinstance(loss, WeightedSum) else "parts"
    return next((kind for kind in type(loss).__mro__ if declaration in vars(kind)), Loss)


def is_foreign(kind: type) -> bool:
    """Whether a class is neither the library's nor torch's."""
    if kind.__module__.partition(".")[0] not in _TRUSTED:
        return True
    # a class made by type() is given the module of its metaclass
    return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind


def draws(num_classes: int) -> int:
    """The number of predictions at which a loss is compared with what it declares."""
    return max(len(_SCALES), min(_DRAWS, _MOST // num_classes))


def nested(base: BaseFunction) -> list[BaseFunction]:
    """A base function and those that it is made of."""
    inner = [value for value in vars(base).values() if isinstance(value, BaseFunction)]
    return [base, *(one for each in inner for one in nested(each))]


def deviation(loss: Loss, terms: Sequence[tuple[float, Part]], num_classes: int) -> str | None:
    """How a loss as it is called differs from its declared terms; None if it does not."""
    bases: dict[BaseFunction, BaseFunction] = {}
    for _, part in terms:
        first = bases.setdefault(part.base, part.base)
        reason = _doubt_base(part.base)
        # forms and tables take equal base functions for one
        if reason is None and first is not part.base and not _same(first, part.base):
            reason = f"{part.base}: it equals another base function that has other values"
        if reason is not None:
            return reason
    generator, n = torch.Generator().manual_seed(0), draws(num_classes)
    scales = torch.tensor(_SCALES, dtype=torch.float64).repeat(-(-n // len(_SCALES)))[:n]
    drawn = torch.randn(n, num_classes, generator=generator, dtype=torch.float64)
    target = torch.randint(num_classes, (n,), generator=generator)
    called = copy.copy(loss)  # with the hooks and attributes of this one
    called.reduction = "none"
    values, gradient = _value_and_gradient(called, scales[:, None] * drawn, target)
    expected, slopes = _value_and_gradient(
        lambda z, t: _evaluate(terms, z, t), scales[:, None] * drawn, target
    )
    if values.shape != expected.shape:
        return f"its values have the shape {tuple(values.shape)}, not one for each sample"
    offset = values - expected
    size = expected.abs().max() + values.abs().max()
    if not float(offset.max() - offset.min()) <= _VALUES * float(size):
        return "its values are not those of its parts"
    if not float((gradient - slopes).abs().max()) <= _GRADIENTS * float(slopes.abs().max()):
        return "its gradients are not those of its parts"
    return None


def _value_and_gradient(loss: object, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    with torch.enable_grad():
        values: Tensor = loss(logits, target)  # type: ignore[operator]
        (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach(), gradient


def _evaluate(terms: Sequence[tuple[float, Part]], logits: Tensor, target: Tensor) -> Tensor:
    """(N,) sums of declared terms, by their definitions."""
    u = torch.softmax(logits, 1)
    label = target[:, None]
    own, rivals = u.gather(1, label)[:, 0], torch.ones_like(u).scatter(1, label, 0.0)
    # u_t / (u_t + u_i), without the ratio of two numbers that underflow
    pairs = torch.sigmoid(logits.gather(1, label) - logits)
    total = torch.zeros_like(own)
    for scale, part in terms:
        h, H = part.base.h, part.base.H
        if part.role == "target":
            term = h(own)
        elif part.role == "others":
            term = (rivals * H(u)).sum(1)
        elif part.role == "pairs":
            term = (rivals * h(pairs)).sum(1) / (u.shape[1] - 1)
        elif part.role == "share":
            term = h(own) / h(u).sum(1)
        elif part.role == "cosine":
            term = h((1 + _cosine(logits, label)) / 2)
        else:
            term = -H(own) / H(u).sum(1)
        total = total + scale * part.factor * term
    return total


def _cosine(logits: Tensor, label: Tensor) -> Tensor:
    """(N,) c z_t / n of centred logits."""
    centred = logits - logits.mean(1, keepdim=True)
    n = torch.sqrt(centred.square().sum(1) + 1)
    c = math.sqrt(logits.shape[1] / (logits.shape[1] - 1))
    return c * centred.gather(1, label)[:, 0] / n


def _overridden(thing: object, owner: type) -> str | None:
    """What stands in for a method of a class: in a subclass of it, or on the instance."""
    kinds = type(thing).__mro__
    # a class from outside answers for what it inherits; the library only for itself
    below = kinds[: kinds.index(owner)] if is_foreign(owner) else kinds
    for kind in filter(is_foreign, below):
        for name in sorted(vars(kind).keys() - _HARMLESS):
            if any(name in vars(other) for other in kinds if other is not kind):
                return f"{kind.__name__} overrides {name}"
    for name in vars(thing):
        if callable(getattr(type(thing), name, None)):
            return f"an attribute stands in for its method {name}"
    return None


def _doubt_base(base: BaseFunction) -> str | None:
    """Why a base function does not compute what its parameters and its density say."""
    for inner in nested(base)[1:]:
        reason = _doubt_base(inner)
        if reason is not None:
            return reason
    kinds = type(base).__mro__
    # turning points and closed forms hold for the density of the class that has them
    owner = next((kind for kind in kinds if _has_density(kind)), type(base))
    reason = _overridden(base, owner)
    if reason is None and is_dataclass(type(base)):
        try:
            rebuilt: BaseFunction = replace(cast(Any, base))
        except ValueError as error:
            return f"{base} has a parameter changed after construction: {error}"
        if not _same(base, rebuilt):
            reason = "a parameter was changed after construction"
    if reason is None and not _is_consistent(base):
        reason = "its value, cumulative and slope are not those of its density"
    return None if reason is None else f"{base}: {reason}"


def _has_density(kind: type) -> bool:
    density = vars(kind).get("density")
    return not is_foreign(kind) and density is not None and not _is_abstract(density)


def _is_abstract(method: object) -> bool:
    return getattr(method, "__isabstractmethod__", False)


def _quantities(base: BaseFunction, p: Tensor) -> tuple[Tensor, ...]:
    """Value, cumulative, slope and density at probabilities."""
    at = Point(torch.log(p))
    return base.value(at), base.cumulative(at), base.slope(at), base.density(p)


def _same(first: BaseFunction, second: BaseFunction) -> bool:
    points = torch.linspace(0.01, 1, 23, dtype=torch.float64)
    computed = zip(_quantities(first, points), _quantities(second, points), strict=True)
    return all(torch.equal(*both) for both in computed)


def _is_consistent(base: BaseFunction) -> bool:
    """Whether value and cumulative change by the integral of the density, and slope is p times it.

    Turning points lie between panels. A panel with a kink inside is halved until its part of the
    whole is negligible; where the functions really differ, more and more panels are off.
    """
    small = torch.logspace(math.log10(_ENDS), -1, 41, dtype=torch.float64)
    turns = torch.tensor(base.turning_points() or (), dtype=torch.float64)
    middle = torch.linspace(0.12, 0.88, 39, dtype=torch.float64)
    ends = torch.cat([small, middle, turns[turns > _ENDS], 1 - small, torch.ones(1)])
    ends = ends.sort().values
    left, right, whole = ends[:-1], ends[1:], None
    for _ in range(_HALVINGS):
        integral, error = _panels(base, left, right)
        whole = integral.sum() if whole is None else whole
        off = ~(error <= _PANEL * integral + _TINY * whole)
        if not bool(off.any()):
            return True
        if int(off.sum()) > _KINKS:
            return False
        left, middle, right = left[off], (left[off] + right[off]) / 2, right[off]
        left, right = torch.cat([left, middle]), torch.cat([middle, right])
    return False


def _panels(base: BaseFunction, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Integrals of the density over panels, and how far value and cumulative are from them.

    By three-point Gauss quadrature. The error is NaN where the slope is not p times the density.
    """
    nodes = torch.tensor([-(0.6**0.5), 0.0, 0.6**0.5], dtype=torch.float64) / 2
    weights = torch.tensor([5.0, 8.0, 5.0], dtype=torch.float64) / 18
    width, middle = (right - left)[:, None], (left + right)[:, None] / 2
    p = middle + width * nodes
    _, _, slope, density = _quantities(base, p)
    integral = (width * weights * density).sum(1)
    first, last = _quantities(base, left), _quantities(base, right)
    lost, gained = first[0] - last[0], last[1] - first[1]
    error = torch.maximum((lost - integral).abs(), (gained - integral).abs())
    sound = ((slope - p * density).abs() <= _SLOPES * (slope.abs() + 1e-300)).all(1)
    return integral, torch.where(sound, error, math.nan)

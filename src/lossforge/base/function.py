"""What a univariate base function is, and how its integral is differentiated."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ..kernels import Formula
from ..numerics import Positive, fit, limited, running_mean
from .point import Point

_HIGHEST = 1e30  # of a trial in single precision, which ends at 3.4e38
_TRIAL = (0.0, -1e-3, -0.5, -2.0, -12.0, -1e3)  # logarithms of p, the last of a p that rounds to 0


class BaseFunction(ABC):
    r"""A decreasing function h on [0, 1] with h(1) = 0, given by its density.

    The density is :math:`\varphi = -h' \ge 0`. Three quantities make losses of it:

    * ``value``: :math:`h(p) = \int_p^1 \varphi`,
    * ``cumulative``: :math:`H(p) = \int_0^p \varphi = h(0) - h(p)`, or :math:`-h(p)` where h(0) is
      infinite,
    * ``slope``: :math:`p\,\varphi(p) = -\mathrm{d}h / \mathrm{d}\log p`, the factor by which
      :math:`h(p_y)` multiplies the gradient of cross entropy.

    They take a `Point`, so that a formula can read p, 1 - p or log p, whichever is accurate.
    Gradients always come from ``slope``; no approximation of a value is ever differentiated.
    A subclass is a frozen dataclass of its parameters that checks them in ``__post_init__``, at the
    end by ``try_out``.
    """

    bounded = True
    """Whether h(0) is finite."""

    lipschitz: float | None = None
    """A Lipschitz constant of the density on [0, 1], where one is known and no turning points are.

    A subclass may set it as a class attribute or a property; `lossforge.theory` takes it on trust.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "density" in vars(cls) and "symmetric" not in vars(cls):
            # what the parent knows is about its own density
            cls.symmetric = BaseFunction.symmetric  # type: ignore[method-assign]

    @property
    def symmetric(self) -> bool:
        """Whether the density is known to be symmetric, phi(p) = phi(1 - p).

        That is, whether h(p) + h(1 - p) is constant, and then 2 h(1/2). Override it where the
        formula shows it, for `BinaryReduction` relies on it. A class that overrides ``density`` and
        not this makes no such claim.
        """
        return False

    def try_out(self) -> None:
        """Raise unless all three are finite in single precision, with room to be added up."""
        at = Point(torch.tensor(_TRIAL, dtype=torch.float32, device="cpu"))
        for function in (self.value, self.cumulative, self.slope):
            _try_out(self, function, at, at.p)

    @abstractmethod
    def density(self, p: Tensor) -> Tensor:
        """phi at a tensor of probabilities."""

    @abstractmethod
    def value(self, at: Point) -> Tensor:
        """h, to full relative accuracy as p tends to 1."""

    @abstractmethod
    def cumulative(self, at: Point) -> Tensor:
        """H, to full relative accuracy as p tends to 0."""

    def turning_points(self) -> tuple[float, ...] | None:
        """Interior points, ascending, between which the density is monotone; None if not known.

        An empty tuple says that it is monotone on all of [0, 1]. A jump is given by the two
        floats beside it. `lossforge.theory` encloses the density by its values at these points.
        """
        return None

    def formula(self) -> Formula | None:
        """This function as data for a kernel; None if only its methods know it."""
        return None

    def slope(self, at: Point) -> Tensor:
        """p phi(p); override it where the density is infinite at 0."""
        p = at.p
        return p * self.density(p)

    def phi(self, x: Tensor | float) -> Tensor:
        """The density at probabilities `x`, in [0, 1]."""
        return self.density(_tensor(x))

    def h(self, x: Tensor | float) -> Tensor:
        """The value at probabilities `x`; differentiable where they are positive."""
        return integrate(self, torch.log(_tensor(x)), upward=False)

    def H(self, x: Tensor | float) -> Tensor:
        """The integral of phi from 0 to `x`; -h(x) where h(0) is infinite."""
        return integrate(self, torch.log(_tensor(x)), upward=True)

    def __str__(self) -> str:
        """The text form, which `lossforge.parse` reads."""
        return f"{text_name(type(self))}({format_arguments(self.parameters())})"

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class Smooth(BaseFunction):
    r"""A base function whose density is positive and smooth on all of [0, 1].

    Only ``density`` is needed: :math:`H(x) = x P(x)` and :math:`h(x) = (1 - x) \bar P(1 - x)`,
    where the means :math:`P` of the density over [0, x] and :math:`\bar P` over [1 - y, 1] are
    smooth and positive, and fitted once, at construction. The factors x and 1 - x carry the
    relative accuracy at the ends. A subclass with a ``__post_init__`` ends it by calling this one.
    """

    def __post_init__(self) -> None:
        x = torch.linspace(0, 1, 17, dtype=torch.float32, device="cpu")
        _try_out(self, self.density, x, x)
        object.__setattr__(self, "_means", _fit_means(self))
        self.try_out()

    @property
    def means(self) -> tuple[Positive, Positive]:
        """The means of the density over [0, x], of x, and over [1 - y, 1], of y."""
        return self._means

    def formula(self) -> Formula | None:
        methods = ("value", "cumulative", "slope")
        if any(getattr(type(self), name) is not getattr(Smooth, name) for name in methods):
            return None  # a subclass computes them in its own way
        return _fit_formula(self)

    def value(self, at: Point) -> Tensor:
        q = at.q
        return q * self._means[1](q)

    def cumulative(self, at: Point) -> Tensor:
        p = at.p
        return p * self._means[0](p)

    _means: tuple[Positive, Positive]


@lru_cache(maxsize=256)
def _fit_means(base: Smooth) -> tuple[Positive, Positive]:
    """The fitted means of the density: over [0, x] as a function of x, over [1 - y, 1] of y."""
    degree = len(limited(fit(base.density)))
    upward = running_mean(base.density, degree)
    downward = running_mean(lambda y: base.density(1 - y), degree)
    return Positive.fit(upward), Positive.fit(downward)


def formula_of(base: BaseFunction) -> Formula | None:
    """The formula of a base function, unless a class from elsewhere may compute something else."""
    ours = type(base).__module__.partition(".")[0] == __name__.partition(".")[0]
    return base.formula() if ours or isinstance(base, Smooth) else None


@lru_cache(maxsize=256)
def _fit_formula(base: Smooth) -> Formula:
    return Formula("polynomial", series=(Positive.fit(base.density), *base.means))


def _try_out(base: BaseFunction, function: Callable[[Any], Tensor], at: object, p: Tensor) -> None:
    """Raise unless a function is finite in single precision, and not above `_HIGHEST`."""
    rule = f"{base} must have a {function.__name__} of {_HIGHEST:g} or less in single precision"
    try:
        values = function(at)
    except ArithmeticError as error:
        raise ValueError(f"{rule}, got an {type(error).__name__}") from None
    if type(values) is not Tensor or torch.compiler.is_compiling():
        return  # fake tensors and the like have no values
    wrong = ~(values.abs() <= _HIGHEST)
    if wrong.any():
        got = f"{float(values[wrong][0]):g} at p = {float(p[wrong][0]):g}"
        raise ValueError(f"{rule}, got {got}")


def integrate(base: BaseFunction, log_p: Tensor, *, upward: bool) -> Tensor:
    """H (upward) or h (downward) at log-probabilities, elementwise, differentiable."""
    result: Tensor = _Integral.apply(log_p, base, upward)  # type: ignore[no-untyped-call]
    return result


class _Integral(torch.autograd.Function):
    """Value by closed form or series, derivative by the slope; twice differentiable through it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(log_p: Tensor, base: BaseFunction, upward: bool) -> Tensor:
        at = Point(log_p)
        return base.cumulative(at) if upward else base.value(at)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        log_p, ctx.base, ctx.upward = inputs
        ctx.save_for_backward(log_p)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (log_p,) = ctx.saved_tensors
        slope = ctx.base.slope(Point(log_p))
        return grad * (slope if ctx.upward else -slope), None, None


def text_name(kind: type) -> str:
    """The name of a class in text forms: ShiftedPower is shifted_power."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def format_arguments(arguments: dict[str, Any]) -> str:
    """``name=value`` pairs that `lossforge.parse` reads; whole numbers without a point."""

    def text(value: object) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(text, value))}]"
        return re.sub(r"\.0$", "", repr(float(value))) if isinstance(value, float) else str(value)

    return ", ".join(f"{name}={text(value)}" for name, value in arguments.items())


def _tensor(x: Tensor | float) -> Tensor:
    return x if isinstance(x, Tensor) else torch.tensor(x, dtype=torch.float64, device="cpu")

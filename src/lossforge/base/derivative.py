"""A base function from any smooth negative derivative."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ApproximationError, check_number
from ..numerics import Function, evaluate, fit
from .function import Smooth

_PROBES = 1025
_WIDE = 100.0  # a density that spans more than this is fitted by its logarithm


@dataclass(frozen=True)
class Series(Smooth):
    r"""A density by its Chebyshev series :math:`s(x) = \sum_k c_k T_k(2x - 1)`.

    This is what `from_derivative` returns: plain numbers, so it pickles, compares and prints
    whatever function it was fitted to.

    Args:
        coefficients: :math:`c_0, c_1, \ldots`
        logarithmic: Whether the density is :math:`\exp s` and not s itself, which must be positive.
    """

    coefficients: tuple[float, ...]
    logarithmic: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", tuple(self.coefficients))
        if not self.coefficients:
            raise ValueError("coefficients must hold at least one number, got none")
        for coefficient in self.coefficients:
            check_number("coefficients", coefficient)
        _check_negative(lambda x: -self.density(x), "the derivative")
        super().__post_init__()

    def density(self, p: Tensor) -> Tensor:
        series = evaluate(self.coefficients, p)
        return torch.exp(series) if self.logarithmic else series


def from_derivative(f: Function) -> Series:
    r"""The base function whose derivative is `f`.

    `f` is sampled once in float64, fitted to machine precision by a Chebyshev series and
    integrated; afterwards it is not needed any more.

    Args:
        f: A torch function of a float64 tensor, elementwise, smooth and negative on [0, 1].

    Raises:
        ValueError: if `f` is not negative, or not finite, somewhere on [0, 1].
        ApproximationError: if no series resolves it (a kink, a jump, a pole close by).

    Example:
        >>> base = from_derivative(lambda x: -torch.exp(-4 * (x - 0.5) ** 2))
        >>> round(float(base.h(0.0)), 4)
        0.7468
    """
    if not callable(f):
        raise TypeError(f"f must be a function of a tensor, got {f!r}")

    def derivative(x: Tensor) -> Tensor:
        # a constant function may return a plain number
        y = torch.as_tensor(f(x), dtype=x.dtype, device=x.device)
        if y.shape != x.shape and y.numel() != 1:
            raise ValueError(
                f"f must be elementwise, got shape {tuple(y.shape)} for an argument of shape "
                f"{tuple(x.shape)}"
            )
        return y.detach().expand_as(x)

    lowest, highest = _check_negative(derivative, "f")
    if highest < _WIDE * lowest:
        return Series(fit(lambda x: -derivative(x)))
    # A series of absolute accuracy would lose the small values of such a function.
    try:
        return Series(fit(lambda x: torch.log(-derivative(x)), floor=1.0), logarithmic=True)
    except ApproximationError:
        return Series(fit(lambda x: -derivative(x)))


def _check_negative(f: Function, name: str) -> tuple[float, float]:
    """Raise unless f is finite and negative on [0, 1]; the range of -f there."""
    x = torch.linspace(0, 1, _PROBES, dtype=torch.float64, device="cpu")
    y = f(x)
    for rule, holds in (("finite", torch.isfinite(y)), ("negative", y < 0)):
        if not holds.all():
            worst = int((~holds).nonzero()[0])
            got = f"{float(y[worst]):g} at x = {float(x[worst]):g}"
            raise ValueError(f"{name} must be {rule} on [0, 1], got {got}")
    return float(-y.max()), float(-y.min())

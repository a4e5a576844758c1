r"""Chebyshev series on [0, 1]: fit once in float64, evaluate anywhere.

A series is a tuple of floats :math:`c_0, \ldots, c_n` and stands for
:math:`\sum_k c_k T_k(2x - 1)`.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..errors import ApproximationError

Function = Callable[[Tensor], Tensor]

_LONGEST = 512  # of a density: the time to integrate it is cubic in this, ten seconds here
_DEGREES = (16, 32, 64, 128, 256, 512, 1024, 2048)
_RESOLVED = 2e-15  # coefficients below this share of the function's size are rounding noise
_MISFIT = 5e-14  # largest error allowed between the nodes, relative to the function's size


def _cosines(orders: Tensor, n: int) -> Tensor:
    """cos(k theta_j) for the orders k (rows) and the n Chebyshev angles theta_j (columns).

    The angles are multiples of pi / 2n: reduced as integers, high orders lose no digit.
    """
    multiples = orders[:, None] * (2 * torch.arange(n, device="cpu") + 1) % (4 * n)
    return torch.cos(multiples.to(torch.float64) * (math.pi / (2 * n)))


def nodes(n: int) -> Tensor:
    """The n Chebyshev points of the first kind, mapped to (0, 1)."""
    return (1 + _cosines(torch.ones(1, dtype=torch.int64, device="cpu"), n)[0]) / 2


def coefficients(values: Tensor) -> Tensor:
    """Coefficients of the interpolant through `values` at `nodes(len(values))`."""
    n = len(values)
    result = (2 / n) * (_cosines(torch.arange(n, device="cpu"), n) * values).sum(-1)
    result[0] /= 2
    return result


def quadrature(n: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights of Fejér's first rule on [0, 1].

    Exact for polynomials of degree below n, and all weights are positive: the integral of a
    positive function is a sum of positive terms and keeps its relative accuracy.
    """
    orders = torch.arange(1, n // 2 + 1, device="cpu")
    terms = _cosines(2 * orders, n) / (4 * orders[:, None].to(torch.float64) ** 2 - 1)
    return nodes(n), (1 - 2 * terms.sum(0)) / n


def chop(series: Sequence[float], tolerance: float) -> tuple[float, ...]:
    """Drop the trailing coefficients that do not exceed `tolerance`."""
    length = len(series)
    while length > 1 and abs(series[length - 1]) <= tolerance:
        length -= 1
    return tuple(series[:length])


def fit(function: Function, *, floor: float = 0.0) -> tuple[float, ...]:
    """The shortest series that reproduces `function` on [0, 1] to float64 precision.

    Args:
        function: Takes and returns a float64 tensor.
        floor: Errors count relative to the function's largest value, or to this if it is larger.

    Raises:
        ApproximationError: if 2,048 coefficients do not resolve it.
    """
    for n in _DEGREES:
        values = function(nodes(n))
        size = max(floor, float(values.abs().max()))
        series = coefficients(values)
        if float(series[-n // 4 :].abs().max()) <= _RESOLVED * size:
            break
    else:
        raise ApproximationError(
            f"a smooth function on [0, 1] is needed, but {n} Chebyshev coefficients do not resolve "
            "this one; give its antiderivative in closed form by a base function of your own"
        )
    result = chop(series.tolist(), 2e-16 * size)
    between = (torch.arange(257, dtype=torch.float64, device="cpu") + 1 / math.e) / 258
    misfit = float((evaluate(result, between) - function(between)).abs().max())
    if not misfit <= _MISFIT * size:
        raise ApproximationError(
            f"a smooth function on [0, 1] is needed, but this one differs from its series by "
            f"{misfit:.1e} between the sampling points: it varies faster than {n} points can show"
        )
    return result


def limited(series: tuple[float, ...]) -> tuple[float, ...]:
    """The series of a density, unless it is too long to integrate."""
    if len(series) > _LONGEST:
        raise ApproximationError(
            f"a series of at most {_LONGEST} Chebyshev coefficients is needed, but this one takes "
            f"{len(series)}; choose a function with fewer or wider features, or give its "
            "antiderivative in closed form by a base function of your own"
        )
    return series


def evaluate(series: Sequence[float], x: Tensor) -> Tensor:
    """Clenshaw's recurrence, stable for any series."""
    if len(series) == 1:
        return torch.full_like(x, series[0])
    twice = 4 * x - 2
    newer, older = torch.full_like(x, series[-1]), torch.zeros_like(x)
    for coefficient in reversed(series[1:-1]):
        newer, older = torch.addcmul(coefficient - older, twice, newer), newer
    return torch.addcmul(series[0] - older, twice / 2, newer)

"""A base function from any smooth negative derivative."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ApproximationError, check_integer, check_number
from ..numerics import Function, evaluate, fit, limited
from .function import Smooth

_PROBES = 1025
_WIDE = 100.0  # a density that spans more than this is fitted by its logarithm
_AGREES = 1e-11  # largest difference of function and series, relative to the function's size
_CHUNK = 2**16  # points at a time: a function may need much memory for each
_ROUNDS, _PLACES, _AROUND = 3, 64, 64  # of the search around the largest differences
_CELLS = 2**20  # the most that a proof of positivity looks at
_EPS = 2.0**-52


@dataclass(frozen=True)
class Series(Smooth):
    r"""A density by its Chebyshev series :math:`s(x) = \sum_k c_k T_k(2x - 1)`.

    This is what `from_derivative` returns: plain numbers, so it pickles, compares and prints
    whatever function it was fitted to. That it is positive on all of [0, 1] is proved on
    construction, from a bound of its curvature.

    Args:
        coefficients: :math:`c_0, c_1, \ldots`; at most 512 unless logarithmic.
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
        _check_negative(lambda x: -self.density(x), _grid(_PROBES), "the derivative")
        if not self.logarithmic:
            _prove_positive(limited(self.coefficients))
        super().__post_init__()

    def density(self, p: Tensor) -> Tensor:
        series = evaluate(self.coefficients, p)
        return torch.exp(series) if self.logarithmic else series

    @property
    def symmetric(self) -> bool:
        # T_k(-s) = (-1)^k T_k(s)
        return not any(self.coefficients[1::2])


def from_derivative(f: Function, *, probes: int = 2**20) -> Series:
    r"""The base function whose derivative is `f`.

    `f` is sampled in float64, fitted to machine precision by a Chebyshev series and integrated;
    afterwards it is not needed any more. Values, gradients and certificates are those of the
    series, which is proved to be negative.

    The series is compared with `f` at `probes` equally spaced points, at random ones, and around
    the largest differences. `f` is refused if the two differ by more than 1e-11 of its largest
    value on an interval longer than 1 / `probes` (where `f` spans more than a factor of 100, by
    1e-11 in the logarithm). A narrower spike or dip may be missed: no number of samples excludes
    it.

    Args:
        f: A torch function of a float64 tensor, elementwise, smooth and negative on [0, 1].
        probes: Points of the comparison; fewer if `f` is slow.

    Raises:
        ValueError: if `f` is not negative, or not finite, somewhere on [0, 1].
        ApproximationError: if no series resolves it (a kink, a jump, a pole close by), or if that
            takes more than 512 terms.

    Example:
        >>> base = from_derivative(lambda x: -torch.exp(-4 * (x - 0.5) ** 2))
        >>> round(float(base.h(0.0)), 4)
        0.7468
    """
    if not callable(f):
        raise TypeError(f"f must be a function of a tensor, got {f!r}")
    check_integer("probes", probes, 1)

    def derivative(x: Tensor) -> Tensor:
        # a constant function may return a plain number
        y = torch.as_tensor(f(x), dtype=x.dtype, device=x.device)
        if y.shape != x.shape and y.numel() != 1:
            raise ValueError(
                f"f must be elementwise, got shape {tuple(y.shape)} for an argument of shape "
                f"{tuple(x.shape)}"
            )
        return y.detach().expand_as(x)

    y = _check_negative(derivative, _grid(_PROBES), "f")
    # A series of absolute accuracy would lose the small values of such a function.
    logarithmic = not float(-y.min()) < _WIDE * float(-y.max())
    if logarithmic:
        try:
            series = fit(lambda x: torch.log(-derivative(x)), floor=1.0)
        except ApproximationError:
            logarithmic = False
    if not logarithmic:
        series = limited(fit(lambda x: -derivative(x)))
    _compare(series, logarithmic, derivative, probes)
    return Series(series, logarithmic)


def _grid(n: int) -> Tensor:
    return torch.linspace(0, 1, n, dtype=torch.float64, device="cpu")


def _check_negative(f: Function, x: Tensor, name: str) -> Tensor:
    """Raise unless f is finite and negative at the points x; its values there."""
    y = f(x)
    for rule, holds in (("finite", torch.isfinite(y)), ("negative", y < 0)):
        if not holds.all():
            worst = int((~holds).nonzero()[0])
            got = f"{float(y[worst]):g} at x = {float(x[worst]):.9g}"
            raise ValueError(f"{name} must be {rule} on [0, 1], got {got}")
    return y


def _compare(series: tuple[float, ...], logarithmic: bool, f: Function, probes: int) -> None:
    """Raise unless the series is the density -f, at points that were not used to fit it."""
    size = 1.0 if logarithmic else 0.0

    def differences(x: Tensor) -> Tensor:
        nonlocal size
        density = -_check_negative(f, x, "f")
        expected = torch.log(density) if logarithmic else density
        size = max(size, float(expected.abs().max()))
        return (evaluate(series, x) - expected).abs()

    # off the grid on which f may repeat itself; an interval of length 1 / probes holds a point
    x = (torch.arange(probes, dtype=torch.float64, device="cpu") + 1 / math.e) / probes
    draws = torch.rand(
        probes // 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    x = torch.cat([x, draws])
    found = torch.cat([differences(part) for part in torch.split(x, _CHUNK)])
    step = 1 / probes
    for _ in range(_ROUNDS):
        places = x[found.topk(min(_PLACES, len(x))).indices]
        offsets = torch.linspace(-step, step, _AROUND, dtype=torch.float64, device="cpu")
        near = (places[:, None] + offsets).clamp(0, 1).flatten()
        x, found = torch.cat([places, near]), torch.cat([differences(places), differences(near)])
        step /= _AROUND / 2
    worst = int(found.argmax())
    if not float(found[worst]) <= _AGREES * size:
        what = "the logarithm of this one" if logarithmic else "this one"
        raise ApproximationError(
            f"a smooth function on [0, 1] is needed, but {what} differs from its series by "
            f"{float(found[worst]):.1e} at x = {float(x[worst]):.9g}: it has a narrow feature "
            "there, or is not computed accurately"
        )


def _prove_positive(series: tuple[float, ...]) -> None:
    """Raise unless the series is positive on all of [0, 1].

    Between two points h apart it is below the lower one by at most h^2 / 8 times a bound of its
    second derivative; cells in which that leaves room for a zero are halved. A rounding error in
    Clenshaw's recurrence acts like a change of a coefficient (see `theory.enclosure`).
    """
    # |T_k''| <= k^2 (k^2 - 1) / 3 on [-1, 1], and the argument is 2x - 1
    curvature = 4 / 3 * math.fsum(abs(c) * k**2 * (k**2 - 1) for k, c in enumerate(series))
    rounding = 16 * _EPS * math.fsum((k + 1) * (k + 2) * abs(c) for k, c in enumerate(series))
    left, width = _grid(_PROBES)[:-1], 1 / (_PROBES - 1)
    while len(left) <= _CELLS:
        ends = torch.stack([left, left + width])
        values = _check_negative(lambda x: -evaluate(series, x), ends.flatten(), "the derivative")
        lowest = -values.view(2, -1).amax(0)
        left = left[lowest <= curvature * width**2 / 8 * (1 + 8 * _EPS) + rounding]
        if not len(left):
            return
        if float(lowest.min()) <= rounding:
            break
        width /= 2
        left = torch.cat([left, left + width])
    raise ApproximationError(
        "a negative derivative on [0, 1] is needed, but rounding hides the sign of this one near "
        f"x = {float(left[0]):g}; keep it away from 0"
    )

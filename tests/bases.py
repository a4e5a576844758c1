"""Every base function with its parameters and naive formula."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import naive
import torch
from torch import Tensor

from lossforge import base


@dataclass(frozen=True)
class BaseCase:
    """A base function, how to make it and what it should be."""

    id: str
    make: Callable[[], Any]
    naive: naive.Base
    smooth: bool = True


def _series(f: Callable[[Tensor], Tensor]) -> Callable[[], Any]:
    return lambda: base.from_derivative(f)


DERIVATIVES = [
    BaseCase(
        "series-gaussian",
        _series(lambda x: -torch.exp(-4 * (x - 0.3) ** 2)),
        naive.exponential(-1, -4, 0.3),
    ),
    BaseCase(
        "series-rational",
        _series(lambda x: -1 / (1 + x)),
        naive.Base(lambda x, m: 1 / (1 + x)),
    ),
    BaseCase(
        "series-sine",
        _series(lambda x: -(2 + torch.sin(5 * x))),
        naive.Base(lambda x, m: 2 + m.sin(5 * x)),
    ),
    BaseCase("series-constant", _series(lambda x: torch.full_like(x, -3.0)), naive.linear(3.0)),
    BaseCase(
        "series-growing",
        _series(lambda x: -torch.exp(3 * x)),
        naive.Base(lambda x, m: m.exp(3 * x)),
    ),
]

ELEMENTARY = [
    BaseCase("log", base.Log, naive.log()),
    BaseCase("linear", base.Linear, naive.linear()),
    BaseCase("linear-9.21", lambda: base.Linear(scale=9.21), naive.linear(9.21)),
    BaseCase("power-0.7", lambda: base.Power(0.7), naive.power(0.7)),
    BaseCase("power-2", lambda: base.Power(2.0), naive.power(2.0)),
    BaseCase(
        "shifted_power-0.6-0.6", lambda: base.ShiftedPower(0.6, 0.6), naive.shifted_power(0.6, 0.6)
    ),
    BaseCase("shifted_power-6-1.5", lambda: base.ShiftedPower(6, 1.5), naive.shifted_power(6, 1.5)),
    BaseCase(
        "mirrored_power-1.5-0.9",
        lambda: base.MirroredPower(1.5, 0.9),
        naive.mirrored_power(1.5, 0.9),
    ),
    BaseCase(
        "mirrored_power-5-3", lambda: base.MirroredPower(5, 3.0), naive.mirrored_power(5, 3.0)
    ),
    BaseCase("decay-0.5", lambda: base.ExponentialDecay(0.5), naive.exponential_decay(0.5)),
    BaseCase("decay-3", lambda: base.ExponentialDecay(3.0), naive.exponential_decay(3.0)),
    BaseCase("taylor-1", lambda: base.Taylor(1), naive.taylor(1)),
    BaseCase("taylor-6", lambda: base.Taylor(6), naive.taylor(6)),
    BaseCase("focal-2", lambda: base.Focal(2.0), naive.focal(2.0)),
    BaseCase("focal-0.5", lambda: base.Focal(0.5), naive.focal(0.5), smooth=False),
    BaseCase("huber_log-10", lambda: base.HuberLog(10.0), naive.huber_log(10.0), smooth=False),
]


def exponential_case(alpha: float, beta: float, gamma: float) -> BaseCase:
    return BaseCase(
        f"exponential({alpha:g},{beta:g},{gamma:g})",
        lambda: base.Exponential(alpha=alpha, beta=beta, gamma=gamma),
        naive.exponential(alpha, beta, gamma),
    )


def quadratic_case(alpha: float, beta: float, gamma: float) -> BaseCase:
    return BaseCase(
        f"quadratic({alpha:g},{beta:g},{gamma:g})",
        lambda: base.Quadratic(alpha=alpha, beta=beta, gamma=gamma),
        naive.quadratic(alpha, beta, gamma),
    )


EXPONENTIALS = [
    exponential_case(-1.5, beta, gamma)
    for beta in (-60, -16, -8, -1, 0, 1, 8, 16)
    for gamma in (0, 0.25, 0.5, 1)
]
QUADRATICS = [
    quadratic_case(*parameters)
    for parameters in ((1, -1.5, 0), (12, -8, 0.5), (-12, -1, 0.25), (0, -2, 1), (2, -2.5, 1))
]
BASES = EXPONENTIALS + QUADRATICS + ELEMENTARY + DERIVATIVES


def ids(cases: list[Any]) -> list[str]:
    """Readable test ids."""
    return [case.id for case in cases]

"""The one list of cases: a representative of every kind of loss and every catalogue entry."""

from collections.abc import Callable
from typing import Any

import naive
import pytest
import torch
from bases import DERIVATIVES
from case import Case, Cosine, Either, Reduced, Separated
from catalog_cases import CATALOGUE

from lossforge import BEF, BQF, CE, BinaryReduction, TargetSeparation, base
from lossforge.constructions import BoundedCosine, ByRivals
from lossforge.loss import Loss, ProbabilityLoss

F1 = {"alpha": -8, "beta": -8, "gamma": 0.5}
N1 = naive.exponential(-8, -8, 0.5)
N2 = naive.quadratic(12, -8, 0.5)
BEF_BASE = naive.exponential(-8, -1, 0.5)
BQF_BASE = naive.quadratic(7, -8, 0.5)
GAUSS, SINE = DERIVATIVES[0], DERIVATIVES[2]


def _balanced_bound(h: naive.Base) -> float:
    """An upper bound of BEF and BQF for 5 classes at their defaults, 0.9 TS + 0.1 BR of h.

    TS is h(u_t) and a quarter of h(0) - h(u_k) for each of 4 other classes, BR a mean of values of
    h; h is at most h(0).
    """
    highest = float(h.h(0.0))
    return 0.9 * (1 + 4 * max(1 / 4, 0.2)) * highest + 0.1 * highest


def _ts(id: str, make: Callable[[], Any], h: naive.Base, **claims: Any) -> Case:
    """A one-base separation from parameters shared by both forms."""
    a = {key: claims.pop(key) for key in ("tau", "a") if key in claims}
    return Case(
        id,
        lambda: TargetSeparation(make(), **a),
        (Separated(h, **a),),
        bounded=claims.pop("bounded", True),
        **claims,
    )


def _br(id: str, make: Callable[[], Any], h: naive.Base, **claims: Any) -> Case:
    bounded = claims.pop("bounded", True)
    return Case(id, lambda: BinaryReduction(make()), (Reduced(h),), bounded=bounded, **claims)


def _exponential(**parameters: float) -> Callable[[], Any]:
    return lambda: base.Exponential(**parameters)


CORE = [
    Case("CE", CE, (Separated(naive.log(), a=0),), symmetric=False, bounded=False, entry="CE"),
    Case(
        "BEF",
        BEF,
        (
            Separated(BEF_BASE, tau=1, a=0.2, coefficient=0.9),
            Either(Reduced(BEF_BASE, 0.1), Cosine(2.4, rivals=149), most=149),
        ),
        symmetric=True,
        bounded=True,
        scale=8.0,
        entry="BEF",
        bound=_balanced_bound(BEF_BASE),
    ),
    Case(
        "BEF-parameters",
        lambda: BEF(alpha=-2, beta=3, gamma=0.2, tau=2, lam=0.4, mu=0.6, br_beta=-5, br_gamma=0.7),
        (
            Separated(naive.exponential(-2, 3, 0.2), tau=2, coefficient=0.4),
            Reduced(naive.exponential(-2, -5, 0.7), coefficient=0.6),
        ),
        symmetric=False,
        bounded=True,
        scale=14.0,
    ),
    Case(
        "BQF",
        BQF,
        (
            Separated(BQF_BASE, tau=1, a=0.2, coefficient=0.9),
            Either(Reduced(BQF_BASE, 0.1), Cosine(2.4, rivals=149), most=149),
        ),
        symmetric=True,
        bounded=True,
        scale=8.0,
        entry="BQF",
        bound=_balanced_bound(BQF_BASE),
    ),
    _ts("TS-f1-tau1-a0.3", _exponential(**F1), N1, tau=1, a=0.3, symmetric=False, scale=16.0),
    _ts("TS-f1-tau0", _exponential(**F1), N1, tau=0, symmetric=False, scale=8.0),
    _ts("TS-f1-tau1", _exponential(**F1), N1, tau=1, symmetric=True, scale=8.0),
    _ts("TS-f1-tau3", _exponential(**F1), N1, tau=3, symmetric=False, scale=16.0),
    _ts(
        "TS-f1-growing-a0.1",
        _exponential(alpha=-1, beta=2, gamma=0),
        naive.exponential(-1, 2, 0),
        a=0.1,
        symmetric=False,
        scale=8.0,
    ),
    _ts(
        "TS-f2-tau3",
        lambda: base.Quadratic(alpha=-12, beta=-1, gamma=0.25),
        naive.quadratic(-12, -1, 0.25),
        tau=3,
        symmetric=False,
        scale=16.0,
    ),
    _ts("TS-linear-a0.1", base.Linear, naive.linear(), a=0.1, symmetric=True),
    _ts("TS-power-tau1", lambda: base.Power(0.7), naive.power(0.7), tau=1, symmetric=True),
    _ts(
        "TS-huber-a0.1",
        lambda: base.HuberLog(10.0),
        naive.huber_log(10.0),
        a=0.1,
        symmetric=False,
        smooth=False,
        scale=10.0,
    ),
    _ts("TS-series-tau1", SINE.make, SINE.naive, tau=1, symmetric=True, scale=3.0),
    _ts("TS-log-tau0.5", base.Log, naive.log(), tau=0.5, symmetric=False, bounded=False),
    _ts(
        "TS-focal-tau0",
        lambda: base.Focal(2.0),
        naive.focal(2.0),
        tau=0,
        symmetric=False,
        bounded=False,
    ),
    Case(
        "TS-two-bases",
        lambda: TargetSeparation(base.Power(0.7), tau=2, nontarget=base.Exponential(**F1)),
        (Separated(naive.power(0.7), tau=2, nontarget=N1),),
        symmetric=False,
        bounded=True,
        scale=16.0,
    ),
    Case(
        "TS-log-bounded-nontarget",
        lambda: TargetSeparation(base.Log(), tau=1, nontarget=base.Linear()),
        (Separated(naive.log(), tau=1, nontarget=naive.linear()),),
        symmetric=False,
        bounded=False,
    ),
    _br("BR-f1", _exponential(**F1), N1, symmetric=True, scale=2.0),
    _br(
        "BR-f1-tilted",
        _exponential(alpha=-1, beta=-4, gamma=0.2),
        naive.exponential(-1, -4, 0.2),
        symmetric=False,
    ),
    _br(
        "BR-f2",
        lambda: base.Quadratic(alpha=12, beta=-8, gamma=0.5),
        N2,
        symmetric=True,
        scale=2.0,
    ),
    _br("BR-linear", base.Linear, naive.linear(), symmetric=True),
    _br("BR-log", base.Log, naive.log(), symmetric=False, bounded=False),
    _br("BR-power", lambda: base.Power(0.7), naive.power(0.7), symmetric=False),
    _br("BR-series", GAUSS.make, GAUSS.naive, symmetric=False),
    Case(
        "cosine",
        BoundedCosine,
        (Cosine(),),
        symmetric=True,
        bounded=True,
        breaks=frozenset({"floor"}),  # as logits grow it falls to 0 by their square, and no faster
    ),
    Case(
        "TS-f1-cosine-rivals2",
        lambda: (
            0.9 * TargetSeparation(base.Exponential(**F1), tau=1) + 2.4 * BoundedCosine(rivals=2)
        ),
        (Separated(N1, tau=1, coefficient=0.9), Cosine(2.4, rivals=2)),
        symmetric=True,
        bounded=True,
        scale=8.0,
        breaks=frozenset({"floor"}),
    ),
    Case(
        "by-rivals",
        lambda: ByRivals(
            0.5 * BinaryReduction(base.Exponential(**F1)), 2.4 * BoundedCosine(rivals=2), most=2
        ),
        (Either(Reduced(N1, 0.5), Cosine(2.4, rivals=2), most=2),),
        symmetric=True,
        bounded=True,
        scale=8.0,
        breaks=frozenset({"floor"}),
    ),
    Case(
        "nested-sum",
        lambda: 0.5 * (CE() + 2 * TargetSeparation(base.Exponential(**F1), a=0.1)) + 0.25 * BEF(),
        (
            Separated(naive.log(), a=0, coefficient=0.5),
            Separated(N1, a=0.1),
            Separated(BEF_BASE, tau=1, a=0.2, coefficient=0.225),
            Either(Reduced(BEF_BASE, 0.025), Cosine(0.6, rivals=149), most=149),
        ),
        symmetric=False,
        bounded=False,
        scale=12.0,
    ),
]
CASES = [*CORE, *CATALOGUE]


def named(*ids: str) -> list[Case]:
    """The cases with these ids, in this order."""
    known = {case.id: case for case in CASES}
    return [known[id] for id in ids]


def _construction(part: torch.nn.Module) -> str:
    """The class that a catalogue class hands its parameters to, or itself if it computes."""
    kind = next(kind for kind in type(part).__mro__ if ".catalog." not in kind.__module__)
    return type(part).__name__ if kind in (Loss, ProbabilityLoss) else kind.__name__


def _structure(case: Case) -> frozenset[str]:
    """The constructions that a loss is made of, and the laws that it breaks."""
    return case.breaks | {_construction(part) for part in case.make().modules()}


OVER_CASES = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])

_FIRST = {_structure(case): case.id for case in reversed(CASES)}
OVER_CONSTRUCTIONS = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=[] if case.id in _FIRST.values() else pytest.mark.slow)
        for case in CASES
    ],
)
"""All cases for a law that a construction settles: in `make test` the first of each kind."""

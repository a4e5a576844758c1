"""Ratios that equal what the noise allows, decided in rational arithmetic."""

from fractions import Fraction as Q

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rational_proofs import f2

from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import Linear, Quadratic
from lossforge.loss import Loss
from lossforge.theory import Claim, certify
from lossforge.theory.ties import exact, transfers_hold

FALLING = Quadratic(-2.0, -1.0, 1.0)  # 1 + 2 (x - 1)^2, from 3 to 1
SUM = 0.5 * BinaryReduction(FALLING) + 2.0 * BinaryReduction(FALLING)
TIES = [
    (BinaryReduction(FALLING), (0.75, 0.25)),
    (BinaryReduction(FALLING), (0.75, 0.25, 0.0)),
    (SUM + BinaryReduction(Quadratic(-4.0, -2.0, 1.0)), (0.75, 0.25, 0.0)),
    (TargetSeparation(FALLING, a=0.0), (0.75, 0.25)),
    (TargetSeparation(FALLING, a=0.0), (0.75, 0.25, 0.0)),
    (TargetSeparation(FALLING, a=1.0), (0.4375, 0.3125, 0.25)),  # case B: c = -1/8, -3/8, -1/2
    (TargetSeparation(FALLING, a=0.0) + SUM, (0.75, 0.25, 0.0)),
    (TargetSeparation(FALLING, a=0.0) + BinaryReduction(Linear()), (0.75, 0.25, 0.0)),
]


@pytest.mark.parametrize("claim", ["monotone", "global"])
@pytest.mark.parametrize(("loss", "row"), TIES)
def test_exact_equality_is_proved(loss: Loss, row: tuple[float, ...], claim: Claim) -> None:
    assert certify(loss, torch.tensor(row), claim=claim, refute=False).status == "PROVED"


@pytest.mark.parametrize(("loss", "row"), TIES[:4])
def test_a_little_beyond_equality_nothing_is_proved(loss: Loss, row: tuple[float, ...]) -> None:
    """Where the ratio test is exact: binary reduction, and two classes."""
    weights = torch.tensor(row)
    weights[0] -= 2.0**-24
    weights[1] += 2.0**-24
    assert certify(loss, weights, refute=False).status != "PROVED"


def test_equality_of_rounded_numbers_is_not_taken_for_a_tie() -> None:
    """3/5 and 1/5 are not what the floats .6 and .2 are."""
    row = torch.tensor([0.6, 0.2, 0.2])
    assert exact(0.6, 0.2) is None
    assert certify(BinaryReduction(FALLING), row, refute=False).status == "UNDECIDED"


def test_a_tie_of_integrals_is_no_proof() -> None:
    """CE12: R_G = 7 is attained inside, and another prediction is as good as full confidence."""
    base, row = Quadratic(-24.0, -1.0, 0.75), torch.tensor([0.875, 0.125])
    verdict = certify(BinaryReduction(base), row, claim="global", refute=False)
    assert verdict.status == "UNDECIDED"


sizes = st.integers(-24, 24).map(lambda i: Q(i, 16))


@settings(max_examples=30, deadline=None)
@given(st.integers(-15, 60), st.integers(0, 16), sizes, sizes, st.booleans())
def test_the_points_decide_the_inequality(r: int, g: int, own: Q, rival: Q, two: bool) -> None:
    """Against a fine grid, whose points they contain."""
    curve, centre = Q(r, 16), Q(g, 16)
    density, _ = f2(curve, centre)
    held = transfers_hold((1 + curve * centre**2, -2 * curve * centre, curve), own, rival, two=two)
    grid = [(Q(i, 32), Q(j, 32)) for i in range(33) for j in range(33)]
    kept = [(x, y) for x, y in grid if x + y == 1 or (not two and x + y < 1)]
    least = min(own * density(x) - rival * density(y) for x, y in kept)
    # the grid misses a minimum by less than this
    near = (abs(own) + abs(rival)) * abs(curve) / 32**2
    assert held or least < near
    assert not held or least >= 0

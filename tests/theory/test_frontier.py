"""The frontier: closed forms, their limits, and agreement with certify on both sides."""

import math

import pytest
import torch

from lossforge import BEF, CE, MAE, BinaryReduction, TargetSeparation, base
from lossforge.noise import pair, symmetric
from lossforge.theory import certify, frontier, wrong_labels

MATRICES = {"symmetric": symmetric, "pair": pair}


def random_loss(generator, claim):
    """A separation, which alone transfers are decided for, a reduction or a sum, of f1 or f2."""

    def draw(low, high):
        return float(torch.rand((), generator=generator)) * (high - low) + low

    def make():
        gamma = draw(0, 1)
        if draw(0, 1) < 0.5:
            return base.Exponential(-1, draw(-3, 3), gamma)
        return base.Quadratic(-draw(-0.9, 3), -1, gamma)

    parts = [TargetSeparation(make(), tau=draw(0, 4)), BinaryReduction(make())]
    choice = int(draw(0, 3)) if claim != "transfers" else 0
    return draw(0.2, 2) * parts[0] + draw(0.2, 2) * parts[1] if choice == 2 else parts[choice]


@pytest.mark.slow
@pytest.mark.parametrize("direction", MATRICES)
@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
@pytest.mark.parametrize("seed", range(6))
def test_certify_agrees_on_both_sides(direction, claim, seed):
    generator = torch.Generator().manual_seed(seed)
    loss = random_loss(generator, claim)
    classes = int(torch.randint(2, 13, (), generator=generator))
    found = frontier(loss, classes, direction, claim=claim)
    matrix = MATRICES[direction]
    below = certify(loss, matrix(classes, found.rate * (1 - 1e-6)), claim=claim)
    assert below.status == "PROVED"
    if found.rate * (1 + 1e-6) < found.limit:
        above = certify(loss, matrix(classes, found.rate * (1 + 1e-6)), claim=claim)
        assert above.status in ("REFUTED", "UNDECIDED")
        # clearly beyond a closed form that is exact there is a counterexample
        far = found.rate * 1.03
        if found.closed_form and claim == "transfers" and far < found.limit:
            assert certify(loss, matrix(classes, far), claim=claim).status == "REFUTED"


def test_at_the_votes_of_the_noise_every_base_function_reaches_the_limit():
    steep = TargetSeparation(base.Exponential(-1, 9.0, 1.0), tau=1.0)
    found = frontier(steep, 10)
    assert (found.rate, found.closed_form) == (pytest.approx(0.9), True)


def test_closed_forms():
    k = math.exp(0.5)  # f1 with beta -2 about 1/2
    loss = TargetSeparation(base.Exponential(-1, -2.0, 0.5), tau=1.0)
    a, m = 1 / 9, 1.0
    expected = (1 + k * a) / ((1 + a) * (1 + k * m))
    assert frontier(loss, 10, "pair", claim="transfers").rate == pytest.approx(expected)
    tilted = BinaryReduction(base.Exponential(-1, 1.0, 0.2))  # rho_M = e^0.6
    assert frontier(tilted, 10, "pair").rate == pytest.approx(1 / (1 + math.exp(0.6)))
    assert frontier(tilted, 10).rate == pytest.approx(1 / (1 + math.exp(0.6) / 9))


def test_flat_losses_reach_the_limit_in_every_direction():
    for direction, limit in (("symmetric", 0.9), ("pair", 0.5)):
        assert frontier(MAE(), 10, direction).rate == pytest.approx(limit)


def test_cross_entropy_tolerates_nothing():
    assert frontier(CE(), 10).rate == 0


@pytest.mark.slow
def test_a_direction_of_ones_own_is_the_pair_flip_when_it_is():
    ray = torch.eye(6).roll(1, 1)
    assert frontier(BEF(), 6, ray).rate == pytest.approx(frontier(BEF(), 6, "pair").rate, rel=1e-6)
    mixed = 0.5 * ray + 0.5 * (1 - torch.eye(6)) / 5
    assert frontier(BEF(), 6, mixed).rate > frontier(BEF(), 6, ray).rate


@pytest.mark.parametrize(
    ("direction", "complaint"),
    [
        ("sideways", "direction must be symmetric, pair or a matrix"),
        (torch.eye(3), "row 0 of the direction must be a distribution over the other classes"),
        (torch.ones(2, 2), "direction must be 3 x 3"),
    ],
)
def test_bad_directions_are_refused(direction, complaint):
    with pytest.raises(ValueError, match=complaint):
        frontier(MAE(), 3, direction)


def test_the_direction_of_a_noise_is_that_of_its_wrong_labels():
    matrix = torch.tensor([[0.7, 0.2, 0.1], [0, 1, 0], [0.4, 0, 0.6]], dtype=torch.float64)
    found = wrong_labels(matrix)
    expected = [[0, 2 / 3, 1 / 3], [2 / 3, 0, 1 / 3], [1, 0, 0]]  # class 1 has none: as class 0
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    vector = torch.tensor([0.3, 0.6, 0.1], dtype=torch.float64)
    torch.testing.assert_close(wrong_labels(vector), vector.new_tensor([[0, 0.75, 0.25]]))
    with pytest.raises(ValueError, match="has no wrong labels"):
        wrong_labels(torch.eye(3, dtype=torch.float64))

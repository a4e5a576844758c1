"""What certify takes for a noise, and how it refuses."""

import pytest
import torch

from lossforge import BEF, MAE
from lossforge.noise import NoiseEstimate, pair, symmetric
from lossforge.theory import certify, certify_instances, read_noise, threshold_interval


def test_a_matrix_has_its_classes_for_targets():
    rows = read_noise(symmetric(4, 0.3))
    assert rows.kind == "matrix"
    assert rows.targets.tolist() == [0, 1, 2, 3]
    assert torch.equal(rows.own, torch.full((4,), 0.7))


def test_a_vector_has_its_largest_weight_for_a_target():
    rows = read_noise([0.2, 0.5, 0.3])
    assert (rows.kind, rows.targets.tolist()) == ("vector", [1])


def test_an_estimate_is_read_through_its_matrix():
    estimate = NoiseEstimate(pair(3, 0.2), torch.full((3,), 1 / 3), 0.2)
    assert certify(MAE(), estimate).status == "PROVED"


@pytest.mark.parametrize(
    ("noise", "complaint"),
    [
        ([[0.9, 0.1], [0.3, 0.6]], "row 1 of the noise must sum to 1, got 0.9"),
        ([[0.9, 0.1], [-0.1, 1.1]], "row 1 of the noise must hold probabilities, got -0.1"),
        ([[float("nan"), 0.1], [0.1, 0.9]], "row 0 of the noise must hold probabilities, got nan"),
        (
            [[0.9, 0.1], [0.5, 0.5]],
            "row 1 of the noise has no unique largest weight at its true class 1: 0.5 there, "
            "0.5 at class 0",
        ),
        ([0.5, 0.5], "row 0 of the noise has no unique largest weight"),
        ([[0.9, 0.1]] * 3, "noise must be a square transition matrix or one vector"),
        ([1.0], "noise must be a matrix or a vector over 2 classes or more"),
    ],
)
def test_bad_noise_is_refused_by_row(noise, complaint):
    with pytest.raises(ValueError, match=complaint):
        certify(BEF(), torch.tensor(noise))


def test_the_number_of_classes_must_agree():
    with pytest.raises(ValueError, match="must be over 10 classes, got 3"):
        certify(BEF(), symmetric(3, 0.2), num_classes=10)


def test_nothing_is_renormalised():
    T = symmetric(3, 0.2)
    T[0, 0] += 1e-5
    with pytest.raises(ValueError, match=r"row 0 of the noise must sum to 1, got 1\.00001"):
        read_noise(T)
    assert torch.equal(read_noise(T.mul(1 + 0).add(0)[1]).weights[0], T[1])


def test_claims_have_names():
    with pytest.raises(ValueError, match="claim must be one of monotone, transfers, global"):
        certify(BEF(), symmetric(3, 0.2), claim="robust")


def test_the_votes_lie_between_wrong_and_true_weights():
    assert threshold_interval(symmetric(10, 0.8)) == pytest.approx((0.8 / 9, 0.2))
    low, high = threshold_interval(pair(10, 0.4))
    # a = theta / (1 - theta) times K - 1
    assert (9 * low / (1 - low), 9 * high / (1 - high)) == pytest.approx((6, 13.5))


def test_instances_in_which_a_wrong_label_dominates_are_counted_not_refused():
    rows = torch.tensor([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.6, 0.2, 0.2], [1.0, 0.0, 0.0]])
    found = certify_instances(MAE(), rows, torch.zeros(4, dtype=torch.long))
    assert found.proved.tolist() == [True, False, True, True]
    assert found.dominated.tolist() == [False, True, False, False]
    assert found.fraction == 0.75
    assert "75.0% of 4 instances; in 25.0% a wrong label dominates" in str(found)

"""What an entry declares about its loss is measured, and what it does not declare fails."""

import pytest
import torch
from cases import CASES, Case
from torch import Tensor

from lossforge.catalog import ENTRIES

BY_ENTRY = {case.entry: case for case in CASES if case.entry}
OVER_ENTRIES = pytest.mark.parametrize("name", ENTRIES)
K = 5


def per_label(case: Case, z: Tensor) -> Tensor:
    """(N, K) values of one loss for every label."""
    loss = case.make(K).with_policy(reduction="none")
    return torch.stack([loss(z, torch.full((len(z),), c)) for c in range(K)], 1)


def asymmetry_witness(case: Case, z: Tensor) -> tuple[int, int] | None:
    """Two rows whose sums over the labels differ, or nothing."""
    sums = per_label(case, z).sum(1)
    low, high = int(sums.argmin()), int(sums.argmax())
    return (low, high) if sums[high] - sums[low] > 1e-10 * sums.abs().max() else None


@OVER_ENTRIES
def test_sum_over_labels_is_constant_exactly_if_declared_symmetric(name: str) -> None:
    case, z = BY_ENTRY[name], torch.cat([scale * torch.randn(30, K) for scale in (0.1, 1, 3)])
    witness = asymmetry_witness(case, z)
    assert case.symmetric == (ENTRIES[name].kind == "symmetric")
    if case.symmetric:
        assert witness is None
        return
    assert witness is not None
    low, high = (per_label(case, z[[row]]).sum() for row in witness)  # the witness reproduces
    assert high - low > 1e-4


WEIGHTS = torch.tensor([0.28, 0.18, 0.18, 0.18, 0.18], dtype=torch.float64)
# Its minimiser is the one-hot only where a (w_t - w_2) >= W, which no noise this heavy allows.
NEEDS_LESS_NOISE = {"ANorm"}
# Truncation at 1/2 flattens every other class, so the one-hot wins although no paper says so.
ONE_HOT_ANYWAY = {"TGCE"}
# Not functions of one vector of probabilities, or of a class that the sample does not have.
NO_ONE_HOT = {"CE+LC", "SR", "LDR", "GJS", "NL", "NL+"}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in NO_ONE_HOT])
def test_noisy_risk_is_least_at_the_clean_one_hot_if_declared_robust(name: str) -> None:
    case, z = BY_ENTRY[name], torch.cat([scale * torch.randn(300, K) for scale in (0.5, 2, 8)])
    vertices = 200 * torch.eye(K)
    risk = per_label(case, torch.cat([vertices, z])) @ WEIGHTS
    robust = bool(risk[0] <= risk.min() + 1e-12)
    declared = ENTRIES[name].kind != "neither"
    assert robust == (declared or name in ONE_HOT_ANYWAY) or name in NEEDS_LESS_NOISE


def test_anorm_is_asymmetric_under_less_noise() -> None:
    z = torch.cat([200 * torch.eye(K), 2 * torch.randn(500, K)])
    risk = per_label(BY_ENTRY["ANorm"], z) @ torch.tensor([0.8, 0.05, 0.05, 0.05, 0.05])
    assert risk[0] <= risk.min()


@OVER_ENTRIES
def test_value_stays_under_a_bound_exactly_if_declared_bounded(name: str) -> None:
    case = BY_ENTRY[name]
    z = torch.randn(200, K)
    small, large = (per_label(case, scale * z).abs().max() for scale in (1e4, 1e6))
    assert case.bounded == ENTRIES[name].bounded == (case.bound is not None)
    if case.bound is not None:
        assert max(small, large) <= case.bound * (1 + 1e-12)
    else:
        assert large > 50 * small


def test_planted_false_claims_are_found() -> None:
    z = torch.randn(50, K)
    assert asymmetry_witness(BY_ENTRY["GCE"], z) is not None
    assert asymmetry_witness(BY_ENTRY["MAE"], z) is None
    assert per_label(BY_ENTRY["CE"], 1e4 * z).abs().max() > 100

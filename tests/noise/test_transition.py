"""Transition matrices: their entries, their symmetries, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossforge import noise
from lossforge.noise.transition import SUPERCLASSES

CLASSES = st.integers(2, 60)
RATES = st.floats(0, 1)


@given(CLASSES, RATES)
def test_symmetric_entries(num_classes, rate):
    T = noise.symmetric(num_classes, rate)
    expected = torch.full((num_classes, num_classes), rate / (num_classes - 1))
    torch.testing.assert_close(T, expected.fill_diagonal_(1 - rate))
    assert T.sum(1).allclose(torch.ones(num_classes))


@given(CLASSES, RATES)
def test_pair_moves_each_class_to_the_next(num_classes, rate):
    T = noise.pair(num_classes, rate)
    for i in range(num_classes):
        for j in range(num_classes):
            expected = (1 - rate) * (i == j) + rate * (j == (i + 1) % num_classes)
            assert T[i, j].item() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cifar10", {(9, 1), (2, 0), (3, 5), (5, 3), (4, 7)}),
        ("mnist", {(7, 1), (2, 7), (5, 6), (6, 5), (3, 8)}),
    ],
)
def test_asymmetric_maps_of_ten_classes(name, wrong):
    T = noise.asymmetric(name, 0.3)
    found = {(i, j) for i in range(10) for j in range(10) if i != j and T[i, j] > 0}
    assert found == wrong
    for i, j in wrong:
        assert T[i, j].item() == pytest.approx(0.3)
        assert T[i, i].item() == pytest.approx(0.7)


def superclass_of(label):
    return next(i for i, group in enumerate(SUPERCLASSES) if label in group)


def test_superclasses_partition_the_fine_labels():
    assert sorted(sum(SUPERCLASSES, ())) == list(range(100))
    assert all(len(group) == 5 for group in SUPERCLASSES)


@pytest.mark.parametrize(("blocks", "inside"), [("superclass", 100), ("alphabetical", 6)])
def test_cifar100_flips_that_stay_inside_a_superclass(blocks, inside):
    T = noise.asymmetric("cifar100", 0.4, blocks=blocks)
    wrong = [(i, j) for i in range(100) for j in range(100) if i != j and T[i, j] > 0]
    assert len(wrong) == 100
    assert T.diagonal().allclose(torch.tensor(0.6))
    assert sum(superclass_of(i) == superclass_of(j) for i, j in wrong) == inside
    assert sorted(j for _, j in wrong) == list(range(100))  # a cycle in every group


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise.symmetric(1, 0.2), "2 or more, got 1"),
        (lambda: noise.symmetric(10, 1.2), r"rate must be in \[0, 1\], got 1.2"),
        (lambda: noise.pair(10, -0.1), "rate must be"),
        (lambda: noise.asymmetric("svhn", 0.2), "unknown class map 'svhn'"),
        (lambda: noise.asymmetric("cifar100", 0.2, blocks="fine"), "blocks must be"),
        (lambda: noise.flips(3, {0: 0}, 0.2), "0 -> 0"),
        (lambda: noise.flips(3, {0: 3}, 0.2), "0 -> 3"),
        (lambda: noise.transition(torch.ones(2, 3)), "square"),
        (
            lambda: noise.transition(torch.tensor([[1.0, 0.0], [0.5, 0.4]])),
            "row 1 of T must sum to 1, got 0.9",
        ),
        (lambda: noise.transition(torch.tensor([[1.5, -0.5], [0.0, 1.0]])), "probabilities"),
        (lambda: noise.transition(torch.full((2, 2), torch.nan)), "probabilities"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_matrix_of_lists_or_float32_is_taken():
    T = noise.transition([[0.9, 0.1], [0.2, 0.8]])
    assert T.dtype == torch.float64
    assert noise.transition(T.float()).allclose(T, atol=1e-6)

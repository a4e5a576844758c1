"""Injected noise: exact counts are exact, independent draws are distributed as the matrix says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from lossforge import noise

MATRICES = {
    "symmetric": lambda: noise.symmetric(10, 0.4),
    "symmetric, heavy": lambda: noise.symmetric(10, 0.8),
    "pair": lambda: noise.pair(10, 0.3),
    "asymmetric": lambda: noise.asymmetric("cifar10", 0.4),
    "superclasses": lambda: noise.asymmetric("cifar100", 0.4),
    "clean": lambda: noise.symmetric(10, 0.0),
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some_labels(num_classes, per_class=500):
    return torch.arange(num_classes).repeat(per_class)


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_independent_draws_lie_within_binomial_bounds(matrix):
    T = matrix()
    labels = some_labels(len(T))
    counts = noise.confusion_counts(
        labels, noise.corrupt(labels, T, generator=seeded()).labels, len(T)
    )
    # two-sided, at a level that one in 10,000 right generators would fail over all cells
    tail = 1e-4 / T.numel()
    low = torch.as_tensor(binom.ppf(tail, 500, T.numpy()))
    high = torch.as_tensor(binom.isf(tail, 500, T.numpy()))
    assert ((counts >= low) & (counts <= high)).all()


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_exact_counts_give_every_class_its_rate(matrix):
    T = matrix()
    labels = some_labels(len(T))
    result = noise.corrupt(labels, T, generator=seeded(), exact=True)
    found = noise.empirical_transition(labels, result.labels, len(T))
    assert found.diagonal().allclose(T.diagonal(), atol=1e-12)
    assert ((found - T).abs() * 500 < 1).all()


@given(st.data())
def test_exact_counts_on_uneven_classes(data):
    num_classes = data.draw(st.integers(2, 12))
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=num_classes, max_size=num_classes))
    rows = data.draw(
        st.lists(
            st.lists(st.floats(0.01, 1), min_size=num_classes, max_size=num_classes),
            min_size=num_classes,
            max_size=num_classes,
        )
    )
    T = torch.tensor(rows)
    T = T / T.sum(1, keepdim=True)
    labels = torch.repeat_interleave(torch.arange(num_classes), torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels))]
    result = noise.corrupt(labels, T, generator=seeded(3), exact=True)
    counts = noise.confusion_counts(labels, result.labels, num_classes)
    expected = T * torch.tensor(sizes)[:, None]
    assert (counts.sum(1) == torch.tensor(sizes)).all()
    # the rate to half a sample, every cell to less than two (rate and share are both rounded)
    assert ((counts - expected).diagonal().abs() <= 0.5 + 1e-9).all()
    assert ((counts - expected).abs() < 1.5 + 1e-9).all()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_the_mask_is_exactly_the_flips(matrix, exact):
    T = matrix()
    labels = some_labels(len(T), 50)
    before = labels.clone()
    result = noise.corrupt(labels, T, generator=seeded(), exact=exact)
    assert torch.equal(result.flipped, result.labels != labels)
    assert torch.equal(labels, before)


@pytest.mark.parametrize("exact", [False, True])
def test_same_generator_same_labels(exact):
    T, labels = noise.symmetric(10, 0.4), some_labels(10)
    draws = [noise.corrupt(labels, T, generator=seeded(s), exact=exact) for s in (5, 5, 6)]
    assert torch.equal(draws[0].labels, draws[1].labels)
    assert not torch.equal(draws[0].labels, draws[2].labels)


def test_the_global_random_state_is_left_alone():
    state = torch.get_rng_state()
    noise.corrupt(some_labels(10), noise.symmetric(10, 0.4), generator=seeded())
    noise.part_dependent(torch.rand(20, 3), some_labels(2, 10), 2, 0.3, generator=seeded())
    torch.rand(20, 3)
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    torch.rand(20, 3)  # the features above
    torch.rand(20, 3)
    assert torch.equal(torch.get_rng_state(), after)


def test_what_rounding_leaves_over_favours_no_class():
    # 7 flips over 9 wrong classes: which two go without is drawn anew
    labels = torch.zeros(18, dtype=torch.int64)
    spared = torch.zeros(10)
    for seed in range(300):
        result = noise.corrupt(labels, noise.symmetric(10, 0.4), generator=seeded(seed), exact=True)
        counts = torch.bincount(result.labels, minlength=10)
        assert counts[0] == 11
        assert counts[1:].max() == 1
        spared += counts == 0
    assert (spared[1:] > 40).all()
    assert (spared[1:] < 95).all()  # 300 * 2/9 = 67, binomial deviation 7


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.tensor([0, 10]), ValueError, r"labels must lie in 0\.\.9, got 0\.\.10"),
        (torch.tensor([-1, 3]), ValueError, r"got -1\.\.3"),
        (torch.tensor([0.0, 1.0]), TypeError, "vector of int64"),
        (torch.zeros(2, 2, dtype=torch.int64), TypeError, "vector of int64"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=message):
        noise.corrupt(labels, noise.symmetric(10, 0.4), generator=seeded())


def test_no_labels_at_all():
    empty = torch.zeros(0, dtype=torch.int64)
    assert len(noise.corrupt(empty, noise.symmetric(3, 0.5), generator=seeded()).labels) == 0


def test_a_class_without_samples_is_unknown():
    found = noise.empirical_transition(torch.tensor([0, 0]), torch.tensor([0, 1]), 3)
    assert found[0].tolist() == [0.5, 0.5, 0]
    assert found[1:].isnan().all()


@pytest.mark.parametrize("given", [torch.tensor([1]), torch.tensor([[0], [1]])])
@pytest.mark.parametrize(
    "measure", [noise.noise_rate, lambda true, given: noise.confusion_counts(true, given, 2)]
)
def test_labels_to_compare_must_match(measure, given):
    with pytest.raises((TypeError, ValueError), match=r"vector"):
        measure(torch.tensor([0, 1]), given)


def test_rows_that_sum_to_a_little_more_than_one_are_exact_too():
    T = torch.tensor([[0.0, 1 + 9e-7], [0.0, 1.0]])
    labels = torch.zeros(1_000_000, dtype=torch.int64)
    assert noise.corrupt(labels, T, generator=seeded(), exact=True).flipped.all()

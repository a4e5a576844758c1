"""The shape of data: what it checks, and what holding out and relabelling do."""

import pytest
import torch

from lossforge.data import Dataset, Split, subset


def some_data(n=100):
    labels = torch.arange(n) % 4
    inputs = torch.arange(n, dtype=torch.float32)[:, None]
    train = Split(inputs, (labels + 1) % 4, labels)
    return Dataset("four", ("a", "b", "c", "d"), train, {"test": Split(inputs, labels, labels)})


def test_parts_and_classes():
    dataset = some_data()
    assert dataset.num_classes == 4
    assert list(dataset.parts()) == ["train", "test"]
    assert len(dataset.train) == 100


def test_noise_replaces_given_labels_only():
    dataset = some_data()
    given = torch.zeros(100, dtype=torch.int64)
    noisy = dataset.with_noise(given)
    assert noisy.train.given is given
    assert noisy.train.true is dataset.train.true
    assert noisy.tests is dataset.tests
    assert dataset.train.given is not given


def test_holding_out_keeps_the_noise_and_loses_no_sample():
    dataset = some_data()
    divided = dataset.hold_out(0.2, generator=torch.Generator().manual_seed(0))
    assert (len(divided.train), len(divided.validation)) == (80, 20)
    assert list(divided.parts()) == ["train", "validation", "test"]
    rows = torch.cat([divided.train.inputs, divided.validation.inputs]).flatten()
    assert rows.sort().values.tolist() == list(range(100))
    for part in (divided.train, divided.validation):
        assert torch.equal(part.true, part.inputs.flatten().long() % 4)
        assert torch.equal(part.given, (part.true + 1) % 4)
    again = dataset.hold_out(0.2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.validation.inputs, divided.validation.inputs)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 2])
def test_a_fraction_must_leave_both_parts(fraction):
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\)"):
        some_data().hold_out(fraction, generator=torch.Generator())


@pytest.mark.parametrize("fraction", [1e-9, 0.004, 0.996])
def test_a_fraction_that_rounds_to_nothing_or_all_is_refused(fraction):
    with pytest.raises(ValueError, match=f"a sample for both parts, got {fraction} of 100"):
        some_data().hold_out(fraction, generator=torch.Generator())


@pytest.mark.parametrize("fraction", ["x", None, True])
def test_a_fraction_must_be_a_number(fraction):
    with pytest.raises(TypeError, match=f"fraction must be a number, got {fraction!r}"):
        some_data().hold_out(fraction, generator=torch.Generator())


def test_nothing_is_held_out_twice():
    divided = some_data().hold_out(0.2, generator=torch.Generator())
    with pytest.raises(ValueError, match="four has a validation part already"):
        divided.hold_out(0.2, generator=torch.Generator())


def test_a_subset_keeps_the_order_it_is_given():
    part = subset(some_data().train, torch.tensor([7, 3]))
    assert part.inputs.flatten().tolist() == [7, 3]
    assert part.true.tolist() == [3, 3]
    assert part.given.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), ValueError, r"each of the 2 inputs, got shape \(3,\)"),
        (torch.zeros(2), TypeError, "given labels must be int64, got torch.float32"),
    ],
)
def test_labels_must_fit_the_inputs(given, error, message):
    with pytest.raises(error, match=message):
        Split(torch.zeros(2, 1), given)


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_must_be_classes(label):
    with pytest.raises(ValueError, match=r"four: given labels of train must lie in 0\.\.3"):
        some_data().with_noise(torch.full((100,), label))

"""Digits, their pairs and triples, and breast cancer."""

import pytest
import torch

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from lossforge.data.dataset import deal, stratify
from lossforge.data.embedded import breast_cancer, digits


def rows(images: torch.Tensor) -> set[bytes]:
    return {image.numpy().tobytes() for image in images.contiguous()}


def pieces(split, copies: int) -> list[torch.Tensor]:
    """The digits of each sample, cut apart again: (N, 64) for each place."""
    images = split.inputs.unflatten(1, (8, 8 * copies))
    return [piece.flatten(1) for piece in images.chunk(copies, dim=2)]


@pytest.fixture(scope="module", params=[1, 2, 3], ids=["single", "pairs", "triples"])
def numbers(request):
    return request.param, digits(request.param)


def test_sizes(numbers):
    copies, data = numbers
    sizes = {1: (1438, 359), 2: (5000, 2000), 3: (20000, 5000)}[copies]
    assert (len(data.train), len(data.tests["test"])) == sizes
    assert data.num_classes == 10**copies
    assert data.classes[7] == "7".zfill(copies)
    for split in data.parts().values():
        assert split.inputs.dtype == torch.float32
        assert split.inputs.shape[1] == 64 * copies
        assert split.inputs.min() == 0
        assert split.inputs.max() == 1
        assert torch.equal(split.given, split.true)


def test_all_samples_differ_and_no_image_is_in_both_parts(numbers):
    copies, data = numbers
    train, test = data.train, data.tests["test"]
    assert len(rows(torch.cat([train.inputs, test.inputs]))) == len(train) + len(test)
    seen, unseen = (rows(torch.cat(pieces(split, copies))) for split in (train, test))
    assert not seen & unseen


def test_numbers_are_made_of_the_digits_they_name(numbers):
    copies, data = numbers
    source = load_digits()
    images = torch.from_numpy(source.data).to(torch.float32) / 16
    pairs = zip(images, source.target, strict=True)
    digit = {image.numpy().tobytes(): int(label) for image, label in pairs}
    for split in data.parts().values():
        for place, piece in enumerate(pieces(split, copies)):
            expected = split.given // 10 ** (copies - 1 - place) % 10
            found = [digit[image.numpy().tobytes()] for image in piece.contiguous()]
            assert torch.equal(torch.tensor(found), expected)


@pytest.mark.parametrize("copies", [2, 3])
def test_classes_are_balanced_and_within_one_no_image_returns(copies):
    data = digits(copies)
    for split in data.parts().values():
        counts = split.given.bincount(minlength=10**copies)
        assert (counts == len(split) // 10**copies).all()
    last = data.train.given == 10**copies - 1
    for piece in pieces(data.train, copies):
        assert len(rows(piece[last])) == last.sum()


def test_single_digits_are_all_of_scikit_learn_in_order():
    data = digits()
    source = load_digits()
    keep, rest = stratify(torch.from_numpy(source.target), 0.2)
    inputs = torch.from_numpy(source.data).to(torch.float32) / 16
    assert torch.equal(data.train.inputs, inputs[keep])
    assert torch.equal(data.tests["test"].inputs, inputs[rest])


def test_same_every_time_and_other_with_a_generator():
    before = torch.get_rng_state()
    fixed = [digits(2, per_class=3).train.inputs for _ in range(2)]
    seeded = [
        digits(2, per_class=3, generator=torch.Generator().manual_seed(s)).train.inputs
        for s in (1, 1, 2)
    ]
    assert torch.equal(*fixed)
    assert torch.equal(seeded[0], seeded[1])
    assert not torch.equal(seeded[0], seeded[2])
    assert not torch.equal(seeded[0], fixed[0])
    assert torch.equal(before, torch.get_rng_state())


def test_test_part_does_not_depend_on_the_size_of_the_training_part():
    small, large = digits(2, per_class=3), digits(2, per_class=60)
    assert torch.equal(small.tests["test"].inputs, large.tests["test"].inputs)


def test_more_samples_than_images_still_all_differ():
    data = digits(2, per_class=200, test_per_class=40)
    assert len(rows(data.train.inputs)) == 20_000


@pytest.mark.parametrize("sizes", [[4], [4, 6], [6, 6], [5, 7], [2, 3, 4], [4, 6, 6]], ids=str)
def test_turns_reach_every_combination_once(sizes):
    total = int(torch.tensor(sizes).prod())
    turns = torch.stack(deal(sizes, total), 1)
    assert len(set(map(tuple, turns.tolist()))) == total
    for column, size in zip(turns.T, sizes, strict=True):
        assert (column.bincount(minlength=size) == total // size).all()


def test_fewer_classes_are_the_first_ones():
    some, every = (digits(2, classes=number, per_class=3) for number in (30, None))
    assert some.classes == every.classes[:30]
    assert torch.equal(some.train.inputs, every.train.inputs[:90])
    assert some.tests["test"].given.unique().tolist() == list(range(30))


def test_single_digits_in_equal_numbers():
    data = digits(per_class=20, test_per_class=10)
    assert data.train.given.bincount().tolist() == [20] * 10
    assert len(rows(data.train.inputs)) == 200


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"copies": 4}, ValueError, "copies must be 1, 2 or 3, got 4"),
        ({"copies": 2.0}, TypeError, "copies must be an integer of 1 or more, got 2.0"),
        ({"per_class": 0}, ValueError, "per_class must be an integer of 1 or more, got 0"),
        ({"per_class": 2.5}, TypeError, "per_class must be an integer of 1 or more, got 2.5"),
        ({"per_class": True}, TypeError, "per_class must be an integer of 1 or more, got True"),
        ({"test_per_class": 500}, ValueError, "test_per_class must be at most 35 for different"),
    ],
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        digits(**arguments)


def test_digits_can_be_learnt():
    data = digits()
    model = KNeighborsClassifier(3).fit(data.train.inputs, data.train.given)
    assert model.score(data.tests["test"].inputs, data.tests["test"].given) > 0.97


def test_breast_cancer_is_standardised_on_its_training_part_alone():
    data = breast_cancer()
    train, test = data.train.inputs, data.tests["test"].inputs
    assert data.classes == ("malignant", "benign")
    assert train.shape == (456, 30)
    assert test.shape == (113, 30)
    assert data.train.given.bincount().tolist() == [170, 286]
    assert data.tests["test"].given.bincount().tolist() == [42, 71]
    assert train.mean(0).abs().max() < 1e-5
    assert (train.std(0, correction=0) - 1).abs().max() < 1e-4
    assert test.mean(0).abs().max() > 0.01
    source = load_breast_cancer()
    keep, rest = stratify(torch.from_numpy(source.target), 0.2)
    raw = torch.from_numpy(source.data)
    expected = (raw[rest] - raw[keep].mean(0)) / raw[keep].std(0, correction=0)
    torch.testing.assert_close(test, expected.to(torch.float32))


def test_breast_cancer_can_be_learnt():
    data = breast_cancer()
    model = LogisticRegression(max_iter=500).fit(data.train.inputs, data.train.given)
    assert model.score(data.tests["test"].inputs, data.tests["test"].given) > 0.93


class TestStratify:
    def test_evenly_spaced_without_a_generator(self):
        keep, rest = stratify(torch.zeros(10, dtype=torch.int64), 0.2)
        assert rest.tolist() == [2, 7]
        assert keep.tolist() == [0, 1, 3, 4, 5, 6, 8, 9]

    @pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5, 0.9, 0.99])
    def test_parts_are_complementary_and_no_class_loses_its_last_sample(self, fraction):
        labels = torch.tensor([0, 1, 1, 3, 3, 3, 3, 3, 3, 3])  # class 2 has none
        for generator in (None, torch.Generator().manual_seed(0)):
            keep, rest = stratify(labels, fraction, generator=generator)
            assert torch.cat([keep, rest]).sort().values.tolist() == list(range(10))
            assert set(labels[keep].tolist()) == {0, 1, 3}
            assert (labels[rest] == 3).sum() == min(round(fraction * 7), 6)

    @pytest.mark.parametrize("fraction", [0, 1, -0.2, float("nan")])
    def test_fraction_is_checked(self, fraction):
        with pytest.raises(ValueError, match="test_fraction must be in"):
            stratify(torch.tensor([0, 1]), fraction)

    def test_an_empty_test_part_is_refused(self):
        with pytest.raises(ValueError, match=r"leave a sample for testing, got 0\.2 of 2"):
            stratify(torch.tensor([0, 1]), 0.2)

"""The one grammar of label noise."""

import csv

import numpy as np
import pytest
import torch

from lossforge.errors import SpecError
from lossforge.noise import NoiseSpec, asymmetric, pair, symmetric
from lossforge.noise.spec import matrix_csv

CANONICAL = [
    "clean",
    "given",
    "symmetric:0.4",
    "pair:0.3",
    "asymmetric:0.4",
    "asymmetric:cifar10:0.4",
    "instance:0.6",
    "human:worst",
    "human",
    "weights:0.6,0.3,0.1",
    "symmetric:1",
    "symmetric",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_texts_stay_as_they_are(text):
    assert str(NoiseSpec.parse(text)) == text
    assert NoiseSpec.parse(NoiseSpec.parse(text)) == NoiseSpec.parse(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("symmetric:0.40", "symmetric:0.4"),
        (" Symmetric:.4", "symmetric:0.4"),
        ("dependent:0.4", "instance:0.4"),
        ("symmetric:1.0", "symmetric:1"),
    ],
)
def test_other_spellings_mean_the_same_noise(written, meant):
    assert str(NoiseSpec.parse(written)) == meant


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("symetric:0.4", "did you mean symmetric"),
        ("symmetric:x", "symmetric:RATE"),
        ("symmetric:", "symmetric:RATE"),
        ("symmetric:1.5", r"in \[0, 1\]"),
        ("clean:0.1", "takes no rate"),
        ("asymmetric:cifar11:0.4", "did you mean cifar10"),
        ("weights:a,b", "must be numbers"),
        ("matrix", "unknown noise"),
    ],
)
def test_a_wrong_text_is_refused_with_what_would_be_right(text, part):
    with pytest.raises(SpecError, match=part):
        NoiseSpec.parse(text)


def test_matrices_of_every_kind():
    assert torch.equal(NoiseSpec.parse("symmetric:0.4").transition(5), symmetric(5, 0.4))
    assert torch.equal(NoiseSpec.parse("pair:0.4").transition(5), pair(5, 0.4))
    assert torch.equal(NoiseSpec.parse("clean").transition(3), torch.eye(3))
    mapped = asymmetric("mnist", 0.4)
    assert torch.equal(NoiseSpec.parse("asymmetric:mnist:0.4").transition(), mapped)
    assert torch.equal(NoiseSpec.parse("asymmetric:0.4").transition(class_map="mnist"), mapped)
    following = NoiseSpec.parse("asymmetric:0.4").transition(7, "next")
    assert torch.equal(following, pair(7, 0.4))
    weights = NoiseSpec.parse("weights:0.6,0.3,0.1").transition()
    assert weights.tolist() == [0.6, 0.3, 0.1]


@pytest.mark.parametrize(
    ("text", "classes", "part"),
    [
        ("symmetric:0.4", None, "--classes"),
        ("asymmetric:0.4", 10, "--data"),
        ("symmetric", 10, "needs a rate"),
        ("instance:0.4", 10, "transition matrix"),
        ("human:worst", 10, "transition matrix"),
        ("asymmetric:cifar10:0.4", 12, "not 12"),
        ("weights:0.6,0.3,0.1", 4, "over 3 classes"),
    ],
)
def test_what_has_no_matrix_says_what_is_missing(text, classes, part):
    with pytest.raises(SpecError, match=part):
        NoiseSpec.parse(text).transition(classes)


def test_a_csv_file_may_name_its_classes(tmp_path):
    path = tmp_path / "noise.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["", "cat", "a, b"], ["cat", 0.9, 0.1], ["a, b", 0.2, 0.8]])
    spec = NoiseSpec.parse(str(path))
    assert spec.classes == ("cat", "a, b")
    assert spec.transition().tolist() == [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize("classes", [None, ("cat", "a, b", 'the "c"'), ("0", "1", "2")])
def test_a_written_matrix_reads_back(tmp_path, classes):
    path, weights = tmp_path / "noise.csv", symmetric(3, 0.1)
    path.write_text(matrix_csv(weights, classes))
    spec = NoiseSpec.parse(str(path))
    assert torch.equal(spec.transition(), weights)
    assert spec.classes == classes


def test_classes_named_by_numbers_are_told_from_numbers(tmp_path):
    path = tmp_path / "noise.csv"
    path.write_text(",0,1\n0,0.9,0.1\n1,0.2,0.8\n")
    assert NoiseSpec.parse(str(path)).classes == ("0", "1")


def test_names_in_another_order_are_refused(tmp_path):
    path = tmp_path / "noise.csv"
    path.write_text(",cat,dog\ndog,0.9,0.1\ncat,0.2,0.8\n")
    with pytest.raises(ValueError, match="same order"):
        NoiseSpec.parse(str(path))


def test_a_matrix_is_named_by_its_file_and_its_numbers(tmp_path):
    names = []
    for rate in (0.1, 0.2):
        np.save(tmp_path / "noise.npy", symmetric(3, rate).numpy())
        names.append(str(NoiseSpec.parse(str(tmp_path / "noise.npy"))))
    assert len(set(names)) == 2
    assert all(name.startswith("noise.npy@") for name in names)


def test_the_limit_is_where_a_class_loses_its_majority():
    assert NoiseSpec.parse("symmetric:0.4").limit(10) == 0.9
    assert NoiseSpec.parse("pair:0.4").limit(10) == 0.5
    assert NoiseSpec.parse("instance:0.4").limit(10) is None

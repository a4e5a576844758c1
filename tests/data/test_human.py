"""Label files of CIFAR-N as their authors lay them out, small faults included."""

import json

import numpy as np
import pytest
import torch

from lossforge.data import human

rng = np.random.default_rng(0)
TRUE = rng.integers(0, 10, human.SAMPLES)
WORST = np.where(rng.random(human.SAMPLES) < 0.4, (TRUE + 1) % 10, TRUE)
TABLE = {"clean_label": TRUE, "worse_label": WORST}


def test_the_torch_file_is_read(tmp_path):
    torch.save(TABLE, tmp_path / "CIFAR-10_human.pt")
    found = human.human_labels("cifar10", "worst", data_dir=tmp_path)
    assert found.given.tolist() == WORST.tolist()
    assert found.true.tolist() == TRUE.tolist()


def test_the_ordered_files_are_put_in_official_order(tmp_path):
    order = rng.permutation(human.SAMPLES)
    ordered = {key: values[order] for key, values in TABLE.items()}
    np.save(tmp_path / "CIFAR-10_human_ordered.npy", ordered, allow_pickle=True)
    np.save(tmp_path / "image_order_c10.npy", order)
    found = human.human_labels("cifar10", "worst", data_dir=tmp_path)
    assert found.given.tolist() == WORST.tolist()
    assert found.true.tolist() == TRUE.tolist()


def test_the_other_spelling_of_cifar100_is_read(tmp_path):
    order = rng.permutation(human.SAMPLES)
    ordered = {"clean_label": TRUE[order], "noise_label": WORST[order]}
    np.save(tmp_path / "CIFAR-100_human_ordered.npy", ordered, allow_pickle=True)
    np.save(tmp_path / "image_order_c100.npy", order)
    found = human.human_labels("cifar100", "noisy", data_dir=tmp_path)
    assert found.given.tolist() == WORST.tolist()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"clean_label": TRUE}, "lacks clean_label or worse_label; it has clean_label"),
        ({**TABLE, "worse_label": WORST[:9]}, r"50000 whole numbers .* got int64 of shape \(9,\)"),
        ({**TABLE, "worse_label": WORST / 2}, "got float64"),
        ([1, 2], "must hold a dictionary"),
    ],
    ids=["no such labels", "too short", "fractions", "a list"],
)
def test_faults_are_named(tmp_path, table, message):
    torch.save(table, tmp_path / "CIFAR-10_human.pt")
    with pytest.raises(ValueError, match=message):
        human.human_labels("cifar10", "worst", data_dir=tmp_path)


def test_a_faulty_order_is_named(tmp_path):
    np.save(tmp_path / "CIFAR-10_human_ordered.npy", TABLE, allow_pickle=True)
    np.save(tmp_path / "image_order_c10.npy", np.zeros(human.SAMPLES, dtype=np.int64))
    with pytest.raises(ValueError, match=r"image_order_c10\.npy must be a permutation"):
        human.human_labels("cifar10", "worst", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("cifar10", "noisy", "one of aggregate, random1, random2, random3, worst for cifar10"),
        ("cifar100", "worst", "one of noisy for cifar100"),
        ("mnist", "worst", "name must be one of cifar10, cifar100"),
    ],
)
def test_unknown_names_list_the_known(name, kind, message):
    with pytest.raises(ValueError, match=message):
        human.human_labels(name, kind)


def test_a_missing_file_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar-n: no CIFAR-10_human\.pt in"):
        human.human_labels("cifar10", "worst", data_dir=tmp_path)


def test_frozen_labels(tmp_path):
    path = tmp_path / "cifar10_dependent_0.2.json"
    path.write_text(json.dumps(TRUE.tolist()))
    assert human.instance_labels("cifar10", 0.2, data_dir=tmp_path).tolist() == TRUE.tolist()
    path.write_text("[1, 2,")
    with pytest.raises(ValueError, match=r"cifar10_dependent_0\.2\.json:1 cannot be read"):
        human.instance_labels("cifar10", 0.2, data_dir=tmp_path)
    with pytest.raises(ValueError, match=r"0\.2, 0\.4 or 0\.6"):
        human.instance_labels("cifar10", 0.3, data_dir=tmp_path)

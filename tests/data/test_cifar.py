"""CIFAR in the official layout: made here for the faults, and the real images where they are."""

import io
import pickle
import tarfile

import numpy as np
import pytest
import torch

from lossforge import noise
from lossforge.data.cifar import load_cifar10, load_cifar100
from lossforge.data.human import human_labels, instance_labels
from lossforge.noise.transition import SUPERCLASSES

NAMES = {"cifar-10-batches-py": [b"cat", b"dog"], "cifar-100-python": [b"apple", b"bear", b"cup"]}


def batch(key, labels):
    pixels = (np.arange(len(labels) * 3072) % 251).astype(np.uint8).reshape(-1, 3072)
    return {b"data": pixels, key: labels}


def official(kind):
    """The files of a small release, as Python 2 keys."""
    if kind == "cifar-10-batches-py":
        files = {f"data_batch_{i}": batch(b"labels", [i % 2, 0]) for i in range(1, 6)}
        files["test_batch"] = batch(b"labels", [1, 1, 0])
        files["batches.meta"] = {b"label_names": NAMES[kind]}
        return files
    return {
        "train": {**batch(b"fine_labels", [2, 0, 1, 2]), b"coarse_labels": [0, 0, 0, 0]},
        "test": batch(b"fine_labels", [0, 1]),
        "meta": {b"fine_label_names": NAMES[kind]},
    }


def write(folder, kind):
    (folder / kind).mkdir(parents=True)
    for name, content in official(kind).items():
        (folder / kind / name).write_bytes(pickle.dumps(content, protocol=2))
    return folder


LOADERS = {"cifar-10-batches-py": load_cifar10, "cifar-100-python": load_cifar100}
ARCHIVES = {
    "cifar-10-batches-py": "cifar-10-python.tar.gz",
    "cifar-100-python": "cifar-100-python.tar.gz",
}


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("place", ["root", "named", "itself", "archive"])
def test_the_official_layout_is_read_wherever_it_lies(tmp_path, kind, place):
    name = "cifar10" if "10-" in kind else "cifar100"
    data_dir = tmp_path
    if place == "named":
        write(tmp_path / name, kind)
    else:
        write(tmp_path, kind)
    if place == "itself":
        data_dir = tmp_path / kind
    if place == "archive":
        data_dir = tmp_path / "packed"
        data_dir.mkdir()
        with tarfile.open(data_dir / ARCHIVES[kind], "w:gz") as tar:
            tar.add(tmp_path / kind, kind)
    data = LOADERS[kind](data_dir=data_dir)
    assert data.classes == tuple(label.decode() for label in NAMES[kind])
    expected = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0] if name == "cifar10" else [2, 0, 1, 2]
    assert data.train.given.tolist() == expected
    assert torch.equal(data.train.true, data.train.given)
    assert data.train.inputs.shape == (len(expected), 3, 32, 32)
    assert data.train.inputs.dtype == torch.uint8
    # row-major, channel first: pixel (c, i, j) is number 1024 c + 32 i + j
    assert data.train.inputs[0, 1, 2, 3].item() == (1024 + 67) % 251
    for generator in (None, torch.Generator().manual_seed(0)):
        prepared = data.transform(data.tests["test"].inputs, torch.tensor([0, 1]), generator)
        assert prepared.shape == (2, 3, 32, 32)
        assert prepared.dtype == torch.float32


def test_a_missing_release_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"no cifar-10-batches-py in {tmp_path}"):
        load_cifar10(data_dir=tmp_path)


def test_missing_files_are_named(tmp_path):
    write(tmp_path, "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError, match=r"missing: .*data_batch_3"):
        load_cifar10(data_dir=tmp_path)


def test_an_archive_without_a_file_is_named(tmp_path):
    with tarfile.open(tmp_path / "cifar-100-python.tar.gz", "w:gz") as tar:
        content = pickle.dumps(official("cifar-100-python")["meta"])
        info = tarfile.TarInfo("cifar-100-python/meta")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    with pytest.raises(FileNotFoundError, match=r"cifar-100-python\.tar\.gz lacks train, test"):
        load_cifar100(data_dir=tmp_path)
    (tmp_path / "cifar-100-python.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(ValueError, match=r"cifar-100-python\.tar\.gz cannot be read"):
        load_cifar100(data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02", "train cannot be read"),
        (pickle.dumps({b"data": b"none"}), "train must hold 'data'"),
        (pickle.dumps({b"data": np.zeros((2, 5), np.uint8), b"fine_labels": [0, 1]}), r"\(2, 5\)"),
        (pickle.dumps(batch(b"fine_labels", [0, 3])), r"labels of train must lie in 0\.\.2"),
        (pickle.dumps([1, 2]), "train must hold a dictionary, got list"),
        (pickle.dumps(batch(b"fine_labels", [0.5, 1])), "'fine_labels' of train must be a list"),
        (pickle.dumps(batch(b"fine_labels", ["0"])), "'fine_labels' of train must be a list"),
    ],
    ids=["truncated", "no labels", "wrong pixels", "out of range", "a list", "fractions", "text"],
)
def test_a_faulty_batch_is_named(tmp_path, content, message):
    write(tmp_path, "cifar-100-python")
    (tmp_path / "cifar-100-python" / "train").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_cifar100(data_dir=tmp_path)


@pytest.fixture(scope="module")
def cifar10(cifar10_folder):
    return load_cifar10(data_dir=cifar10_folder)


@pytest.mark.parametrize("names", [None, 5, [1, 2]])
def test_faulty_class_names_are_named(tmp_path, names):
    write(tmp_path, "cifar-100-python")
    meta = {} if names is None else {b"fine_label_names": names}
    (tmp_path / "cifar-100-python" / "meta").write_bytes(pickle.dumps(meta))
    with pytest.raises(ValueError, match="cifar100: meta must list 'fine_label_names'"):
        load_cifar100(data_dir=tmp_path)


class TestReal:
    """The real CIFAR-10 images and the label files that belong to them."""

    @pytest.mark.slow
    def test_images(self, cifar10):
        assert len(cifar10.train) == 50_000
        assert len(cifar10.tests["test"]) == 10_000
        assert torch.bincount(cifar10.train.given).tolist() == [5000] * 10
        assert torch.bincount(cifar10.tests["test"].given).tolist() == [1000] * 10
        assert cifar10.classes[3] == "cat"
        # the published channel means of the training images (these went through JPEG)
        means = cifar10.train.inputs.double().mean((0, 2, 3)) / 255
        assert means.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.004)

    @pytest.mark.parametrize(
        ("kind", "rate"),
        [
            ("aggregate", 0.0901),
            ("random1", 0.1723),
            ("random2", 0.1812),
            ("random3", 0.1764),
            ("worst", 0.4021),
        ],
    )
    def test_human_labels_line_up(self, cifar10, real_data, kind, rate):
        labels = human_labels("cifar10", kind, data_dir=real_data)
        assert torch.equal(labels.true, cifar10.train.true)
        assert round(noise.noise_rate(labels.true, labels.given), 4) == rate
        assert cifar10.with_noise(labels.given).train.true is cifar10.train.true

    @pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
    def test_frozen_instance_labels_line_up(self, cifar10, real_data, rate):
        given = instance_labels("cifar10", rate, data_dir=real_data)
        assert noise.noise_rate(cifar10.train.true, given) == pytest.approx(rate, abs=1e-12)


class TestRealLabels:
    """Label files that need no images."""

    def test_cifar100_human_labels(self, real_data):
        labels = human_labels("cifar100", "noisy", data_dir=real_data)
        assert noise.noise_rate(labels.true, labels.given) == pytest.approx(0.4020, abs=5e-5)
        assert torch.bincount(labels.true).tolist() == [500] * 100

    @pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
    def test_cifar100_frozen_instance_labels(self, real_data, rate):
        true = human_labels("cifar100", "noisy", data_dir=real_data).true
        given = instance_labels("cifar100", rate, data_dir=real_data)
        assert noise.noise_rate(true, given) == pytest.approx(rate, abs=1e-12)

    def test_superclasses_are_those_of_the_coarse_labels(self, real_data):
        from lossforge.data.pickles import read_torch

        table = read_torch(real_data / "cifar-n" / "CIFAR-100_human.pt")
        pairs = zip(table["clean_coarse_label"], table["clean_label"].tolist(), strict=True)
        found = {}
        for coarse, fine in pairs:
            found.setdefault(coarse, set()).add(fine)
        assert [found[i] for i in range(20)] == [set(group) for group in SUPERCLASSES]
